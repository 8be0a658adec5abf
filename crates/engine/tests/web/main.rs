//! Plain requests over HTTP/2, TLS as it can be asked for, and sockets in the file system, against servers by others.

mod http2;
mod places;
mod server;
mod tls;

use serde_json::{Value, json};
use velodrome_engine::engine;
use velodrome_engine::spec::LoadSpec;

fn transports() -> &'static [&'static str] {
    if cfg!(target_os = "linux") {
        &["epoll", "io_uring"]
    } else {
        &["epoll"]
    }
}

/// Runs a load of 60 requests over 2 connections, changed by `fields`.
fn load(url: &str, fields: &Value, body: &[u8], expected: Option<&[u8]>) -> Result<Value, String> {
    let mut spec = json!({"url": url, "connections": 2, "requests": 60, "timeout_s": 10});
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let spec = LoadSpec::from_json(&spec.to_string()).map_err(|error| error.0)?;
    engine::run(&spec, body, expected, &mut |_| true)
        .map(|result| serde_json::to_value(result).unwrap())
        .map_err(|error| error.to_string())
}
