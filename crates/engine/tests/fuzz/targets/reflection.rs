//! Any bytes as a server's answers to what it is asked of its calls: an end, soon, in words that no terminal obeys.

use velodrome_engine::calls::of_answers;

/// A sentence has at most 40 names of 120 characters, each of which may be escaped as ten.
const LONGEST_SENTENCE: usize = 60_000;

/// Answers one after the other, each with its length before it in two bytes.
fn answers(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some((&[high, low], rest)) = bytes.split_first_chunk() {
        let (answer, rest) =
            rest.split_at(rest.len().min(usize::from(high) << 8 | usize::from(low)));
        found.push(answer);
        bytes = rest;
    }
    found
}

pub fn check(bytes: &[u8]) {
    for answers in [answers(bytes), vec![bytes]] {
        let answers = answers.into_iter().map(<[u8]>::to_vec);
        match of_answers("shop.Shop/Buy", answers) {
            Ok(calls) => assert_eq!(calls, ["shop.Shop/Buy"]),
            Err(why) => {
                assert!(why.len() < LONGEST_SENTENCE, "{} bytes", why.len());
                assert!(!why.chars().any(char::is_control), "{why:?}");
                assert!(
                    !why.contains(['\u{202e}', '\u{2066}', '\u{2028}']),
                    "{why:?}"
                );
            }
        }
    }
}
