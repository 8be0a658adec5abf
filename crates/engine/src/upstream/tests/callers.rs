//! What callers get: answers in time, in order, in any way they ask.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::Value;

use crate::chance::chance;
use crate::protocol::http1::MAX_HEAD_BYTES;
use crate::upstream::requests::{Persistence, *};
use crate::upstream::spec::{Latency, duration};
use crate::upstream::tests::Caller;
use crate::upstream::{Upstream, UpstreamError};

fn start(spec: &str) -> Upstream {
    Upstream::start(spec).unwrap()
}

fn facts(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn an_answer_comes_when_it_was_asked_for_and_not_before() {
    let mut upstream = start(r#"{"latency": "30ms", "body": 100}"#);
    let mut caller = Caller::of(&upstream);
    for (path, latency) in [
        ("/", 30),
        ("/?velodrome-latency=5ms", 5),
        ("/x?y=z&velodrome-latency=0.06s", 60),
    ] {
        let before = Instant::now();
        let heard = caller.get(path);
        let took = before.elapsed();
        assert!(
            took >= Duration::from_millis(latency),
            "{path} took {took:?}"
        );
        assert!(
            took < Duration::from_millis(latency + 1000),
            "{path} took {took:?}"
        );
        assert_eq!(
            (heard.status, heard.body.len(), &heard.body[..11]),
            (200, 100, &b"<h1>Hello, "[..])
        );
    }
    let facts = facts(&upstream.stop());
    assert_eq!(
        (&facts["requests"], &facts["answered"], &facts["active"]),
        (&3.into(), &3.into(), &0.into())
    );
    assert!(facts["late_ms"]["p50"].as_f64().unwrap() < 50.0, "{facts}");
    assert!(facts["cpu_s"].as_f64().unwrap() < 1.0, "{facts}");
}

#[test]
fn a_right_answer_is_what_was_told_and_a_failure_is_plain_text() {
    let told = r#""body": {"text": "{\"ok\": true}"}, "type": "application/json""#;
    let heard = Caller::of(&start(&format!("{{{told}}}"))).get("/charge");
    assert_eq!(
        (heard.status, heard.body),
        (200, br#"{"ok": true}"#.to_vec())
    );
    assert!(
        heard
            .head
            .contains("\r\nContent-Type: application/json\r\n")
    );
    let failed = Caller::of(&start(&format!("{{{told}, \"errors\": 1}}"))).get("/charge");
    assert_eq!(failed.status, 500);
    assert!(failed.head.contains("\r\nContent-Type: text/plain\r\n"));
}

#[test]
fn two_thousand_callers_wait_together() {
    let upstream = start(r#"{"latency": "300ms", "threads": 2}"#);
    let mut callers: Vec<Caller> = (0..2000).map(|_| Caller::of(&upstream)).collect();
    let before = Instant::now();
    for caller in &mut callers {
        caller.say(b"GET / HTTP/1.1\r\n\r\n");
    }
    let waiting = facts(&upstream.facts());
    assert_eq!(waiting["connections"], 2000);
    for caller in &mut callers {
        assert_eq!(caller.hear(true).status, 200);
    }
    let took = before.elapsed();
    assert!(
        took < Duration::from_secs(20),
        "one after the other would be 600 s; it took {took:?}"
    );
    let done = facts(&upstream.facts());
    assert_eq!(
        (&done["requests"], &done["answered"], &done["active"]),
        (&2000.into(), &2000.into(), &0.into())
    );
    assert_eq!(
        facts(&upstream.facts())["since"]["requests"],
        0,
        "nothing happened since facts were asked"
    );
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let upstream = start(r#"{"body": 0}"#);
    let mut caller = Caller::of(&upstream);
    caller.say(
        b"GET /?velodrome-latency=60ms HTTP/1.1\r\n\r\nHEAD /?velodrome-latency=1ms HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\r\n\r\n",
    );
    let before = Instant::now();
    let heads: Vec<String> = (0..4).map(|_| caller.hear(true).head).collect();
    assert!(before.elapsed() >= Duration::from_millis(50));
    assert!(
        heads[..3].iter().all(|head| !head.contains("Connection")),
        "{heads:?}"
    );
    assert!(heads[3].contains("Connection: close"), "{heads:?}");
    assert!(caller.is_closed());
}

#[test]
fn a_thousand_requests_at_once_are_answered_though_few_are_read_ahead() {
    let upstream = start(r#"{"body": 20000}"#);
    let mut caller = Caller::of(&upstream);
    let stream = caller.0.get_ref().try_clone().unwrap();
    let writer =
        std::thread::spawn(move || (&stream).write_all(&b"GET / HTTP/1.1\r\n\r\n".repeat(1000)));
    for _ in 0..1000 {
        assert_eq!(caller.hear(true).body.len(), 20_000);
    }
    writer.join().unwrap().unwrap();
}

#[test]
fn a_connection_ends_or_goes_on_as_its_caller_asks() {
    let upstream = start("{}");
    let mut caller = Caller::of(&upstream);
    caller.say(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(caller.hear(true).head.contains("Connection: keep-alive"));
    caller.say(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(caller.hear(true).head.contains("Connection: close"));
    assert!(caller.is_closed());
    let mut half = Caller::of(&upstream);
    half.say(b"GET /?velodrome-latency=50ms HTTP/1.1\r\n\r\n");
    half.0
        .get_ref()
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(
        half.hear(true).status,
        200,
        "a caller that is done sending still gets its answer"
    );
    assert!(half.is_closed());
}

#[test]
fn a_head_may_come_byte_by_byte_and_a_body_late() {
    let upstream = start("{}");
    let mut caller = Caller::of(&upstream);
    for byte in b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n" {
        caller.say(&[*byte]);
    }
    assert_eq!(caller.hear(false).status, 100);
    caller.say(b"hel");
    caller.say(b"lo");
    assert_eq!(caller.hear(true).status, 200);
    caller.say(b"HEAD / HTTP/1.1\r\n\r\n");
    assert!(caller.hear(false).head.contains("Content-Length: 64"));
    assert_eq!(caller.get("/").body.len(), 64);
}

#[test]
fn what_is_not_a_request_is_refused_and_the_refusal_arrives() {
    let mut upstream = start("{}");
    let mut caller = Caller::of(&upstream);
    caller.say(b"\x16\x03\x01 this is not HTTP");
    caller.say(&[b'x'; 100_000]);
    assert_eq!(caller.hear(true).status, 400);
    assert!(caller.is_closed());
    drop(caller);
    assert_eq!(
        Caller::of(&upstream).get("/?velodrome-latency=soon").status,
        400
    );
    let facts = facts(&upstream.stop());
    assert_eq!(
        (&facts["refused"], &facts["requests"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn the_share_that_was_asked_for_fails() {
    let mut upstream = start(r#"{"errors": 0.2, "seed": 3}"#);
    let mut caller = Caller::of(&upstream);
    let failed = (0..2000).filter(|_| caller.get("/").status == 500).count();
    // 400 ± 18 (binomial); four of them.
    assert!(failed.abs_diff(400) < 72, "{failed} of 2000");
    assert_eq!(facts(&upstream.stop())["errors"], failed);
}

#[test]
fn nothing_is_answered_during_a_stall() {
    let upstream = start(r#"{"stall": {"every_s": 0.4, "for_s": 0.2}}"#);
    let started = Instant::now();
    let mut caller = Caller::of(&upstream);
    let mut longest = Duration::ZERO;
    while started.elapsed() < Duration::from_millis(700) {
        let before = Instant::now();
        assert_eq!(caller.get("/").status, 200);
        longest = longest.max(before.elapsed());
    }
    assert!(longest > Duration::from_millis(150), "{longest:?}");
    let facts = facts(&upstream.facts());
    assert!(facts["stalls"].as_u64().unwrap() >= 1, "{facts}");
    assert!(
        facts["late_ms"]["p50"].as_f64().unwrap() < 50.0,
        "a stall is no lateness: {facts}"
    );
}

#[test]
fn a_caller_that_gives_up_leaves_nothing_behind() {
    let upstream = start(r#"{"latency": "100ms"}"#);
    for _ in 0..50 {
        Caller::of(&upstream).say(b"GET / HTTP/1.1\r\n\r\n");
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let facts = facts(&upstream.facts());
        if facts["connections"] == 0 && facts["requests"] == 50 {
            break;
        }
        assert!(Instant::now() < deadline, "{facts}");
        std::thread::yield_now();
    }
}

#[test]
fn a_port_that_is_taken_and_a_wrong_specification_are_told() {
    let first = start("{}");
    let taken = Upstream::start(&format!(r#"{{"port": {}}}"#, first.port()))
        .err()
        .unwrap();
    assert!(
        matches!(taken, UpstreamError::Listen { .. })
            && taken.to_string().contains("cannot listen on 127.0.0.1:")
    );
    let wrong = Upstream::start(r#"{"latency": "soon", "errors": -1}"#)
        .err()
        .unwrap()
        .to_string();
    assert!(
        wrong.contains("latency: 'soon'") && wrong.contains("; errors is -1"),
        "{wrong}"
    );
}

#[test]
fn stop_closes_the_port_and_says_the_same_again() {
    let mut upstream = start(r#"{"latency": "10s"}"#);
    let mut caller = Caller::of(&upstream);
    caller.say(b"GET / HTTP/1.1\r\n\r\n");
    let port = upstream.port();
    let last = upstream.stop();
    assert_eq!(last, upstream.stop());
    assert_eq!(last, upstream.facts());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(
        caller.0.read(&mut [0]).map_or(true, |count| count == 0),
        "its connections are closed"
    );
}

const COUNT: usize = 200_000;

/// The first 200 000 latencies in order of size, milliseconds.
fn sorted(text: &str, seed: u64) -> Vec<f64> {
    let latency = Latency::parse(text).unwrap();
    let mut all: Vec<f64> = (0..COUNT as u64)
        .map(|n| latency.sample(seed, n) as f64 / 1e6)
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Quantiles of a sample of 200 000 are right to about 1 % where these densities are not small (standard error
/// sqrt(q(1-q)/n)/density, at most 0.4 % below; three of them).
fn assert_quantiles(text: &str, wanted: &[(f64, f64)]) {
    let all = sorted(text, 7);
    for (quantile, milliseconds) in wanted {
        let got = all[(quantile * COUNT as f64) as usize];
        assert!(
            (got / milliseconds - 1.0).abs() < 0.012,
            "{text}: q{quantile} is {got}, not {milliseconds}"
        );
    }
}

#[test]
fn distributions_have_their_quantiles() {
    assert_quantiles("200ms", &[(0.0, 200.0), (0.99, 200.0)]);
    assert_quantiles(
        "uniform(10ms,20ms)",
        &[
            (0.0, 10.0),
            (0.25, 12.5),
            (0.5, 15.0),
            (0.9, 19.0),
            (0.999_99, 20.0),
        ],
    );
    // -ln(1 - q) times the mean.
    assert_quantiles(
        "exponential(50ms)",
        &[(0.5, 34.657), (0.9, 115.129), (0.99, 230.259)],
    );
    // exp(sigma z) times the median; z is 0, 0.67449, 1.28155, 2.32635.
    assert_quantiles(
        "lognormal(50ms,0.4)",
        &[(0.5, 50.0), (0.75, 65.486), (0.9, 83.486), (0.99, 126.792)],
    );
}

#[test]
fn a_seed_repeats_itself_and_another_differs() {
    assert_eq!(
        sorted("exponential(50ms)", 1)[..100],
        sorted("exponential(50ms)", 1)[..100]
    );
    assert_ne!(
        sorted("exponential(50ms)", 1)[..100],
        sorted("exponential(50ms)", 2)[..100]
    );
}

#[test]
fn draws_of_one_request_do_not_depend_on_each_other() {
    let products = (0..COUNT as u64).map(|n| (chance(1, n, 0) - 0.5) * (chance(1, n, 2) - 0.5));
    // The variance of each factor is 1/12; the standard error of their covariance is 1/12/sqrt(n).
    let covariance = products.sum::<f64>() / COUNT as f64;
    assert!(
        covariance.abs() < 4.0 / 12.0 / (COUNT as f64).sqrt(),
        "{covariance}"
    );
}

#[test]
fn a_file_of_latencies_is_drawn_from_evenly() {
    let path = std::env::temp_dir().join(format!("velodrome-latencies-{}", std::process::id()));
    std::fs::write(&path, "# recorded\n10\n20ms\n\n0.03s # slow\n").unwrap();
    let text = path.to_str().unwrap();
    let all = sorted(text, 1);
    for (latency, count) in [(10.0, COUNT / 3), (20.0, COUNT / 3), (30.0, COUNT / 3)] {
        let found = all.iter().filter(|one| **one == latency).count();
        assert!(
            found.abs_diff(count) < 1000,
            "{latency} ms was drawn {found} times"
        );
    }
    std::fs::write(&path, "10\nsoon\n").unwrap();
    assert!(Latency::parse(text).unwrap_err().contains("line 2: 'soon'"));
    std::fs::write(&path, "# nothing\n").unwrap();
    assert!(
        Latency::parse(text)
            .unwrap_err()
            .contains("lists no latency")
    );
    std::fs::remove_file(&path).unwrap();
    assert!(
        Latency::parse(text)
            .unwrap_err()
            .contains("not a file that can be read")
    );
}

#[test]
fn durations_are_read_as_people_write_them() {
    let rows = [
        ("200ms", 200_000_000),
        ("1.5s", 1_500_000_000),
        ("150us", 150_000),
        ("2µs", 2_000),
        ("7ns", 7),
        ("0", 0),
    ];
    for (text, nanos) in rows {
        assert_eq!(duration(text), Ok(nanos), "{text}");
    }
    for text in [
        "", "ms", "5", "-1ms", "1h", "1 e", "3601s", "1e400s", "nans", "infs", "0x1ms",
    ] {
        assert!(duration(text).is_err(), "{text}");
    }
}

fn all(stream: &[u8], size: usize) -> Result<Vec<Incoming>, NotARequest> {
    let mut requests = Requests::new();
    let mut heard = Vec::new();
    for mut piece in stream.chunks(size) {
        while !piece.is_empty() {
            let (used, what) = requests.hear(piece)?;
            assert!(used > 0);
            piece = &piece[used..];
            heard.extend((what != Incoming::More).then_some(what));
        }
    }
    Ok(heard)
}

const PLAIN: Request = Request {
    latency: None,
    head_only: false,
    persistence: Persistence::Implied,
};

#[test]
fn requests_are_found_however_they_are_cut() {
    let close = Request {
        persistence: Persistence::Close,
        ..PLAIN
    };
    let rows: &[(&[u8], &[Request])] = &[
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &[PLAIN]),
        (b"GET / HTTP/1.1\n\nGET / HTTP/1.1\r\n\r\n", &[PLAIN, PLAIN]),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
            &[PLAIN, PLAIN],
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            &[PLAIN],
        ),
        (
            b"GET /?a=b&velodrome-latency=75ms HTTP/1.1\r\n\r\n",
            &[Request {
                latency: Some(75_000_000),
                ..PLAIN
            }],
        ),
        (
            b"GET /prices?latency=p99&errors=0.5&latency=75ms&stall HTTP/1.1\r\n\r\n",
            &[PLAIN],
        ),
        (
            b"HEAD /?velodrome-latency=0.5s HTTP/1.1\r\n\r\n",
            &[Request {
                latency: Some(500_000_000),
                head_only: true,
                ..PLAIN
            }],
        ),
        (
            b"GET / HTTP/1.1\r\nconnection: foo, Close\r\n\r\n",
            &[close],
        ),
        (b"GET / HTTP/1.0\r\n\r\n", &[close]),
        (
            b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
            &[Request {
                persistence: Persistence::Told,
                ..PLAIN
            }],
        ),
    ];
    for (stream, requests) in rows {
        let expected: Vec<Incoming> = requests.iter().copied().map(Incoming::Whole).collect();
        for size in 1..=stream.len() {
            assert_eq!(
                all(stream, size).as_deref(),
                Ok(&expected[..]),
                "{} cut by {size}",
                stream.escape_ascii()
            );
        }
    }
}

#[test]
fn a_client_that_waits_for_100_is_told_from_one_that_does_not() {
    let head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(all(head, 1000), Ok(vec![Incoming::Waits]));
    assert_eq!(
        all(&[head.as_slice(), b"hi"].concat(), 1000),
        Ok(vec![Incoming::Whole(PLAIN)])
    );
}

#[test]
fn what_is_not_a_request_is_refused() {
    let long = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; MAX_HEAD_BYTES]].concat();
    let rows: [&[u8]; 5] = [
        b"\x16\x03\x01\x02",
        b"GET /?velodrome-latency=soon HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
        &long,
    ];
    for stream in rows {
        assert_eq!(
            all(stream, 4096),
            Err(NotARequest),
            "{}",
            stream[..30.min(stream.len())].escape_ascii()
        );
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(stream in prop::collection::vec(any::<u8>(), 0..300), size in 1_usize..40) {
        let _ = all(&stream, size);
    }
}
