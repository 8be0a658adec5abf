use super::*;
use std::collections::HashSet;

fn filled(text: &str, number: u64) -> String {
    let template = Template::read("path", text.as_bytes(), 0).unwrap();
    let occasion = Occasion {
        seed: 7,
        number,
        index: 3,
    };
    String::from_utf8(template.filled(occasion)).unwrap()
}

#[test]
fn each_place_is_filled_and_the_text_between_stays() {
    assert_eq!(filled("/a/{{n}}/b?c={{ i }}", 12), "/a/12/b?c=3");
    assert_eq!(filled("{{n}}", u64::MAX), u64::MAX.to_string());
    assert_eq!(
        filled("{n} {{ }", 1),
        "{n} {{ }",
        "no place is opened or none closed"
    );
    for number in 0..200 {
        let low: u64 = filled("{{random 5..7}}", number).parse().unwrap();
        assert!((5..=7).contains(&low), "{low}");
        let whole: u64 = filled("{{random}}", number).parse().unwrap();
        assert!(whole < 1 << 31);
        assert!(
            ["red", "dark green"].contains(&filled("{{pick red|dark green}}", number).as_str())
        );
    }
    assert_eq!(filled("{{random 4..4}}", 9), "4");
    let hex = filled("{{hex 40}}", 9);
    assert!(
        hex.len() == 40 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{hex}"
    );
    let uuid = filled("{{uuid}}", 9);
    let shape: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(shape, [8, 4, 4, 4, 12]);
    assert!(
        uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]),
        "{uuid}"
    );
}

#[test]
fn the_same_request_is_the_same_again_and_no_other_is() {
    let draws: HashSet<String> = (0..2_000)
        .map(|number| filled("{{hex 16}}", number))
        .collect();
    assert_eq!(draws.len(), 2_000);
    assert_eq!(filled("{{uuid}}", 5), filled("{{uuid}}", 5));
    let twice = filled("{{hex 16}} {{hex 16}}", 1);
    let (one, other) = twice.split_once(' ').unwrap();
    assert_ne!(one, other, "each place draws for itself");
    let salted = Template::read("body", b"{{hex 16}}", 1).unwrap();
    let occasion = Occasion {
        seed: 7,
        number: 5,
        index: 3,
    };
    assert_ne!(
        salted.filled(occasion),
        filled("{{hex 16}}", 5).into_bytes()
    );
}

#[test]
fn every_value_of_a_range_is_drawn_about_as_often() {
    let mut counts = [0_u32; 10];
    for number in 0..20_000 {
        counts[filled("{{random 0..9}}", number).parse::<usize>().unwrap()] += 1;
    }
    // 2 000 each, with a deviation of 42.
    assert!(
        counts.iter().all(|count| (1_790..2_210).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn what_stands_for_nothing_is_refused_with_what_there_is() {
    for text in [
        "{{m}}",
        "{{}}",
        "{{random 5}}",
        "{{random 9..1}}",
        "{{random -1..5}}",
        "{{hex}}",
        "{{hex 0}}",
        "{{hex 1000000}}",
        "{{uuid 4}}",
        "{{pick}}",
        "{{n 5}}",
    ] {
        let fault = Template::read("path", text.as_bytes(), 0).unwrap_err().0;
        assert!(
            fault.starts_with(&format!(
                "path: {text} stands for nothing; there are {{{{n}}}}"
            )),
            "{fault}"
        );
    }
}

#[test]
fn templates_are_joined() {
    let first = Template::read("path", b"/{{n}}", 0).unwrap();
    let joined = Template::fixed("GET ").then(first).text(" HTTP/1.1\r\n");
    let occasion = Occasion {
        number: 8,
        ..Occasion::default()
    };
    assert_eq!(joined.filled(occasion), b"GET /8 HTTP/1.1\r\n");
    assert!(!joined.is_fixed() && Template::fixed("x").text("y").is_fixed());
    let words = Template::read("path", b"/{{pick a|b c}}", 0).unwrap();
    assert!(!words.is_made_of(|text| !text.contains(&b' ')));
}
