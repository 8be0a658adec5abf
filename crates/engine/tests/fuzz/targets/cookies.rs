//! Any bytes as what servers set: what is kept is bounded, and what is told of it is one line and says nothing else.

use arbitrary::{Arbitrary, Unstructured};
use velodrome_engine::protocol::http1::Jar;

/// What 50 cookies of 4096 bytes come to, with `=` and `; ` in each.
const MOST_TOLD: usize = 50 * (4096 + 3) + "Cookie: \r\n".len();

fn told(jar: &Jar, path: &[u8], secure: bool) -> Vec<u8> {
    let mut line = Vec::new();
    jar.tell(path, secure, &mut line);
    line
}

pub fn check(bytes: &[u8]) {
    let input = <(Vec<(&[u8], &[u8])>, &[u8])>::arbitrary_take_rest(Unstructured::new(bytes));
    let Ok((heads, path)) = input else {
        return;
    };
    let mut jar = Jar::default();
    for (head, of) in heads.iter().copied().chain([(bytes, path)]) {
        jar.hear(head, of);
        let [line, sealed] = [false, true].map(|secure| told(&jar, path, secure));
        assert!(line.len() <= sealed.len() && sealed.len() <= MOST_TOLD);
        for line in [line, sealed] {
            if !line.is_empty() {
                let text = line.strip_prefix(b"Cookie: ").expect("its name");
                let text = text.strip_suffix(b"\r\n").expect("its end");
                assert!(text.contains(&b'='));
                assert!(!text.contains(&b'\n') && !text.contains(&b'\r'), "{line:?}");
                assert!(!text.contains(&0), "{line:?}");
            }
        }
        // What is told again sets nothing new, and takes nothing away.
        let before = told(&jar, path, true);
        jar.hear(b"HTTP/1.1 200 OK\r\nCookie: x=y\r\n\r\n", of);
        assert_eq!(told(&jar, path, true), before);
    }
}
