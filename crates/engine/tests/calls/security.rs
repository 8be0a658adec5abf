//! The same over TLS: who is trusted, and what is told of those who are not.

use std::net::TcpListener;

use serde_json::{Value, json};
use velodrome_engine::engine;
use velodrome_engine::spec::LoadSpec;

use crate::server::{Manners, Server};
use crate::{load, said, transports};

/// Writes the server's certificate to a file that is removed with it.
struct Trusted(std::path::PathBuf);

impl Trusted {
    fn new(server: &Server) -> Trusted {
        let path = std::env::temp_dir().join(format!("velodrome-ca-{}.pem", server.port));
        std::fs::write(&path, &server.certificate).unwrap();
        Trusted(path)
    }
}

impl Drop for Trusted {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn over_tls(offers: &'static [&'static [u8]]) -> Server {
    Server::start(Manners {
        offers: Some(offers),
        reflects: Some("grpc.reflection.v1.ServerReflection"),
        ..Manners::default()
    })
}

fn url(server: &Server) -> String {
    format!("grpcs://127.0.0.1:{}/test.Echo/Unary", server.port)
}

#[test]
fn calls_go_over_tls_to_a_server_that_is_trusted() {
    let message = said(&"secret ".repeat(20_000));
    for transport in transports() {
        let server = over_tls(&[b"h2"]);
        let trusted = Trusted::new(&server);
        for trust in [json!({"cacert": trusted.0}), json!({"insecure": true})] {
            let mut fields = trust.clone();
            fields["transport"] = json!(transport);
            let result = load(&url(&server), &fields, &message, Some(&message)).unwrap();
            assert_eq!(result["ok"], 60, "{result}");
            assert_eq!(result["connections"]["opened"], 2);
            assert!(result["phases_ms"]["tls"]["max"].as_f64().unwrap() > 0.0);
            #[cfg(target_os = "linux")]
            assert!(
                result["sockets"]["looked"].as_u64().unwrap() > 0,
                "{result}"
            );
        }
    }
}

#[test]
fn a_server_describes_its_calls_over_tls_too() {
    let server = over_tls(&[b"h2"]);
    let trusted = Trusted::new(&server);
    let grpc = json!({"data": "{\"text\": \"a\"}"});
    let fields = json!({"cacert": trusted.0, "grpc": grpc});
    assert_eq!(load(&url(&server), &fields, b"", None).unwrap()["ok"], 60);
    let error = load(&url(&server), &json!({"grpc": grpc}), b"", None).unwrap_err();
    assert!(
        error.contains("is not trusted") && error.contains("--cacert"),
        "{error}"
    );
}

#[test]
fn a_certificate_that_is_not_trusted_refuses_every_call_with_the_cure() {
    for transport in transports() {
        let server = over_tls(&[b"h2"]);
        let fields = json!({"transport": transport, "requests": 6});
        let result = load(&url(&server), &fields, &said("x"), None).unwrap();
        assert_eq!(result["outcomes"]["refused"], 6, "{result}");
        let text = result["examples"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("not trusted") && text.contains("--cacert FILE"),
            "{text}"
        );
        assert_eq!(server.calls(), 0);
    }
}

#[test]
fn a_certificate_that_names_another_host_is_refused_even_if_it_is_trusted() {
    let server = Server::start(Manners {
        offers: Some(&[b"h2"]),
        named: Some("elsewhere.test"),
        ..Manners::default()
    });
    let trusted = Trusted::new(&server);
    let fields = json!({"cacert": trusted.0, "requests": 6});
    let result = load(&url(&server), &fields, &said("x"), None).unwrap();
    assert_eq!(result["outcomes"]["refused"], 6, "{result}");
    let text = result["examples"][0]["text"].as_str().unwrap();
    assert!(text.contains("names another host"), "{text}");
}

#[test]
fn a_server_without_http2_over_tls_is_told() {
    let server = over_tls(&[b"http/1.1"]);
    let fields = json!({"insecure": true, "requests": 6});
    let result = load(&url(&server), &fields, &said("x"), None).unwrap();
    assert_eq!(result["outcomes"]["bad_protocol"], 6, "{result}");
    let text = result["examples"][0]["text"].as_str().unwrap();
    assert!(text.contains("ALPN"), "{text}");
}

#[test]
fn a_server_without_tls_is_told() {
    let server = Server::start(Manners::default());
    let fields = json!({"insecure": true, "requests": 6});
    let result = load(&url(&server), &fields, &said("x"), None).unwrap();
    assert_eq!(result["outcomes"]["bad_protocol"], 6, "{result}");
    let text = result["examples"][0]["text"].as_str().unwrap();
    assert!(text.contains("does not speak TLS here"), "{text}");
    // And the other way round.
    let server = over_tls(&[b"h2"]);
    let plain = url(&server).replace("grpcs", "grpc");
    let result = load(&plain, &json!({"requests": 6}), &said("x"), None).unwrap();
    let text = result["examples"][0]["text"].as_str().unwrap();
    assert!(text.contains("TLS"), "{text}");
}

#[test]
fn http1_goes_over_tls_too() {
    for transport in transports() {
        let server = over_tls(&[b"http/1.1"]);
        let trusted = Trusted::new(&server);
        let spec = json!({
            "url": format!("https://127.0.0.1:{}/", server.port), "connections": 4, "requests": 60,
            "transport": transport, "cacert": trusted.0
        });
        let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
        let result = engine::run(&spec, b"", Some(b"ok"), &mut |_| true).unwrap();
        let result = serde_json::to_value(result).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
        assert_eq!(result["connections"]["opened"], 4);
        let phases = &result["phases_ms"];
        for phase in ["connect", "tls", "first_byte"] {
            assert!(phases[phase]["max"].as_f64().unwrap() > 0.0, "{phases}");
        }
    }
}

#[test]
fn each_request_may_have_its_own_encrypted_connection() {
    let server = over_tls(&[b"http/1.1"]);
    let spec = json!({
        "url": format!("https://127.0.0.1:{}/", server.port), "connections": 2, "requests": 10,
        "keepalive": false, "insecure": true
    });
    let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
    let result = engine::run(&spec, b"", Some(b"ok"), &mut |_| true).unwrap();
    assert_eq!(serde_json::to_value(result).unwrap()["ok"], 10);
    assert_eq!(server.connections(), 10);
}

#[test]
fn a_handshake_that_never_ends_times_out() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let spec =
        json!({"url": url, "connections": 1, "requests": 1, "timeout_s": 0.3, "insecure": true});
    let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
    let result = engine::run(&spec, b"", None, &mut |_| true).unwrap();
    let result: Value = serde_json::to_value(result).unwrap();
    assert_eq!(result["outcomes"]["timeout"], 1, "{result}");
    let text = result["examples"][0]["text"].as_str().unwrap();
    assert!(text.contains("no TLS handshake"), "{text}");
}

#[test]
fn a_file_without_an_authority_is_told() {
    let path = std::env::temp_dir().join(format!("velodrome-no-ca-{}.pem", std::process::id()));
    std::fs::write(&path, "nothing").unwrap();
    for (file, sentence) in [
        (path.clone(), "no certificate in it"),
        ("/nowhere.pem".into(), "cannot be read"),
    ] {
        let fields = json!({"cacert": file});
        let error = load("grpcs://127.0.0.1:1/a.B/C", &fields, b"", None).unwrap_err();
        assert!(error.contains(sentence), "{error}");
    }
    std::fs::remove_file(path).unwrap();
}
