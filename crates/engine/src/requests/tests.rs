use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::outcome::{BodyCheck, Outcome};
use crate::protocol::http1::Lines;
use crate::template::Occasion;

fn spec(fields: &Value) -> Result<LoadSpec, SpecError> {
    let mut spec = json!({"url": "http://127.0.0.1:8000/at?all", "duration_s": 1});
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    LoadSpec::from_json(&spec.to_string())
}

fn read(fields: &Value, body: &[u8]) -> Result<Requests, SpecError> {
    let spec = spec(fields)?;
    Requests::new(&spec, &Place::parse(&spec.url)?, body, None)
}

fn written(request: &Request, keepalive: bool, number: u64) -> String {
    let occasion = Occasion {
        seed: 1,
        number,
        index: 0,
    };
    let (mut scratch, mut out) = (b"old".to_vec(), b"older".to_vec());
    Lines::new(request, keepalive).write(
        occasion,
        |out| out.extend_from_slice(b"Cookie: a=b\r\n"),
        &mut scratch,
        &mut out,
    );
    String::from_utf8(out).unwrap()
}

#[test]
fn a_request_of_a_mix_has_what_the_load_has_but_for_its_own() {
    let mix = json!([
        {"name": "list"},
        {"name": "buy", "method": "POST", "path": "/cart", "headers": [["x-b", "2"], ["Host", "shop"]], "body": {"base64": "AAE="}}
    ]);
    let fields = json!({"mix": mix, "headers": [["X-A", "1"], ["X-B", "1"]]});
    let requests = read(&fields, b"").unwrap();
    let agent = concat!("User-Agent: velodrome/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        written(&requests.all[0], true, 0),
        format!(
            "GET /at?all HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n{agent}\r\nX-A: 1\r\nX-B: 1\r\nCookie: a=b\r\n\r\n"
        )
    );
    assert_eq!(
        written(&requests.all[1], false, 0),
        format!(
            "POST /cart HTTP/1.1\r\n{agent}\r\nX-A: 1\r\nx-b: 2\r\nHost: shop\r\nContent-Length: 2\r\nConnection: close\r\nCookie: a=b\r\n\r\n\0\x01"
        )
    );
    assert!(requests.are_named && requests.plain().is_none());
    assert!(requests.all[0].is_idempotent() && !requests.all[1].is_idempotent());
}

#[test]
fn a_template_is_filled_in_path_header_and_body_and_the_length_is_right() {
    let fields = json!({
        "template": true, "method": "PUT", "headers": [["X-N", "{{n}}"]],
        "url": "http://127.0.0.1:8000/a{{n}}b?c={{random 7..7}}&d={{pick x|x}}"
    });
    let requests = read(&fields, b"[{{n}}]").unwrap();
    for (number, length) in [(9, 3), (10, 4)] {
        let written = written(&requests.all[0], true, number);
        assert!(
            written.starts_with(&format!("PUT /a{number}b?c=7&d=x HTTP/1.1\r\n")),
            "{written}"
        );
        assert!(
            written.contains(&format!("X-N: {number}\r\nContent-Length: {length}\r\n")),
            "{written}"
        );
        assert!(
            written.ends_with(&format!("\r\n\r\n[{number}]")),
            "{written}"
        );
    }
    let literal = read(&json!({"url": "http://127.0.0.1:8000/{{m}}"}), b"{{m}}").unwrap();
    assert!(
        written(literal.plain().unwrap(), true, 0).starts_with("GET /%7B%7Bm%7D%7D HTTP/1.1\r\n")
    );
}

#[test]
fn a_body_that_is_no_text_is_sent_as_it_is() {
    let body = b"\xff\xd8{{n}}{{m}}";
    let requests = read(&json!({"template": true, "method": "PUT"}), body).unwrap();
    let mut sent = Vec::new();
    let occasion = Occasion {
        seed: 1,
        number: 7,
        index: 0,
    };
    Lines::new(&requests.all[0], true).write(occasion, |_| (), &mut Vec::new(), &mut sent);
    assert!(sent.ends_with(body), "{}", sent.escape_ascii());
}

