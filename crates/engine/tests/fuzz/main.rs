//! Every parser fed with bytes a hostile peer could send, on a stable compiler: the corpus as it is, and then mutated.
//!
//! The checks in `targets/` are those of `cargo fuzz` too, which finds new cases by coverage and takes its time
//! (`crates/engine/fuzz/`); what it found is the corpus here. A mutated case follows from the target's name and a number,
//! so that whoever meets a failure meets it again. All targets together take a minute on one core.

mod mutation;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use mutation::Mutator;
use targets::{
    chunked, cookies, grpc, hpack, http1, http2, http2_windows, reflection, third_party, websocket,
};

/// For each target, seconds: cases come in the same order every time, so more time brings those that come later.
const BUDGET: &str = "VELODROME_FUZZ_S";
const USUAL: f64 = 2.0;
/// Fewer cases would be no test: a debug build does three times as many in that time, unless others have the CPUs.
const LEAST: u64 = 500;
/// No case takes that long, whatever else this machine does.
const HANGS: Duration = Duration::from_secs(20);

type Check = fn(&[u8]);

/// What `cargo fuzz` found, in the order of its names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(name);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Checks one case. A failure is told with its bytes, so that it can be kept as a file of the corpus.
fn meet(name: &str, which: &str, bytes: &[u8], check: Check) {
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| check(bytes)));
    let took = began.elapsed();
    if outcome.is_err() || took > HANGS {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        eprintln!("{name} fails on {which}: echo {hex} | xxd -r -p > fuzz/corpus/{name}/NAME");
    }
    match outcome {
        Err(panic) => resume_unwind(panic),
        Ok(()) => assert!(took <= HANGS, "{name}: {took:?} for {} bytes", bytes.len()),
    }
}

/// The corpus, and mutated cases for as long as there is time.
fn smoke(name: &str, check: Check, budget: Duration) {
    let corpus = corpus(name);
    for (number, bytes) in corpus.iter().enumerate() {
        meet(name, &format!("file {number} of its corpus"), bytes, check);
    }
    let mutator = Mutator::new(name, &corpus);
    let (end, mut number) = (Instant::now() + budget, 0);
    while Instant::now() < end || number < LEAST {
        meet(
            name,
            &format!("case {number}"),
            &mutator.case(number),
            check,
        );
        number += 1;
    }
}

fn smokes(name: &str, check: Check) {
    let seconds = std::env::var(BUDGET).map_or(USUAL, |text| text.parse().unwrap());
    smoke(name, check, Duration::from_secs_f64(seconds));
}

#[test]
fn heads_and_bodies_of_http1_hold() {
    smokes("http1", http1::check);
}

#[test]
fn chunks_hold() {
    smokes("chunked", chunked::check);
}

#[test]
fn frames_of_http2_hold() {
    smokes("http2", http2::check);
}

#[test]
fn windows_of_http2_hold() {
    smokes("http2_windows", http2_windows::check);
}

#[test]
fn header_blocks_hold() {
    smokes("hpack", hpack::check);
}

#[test]
fn messages_of_grpc_hold() {
    smokes("grpc", grpc::check);
}

#[test]
fn frames_of_websockets_hold() {
    smokes("websocket", websocket::check);
}

#[test]
fn descriptions_of_calls_hold() {
    smokes("reflection", reflection::check);
}

#[test]
fn cookies_hold() {
    smokes("cookies", cookies::check);
}

#[test]
fn requests_to_the_third_party_hold() {
    smokes("third_party", third_party::check);
}

#[test]
fn a_fault_that_is_planted_is_found() {
    // A parser that takes the length of a chunk for granted; no file of the corpus makes it fail.
    fn careless(bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for line in text.split("\r\n") {
            if line.len() > 15 && line.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let size = u64::from_str_radix(line, 16).unwrap();
                assert!(size < 1 << 62, "a chunk of {size} bytes");
            }
        }
    }
    let found = catch_unwind(|| smoke("chunked", careless, HANGS));
    assert!(found.is_err());
}

#[test]
fn the_same_number_is_the_same_case() {
    let corpus = corpus("chunked");
    let [one, again] = [(); 2].map(|()| Mutator::new("chunked", &corpus));
    let other = Mutator::new("http1", &corpus);
    let cases = |mutator: &Mutator| (0..50).map(|n| mutator.case(n)).collect::<Vec<_>>();
    assert_eq!(cases(&one), cases(&again));
    assert_ne!(cases(&one), cases(&other));
}
