//! Connections that go elsewhere than to the host of the URL.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use serde_json::json;

use crate::load;
use crate::server::{At, Server};

fn socket(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("velodrome-{}-{name}.sock", std::process::id()));
    // Left by a run of the same number that was killed.
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn a_socket_in_the_file_system_is_loaded_by_option_and_by_url() {
    for http2 in [false, true] {
        let path = socket("serves");
        let server = Server::start(At::Path(path.clone()), http2, None);
        let by_option = json!({"unix": path, "http2": http2});
        let result = load("http://shop.test/items/7", &by_option, b"", Some(b"item 7")).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
        let escaped = path.to_str().unwrap().replace('/', "%2F");
        let url = format!("http+unix://{escaped}/items/8");
        let by_url = json!({"http2": http2, "rate": 2000.0});
        let result = load(&url, &by_url, b"", Some(b"item 8")).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
        assert!(server.connections() >= 3, "{}", server.connections());
        drop(server);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_socket_nobody_serves_is_refused_with_the_reason() {
    let path = socket("nobody");
    let fields = json!({"unix": path, "requests": 4});
    let result = load("http://shop.test/", &fields, b"", None).unwrap();
    assert_eq!(result["outcomes"]["refused"], 4, "{result}");
    let text = result["examples"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("there is no such unix socket"), "{text}");
}

#[test]
fn a_full_listen_queue_is_refused_with_the_reason_and_holds_up_nothing_for_long() {
    let path = socket("full");
    let raw = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    raw.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
    raw.listen(1).unwrap();
    let _listener = UnixListener::from(raw);
    let fields =
        json!({"unix": path, "requests": 6, "connections": 6, "timeout_s": 0.3, "drain_s": 0.1});
    let begun = std::time::Instant::now();
    let result = load("http://shop.test/", &fields, b"", None).unwrap();
    assert!(begun.elapsed().as_secs() < 5);
    assert!(
        result["outcomes"]["refused"].as_u64().unwrap() > 0,
        "{result}"
    );
    let examples = result["examples"].to_string();
    assert!(
        examples.contains("the listen queue of the unix socket is full"),
        "{examples}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn connections_go_where_the_rule_says_and_the_request_names_the_url() {
    let server = Server::start(At::Port, false, None);
    let rule = format!("shop.test:80:127.0.0.1:{}", server.port);
    let fields = json!({"connect_to": ["other.test:80:10.9.8.7:80", rule]});
    let result = load("http://shop.test/items/7", &fields, b"", Some(b"item 7")).unwrap();
    assert_eq!(result["ok"], 60, "{result}");
}

#[test]
fn what_may_be_loaded_is_told_by_the_address_connected_to() {
    let away = json!({"connect_to": ["127.0.0.1:80:192.0.2.1:80"]});
    let refused = load("http://127.0.0.1/", &away, b"", None).unwrap_err();
    assert!(refused.contains("refusing to load 192.0.2.1"), "{refused}");
    let rows = [
        (json!({"connect_to": ["nonsense"]}), "has not four parts"),
        (
            json!({"unix": "x", "connect_to": ["::127.0.0.1:"]}),
            "give one of them",
        ),
        (json!({"unix": "x".repeat(200)}), "cannot be a socket"),
        (
            json!({"unix": "x", "transport": "io_uring"}),
            "loaded over epoll",
        ),
    ];
    for (fields, wanted) in rows {
        let fault = load("http://shop.test/", &fields, b"", None).unwrap_err();
        assert!(fault.contains(wanted), "{fault}");
    }
    let fault = load("http+unix:///items", &json!({}), b"", None).unwrap_err();
    assert!(fault.contains("names no socket"), "{fault}");
    let fault = load("http+unix://%2Fx/", &json!({"unix": "y"}), b"", None).unwrap_err();
    assert!(fault.contains("the URL names a socket already"), "{fault}");
}