#[test]
fn what_a_mix_may_not_be_is_one_sentence() {
    let one = |request: Value| json!({"mix": [request]});
    let rows = [
        (one(json!({"name": " "})), "request 1: it has no name"),
        (
            json!({"mix": [{"name": "a"}, {"name": "a"}]}),
            "request \"a\": another one has this name",
        ),
        (
            one(json!({"name": "a", "weight": 0})),
            "request \"a\": weight: 0 is no weight",
        ),
        (
            one(json!({"name": "a", "method": "G T"})),
            "request \"a\": method: \"G T\"",
        ),
        (
            one(json!({"name": "a", "headers": [["a b", "c"]]})),
            "request \"a\": headers: \"a b\"",
        ),
        (
            one(json!({"name": "a", "expect_status": 1})),
            "request \"a\": expect_status: 1",
        ),
        (
            one(json!({"name": "a", "path": "items"})),
            "request \"a\": path: \"items\" does not begin with /",
        ),
        (
            one(json!({"name": "a", "path": "/a b"})),
            "write a blank as %20",
        ),
        (
            one(json!({"name": "a", "body": {"base64": "?"}})),
            "request \"a\": body: this is not base64",
        ),
        (
            one(json!({"name": "a", "expect_body": {"text": "a"}, "expect_contains": "a"})),
            "expect_body is the whole body",
        ),
        (
            json!({"template": true, "mix": [{"name": "a", "path": "/{{m}}"}]}),
            "path: {{m}} stands for nothing",
        ),
        (
            json!({"template": true, "mix": [{"name": "a", "path": "/{{pick a b|c}}"}]}),
            "write a blank as %20",
        ),
        (one(json!({"name": "a", "colour": "red"})), "colour"),
    ];
    for (fields, wanted) in rows {
        let fault = read(&fields, b"").map(|_| ()).unwrap_err().0;
        assert!(fault.contains(wanted), "{fields}: {fault}");
    }
}

#[test]
fn a_right_answer_has_the_status_and_the_body() {
    let right = Right {
        status: Some(201),
        contains: Some(Arc::from(&b"ok"[..])),
        body: None,
    };
    assert_eq!(right.judge(201, BodyCheck::Right), Outcome::Ok);
    assert_eq!(right.judge(201, BodyCheck::Wrong), Outcome::WrongBody);
    assert_eq!(right.judge(200, BodyCheck::Wrong), Outcome::BadStatus);
    assert_eq!(right.explain(200, 3), "status 200 where 201 is right");
    assert_eq!(
        right.explain(201, 3),
        "a body of 3 bytes without \"ok\" in it"
    );
    assert_eq!(
        Right::default().judge(204, BodyCheck::Unchecked),
        Outcome::Ok
    );
}

fn draws(weights: &[f64], seed: u64, thread: u64, threads: u64, count: u64) -> Vec<usize> {
    let mix: Vec<Value> = weights
        .iter()
        .enumerate()
        .map(|(number, weight)| json!({"name": number.to_string(), "weight": weight}))
        .collect();
    let fields = json!({"mix": mix, "seed": seed, "threads": threads});
    let requests = read(&fields, b"").unwrap();
    let draw = Draw::new(&requests, &spec(&fields).unwrap(), thread);
    (0..count)
        .map(|number| draw.which(draw.occasion(number)))
        .collect()
}

#[test]
fn requests_are_drawn_as_often_as_their_weights_say() {
    let drawn = draws(&[70.0, 25.0, 5.0], 3, 0, 1, 40_000);
    let count = |which| drawn.iter().filter(|&&one| one == which).count() as f64;
    // The deviation of the first is 92, of the last 44.
    assert!((count(0) - 28_000.0).abs() < 450.0, "{}", count(0));
    assert!((count(1) - 10_000.0).abs() < 430.0, "{}", count(1));
    assert!((count(2) - 2_000.0).abs() < 220.0, "{}", count(2));
    assert_ne!(
        drawn[..50],
        draws(&[70.0, 25.0, 5.0], 4, 0, 1, 50),
        "another seed"
    );
    let repeats = drawn.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64;
    // Independent: the chance of two alike is 0.49 + 0.0625 + 0.0025.
    assert!((repeats / 39_999.0 - 0.555).abs() < 0.013, "{repeats}");
}

proptest! {
    #[test]
    fn threads_draw_what_one_would(threads in 1_u64..5, seed in any::<u32>()) {
        let weights = [1.0, 2.0, 0.5];
        let alone = draws(&weights, seed.into(), 0, 1, 40);
        for thread in 0..threads {
            for (k, which) in draws(&weights, seed.into(), thread, threads, 8).into_iter().enumerate() {
                prop_assert_eq!(which, alone[thread as usize + k * threads as usize]);
            }
        }
    }

    #[test]
    fn the_length_told_is_that_of_the_body(text in "[a-z]{0,12}(\\{\\{(n|uuid|hex 3|random 1\\.\\.2000)\\}\\}[a-z]{0,5}){1,4}", number in any::<u32>()) {
        let fields = json!({"template": true, "method": "POST"});
        let requests = read(&fields, text.as_bytes()).unwrap();
        let written = written(&requests.all[0], true, number.into());
        let (head, body) = written.split_once("\r\n\r\n").unwrap();
        prop_assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{}", written);
    }
}
