//! Servers that mean harm, over real sockets: each request has an outcome, memory stays bounded, nothing panics or hangs.

mod http1;
mod http2;
mod peer;
mod websocket;

use std::net::TcpStream;
use std::time::{Duration, Instant};

use peer::Peer;
use serde_json::{Value, json};
use velodrome_engine::engine;
use velodrome_engine::spec::LoadSpec;

const REQUESTS: u64 = 4;
/// Of the whole process with all the tests and peers that run at once: a third of what one peer sends in half a second.
const MOST_MEMORY: u64 = 400 << 20;
/// Far more than all time-outs together.
const LONGEST: Duration = Duration::from_secs(30);

fn transports() -> &'static [&'static str] {
    if cfg!(target_os = "linux") {
        &["epoll", "io_uring"]
    } else {
        &["epoll"]
    }
}

/// What a load of a few requests, changed by `fields`, makes of a server.
fn load(
    scheme: &str,
    transport: &str,
    fields: &Value,
    body: &[u8],
    talk: fn(&mut TcpStream),
) -> Value {
    let peer = Peer::start(talk);
    let mut spec = json!({
        "url": format!("{scheme}://127.0.0.1:{}/a.B/C", peer.port),
        "connections": 2, "requests": REQUESTS, "timeout_s": 0.5, "transport": transport,
    });
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
    let began = Instant::now();
    let result = engine::run(&spec, body, None, &mut |_| true).unwrap();
    assert!(began.elapsed() < LONGEST, "it took {:?}", began.elapsed());
    serde_json::to_value(result).unwrap()
}

/// Asserts that all requests come to this outcome over all transports, told with these words.
fn all_come_to(
    outcome: &str,
    says: &str,
    scheme: &str,
    mut fields: Value,
    talk: fn(&mut TcpStream),
) {
    if outcome != "timeout" && fields["timeout_s"].is_null() {
        // On a busy machine half a second is over before a large message is read.
        fields["timeout_s"] = json!(LONGEST.as_secs() / 3);
    }
    for transport in transports() {
        let result = load(scheme, transport, &fields, b"", talk);
        for (name, count) in result["outcomes"].as_object().unwrap() {
            let wanted = if name == outcome { REQUESTS } else { 0 };
            assert_eq!(count, wanted, "{name} over {transport}: {result}");
        }
        let told = result["examples"][0]["text"].as_str().unwrap();
        assert!(told.contains(says), "'{told}' does not say '{says}'");
        let peak = peak_memory();
        assert!(peak < MOST_MEMORY, "{} MB at most", peak >> 20);
    }
}

/// The most memory this process ever had; 0 where that is not told.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes.map_or(0, |number| number.trim().parse::<u64>().unwrap() << 10)
}

#[test]
fn what_is_kept_would_be_seen() {
    // On a machine that tells it: a leak that fills a quarter of the bound shows in the peak.
    let before = peak_memory();
    let kept = std::hint::black_box(vec![1_u8; MOST_MEMORY as usize / 4]);
    assert!(before == 0 || peak_memory() >= kept.len() as u64);
}
