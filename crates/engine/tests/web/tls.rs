//! TLS as it can be asked for, by what the server saw of it.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::load;
use crate::server::{At, Server};

struct Key {
    certificate: CertificateDer<'static>,
    pem: String,
    key_pem: String,
    key: PrivateKeyDer<'static>,
}

fn key(name: &str) -> Key {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([name.to_owned()]).unwrap();
    Key {
        certificate: cert.der().clone(),
        pem: cert.pem(),
        key_pem: signing_key.serialize_pem(),
        key: PrivateKeyDer::Pkcs8(signing_key.serialize_der().into()),
    }
}

/// A file that is gone when the test is over.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path =
            std::env::temp_dir().join(format!("velodrome-{}-{name}.pem", std::process::id()));
        std::fs::File::create(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A server that is `shop.test`, speaks these versions, offers both protocols and asks `trusted` to show itself.
fn config(versions: &[&'static SupportedProtocolVersion], trusted: Option<&Key>) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .unwrap();
    let builder = match trusted {
        None => builder.with_no_client_auth(),
        Some(trusted) => {
            let mut roots = RootCertStore::empty();
            roots.add(trusted.certificate.clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let own = key("shop.test");
    let mut config = builder
        .with_single_cert(vec![own.certificate], own.key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// What the server saw; every answer is the same.
fn seen(server: &Server, fields: Value, wanted: &str) -> Value {
    let mut all = json!({"insecure": true, "requests": 12, "timeout_s": 2, "connect_to": [format!("::127.0.0.1:{}", server.port)]});
    for (key, value) in fields.as_object().unwrap() {
        all[key] = value.clone();
    }
    let result = load("https://shop.test/who", &all, b"", Some(wanted.as_bytes())).unwrap();
    assert_eq!(result["ok"], 12, "{wanted}: {result}");
    result
}

#[test]
fn name_protocol_and_version_are_what_is_asked_for() {
    let server = Server::start(At::Port, false, Some(config(&[&TLS12, &TLS13], None)));
    seen(
        &server,
        json!({}),
        "name=shop.test alpn=http/1.1 version=TLSv1_3 certificates=0 handshake=Full",
    );
    seen(
        &server,
        json!({"http2": true, "streams": 2}),
        "name=shop.test alpn=h2 version=TLSv1_3 certificates=0 handshake=Full",
    );
    seen(
        &server,
        json!({"tls": {"sni": "other.test"}}),
        "name=other.test alpn=http/1.1 version=TLSv1_3 certificates=0 handshake=Full",
    );
    seen(
        &server,
        json!({"tls": {"alpn": []}}),
        "name=shop.test alpn=nothing version=TLSv1_3 certificates=0 handshake=Full",
    );
    let fields = json!({"insecure": true, "requests": 2, "tls": {"alpn": ["h2"]}, "connect_to": [format!("::127.0.0.1:{}", server.port)]});
    let result = load("https://shop.test/who", &fields, b"", None).unwrap();
    let why = result["examples"][0]["text"].as_str().unwrap();
    assert!(
        why.contains("the server chose h2") && why.contains("leave --alpn out"),
        "{why}"
    );
}

#[test]
fn an_old_version_is_spoken_unless_it_is_ruled_out() {
    let server = Server::start(At::Port, false, Some(config(&[&TLS12], None)));
    seen(
        &server,
        json!({}),
        "name=shop.test alpn=http/1.1 version=TLSv1_2 certificates=0 handshake=Full",
    );
    let fields = json!({"insecure": true, "requests": 2, "tls": {"minimum": "1.3"}, "connect_to": [format!("::127.0.0.1:{}", server.port)]});
    let result = load("https://shop.test/who", &fields, b"", None).unwrap();
    assert_eq!(result["ok"], 0);
    let why = result["examples"][0]["text"].as_str().unwrap();
    assert!(why.contains("--tls-min"), "{why}");
}

/// A server gives out tickets by default, and a client may use them: none is used, so each connection costs the server
/// what a new client does.
#[test]
fn each_connection_shakes_hands_in_full() {
    for (version, told) in [(&TLS12, "TLSv1_2"), (&TLS13, "TLSv1_3")] {
        for fields in [
            json!({"keepalive": false}),
            json!({"keepalive": false, "threads": 2}),
            json!({"keepalive": false, "http2": true}),
        ] {
            let server = Server::start(At::Port, false, Some(config(&[version], None)));
            let alpn = match fields.get("http2") {
                None => "http/1.1",
                Some(_) => "h2",
            };
            let wanted =
                format!("name=shop.test alpn={alpn} version={told} certificates=0 handshake=Full");
            seen(&server, fields, &wanted);
            assert!(server.connections() >= 12, "{}", server.connections());
        }
    }
}

#[test]
fn a_server_that_wants_a_certificate_is_shown_one() {
    let own = key("client.test");
    let both = File::new("both", &format!("{}{}", own.pem, own.key_pem));
    let (cert, key_file) = (File::new("cert", &own.pem), File::new("key", &own.key_pem));
    for http2 in [false, true] {
        let server = Server::start(At::Port, false, Some(config(&[&TLS13], Some(&own))));
        let alpn = if http2 { "h2" } else { "http/1.1" };
        let wanted =
            format!("name=shop.test alpn={alpn} version=TLSv1_3 certificates=1 handshake=Full");
        seen(
            &server,
            json!({"http2": http2, "tls": {"cert": both.0}}),
            &wanted,
        );
        seen(
            &server,
            json!({"http2": http2, "tls": {"cert": cert.0, "key": key_file.0}}),
            &wanted,
        );
        let fields = json!({"insecure": true, "requests": 4, "http2": http2, "connect_to": [format!("::127.0.0.1:{}", server.port)]});
        let result = load("https://shop.test/who", &fields, b"", None).unwrap();
        assert_eq!(result["ok"], 0, "{result}");
        let why = result["examples"].to_string();
        assert!(why.contains("--cert FILE"), "{why}");
    }
}

#[test]
fn what_tls_cannot_be_is_one_sentence() {
    let (own, other) = (key("a.test"), key("b.test"));
    let (cert, key_file) = (
        File::new("wrong-cert", &own.pem),
        File::new("wrong-key", &other.key_pem),
    );
    let rows = [
        (json!({"key": "x"}), "give cert too"),
        (
            json!({"cert": "/nowhere.pem"}),
            "tls: cert: /nowhere.pem: cannot be read",
        ),
        (json!({"cert": key_file.0}), "it has no certificate in it"),
        (json!({"cert": cert.0}), "it has no key in it"),
        (
            json!({"cert": cert.0, "key": key_file.0}),
            "do not go together",
        ),
        (json!({"sni": "not a name"}), "no certificate can name"),
        (json!({"alpn": [""]}), "no name of a protocol"),
        (json!({"minimum": "1.1"}), "1.1"),
    ];
    for (tls, wanted) in rows {
        let fault = load("https://127.0.0.1:1/", &json!({"tls": tls}), b"", None).unwrap_err();
        assert!(fault.contains(wanted), "{fault}");
    }
}
