//! Where io_uring is forbidden, as in most containers, epoll serves without a word lost.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;
use velodrome_engine::engine;
use velodrome_engine::spec::LoadSpec;

/// Forbids io_uring to the calling thread and the threads it starts, with a seccomp filter.
fn forbid_io_uring() {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let number_at = 0;
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, number_at),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_io_uring_setup as u32,
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: `program` and its steps live through the call, which copies them.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program),
            0
        );
    }
}

#[test]
fn where_io_uring_is_forbidden_auto_takes_epoll_and_asking_for_it_says_why() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for peer in listener.incoming() {
            let mut peer = peer.unwrap();
            let mut lines = BufReader::new(peer.try_clone().unwrap()).lines();
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() {
                    peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                        .unwrap();
                }
            }
        }
    });
    forbid_io_uring();
    let run = |transport| {
        let spec = json!({
            "url": format!("http://127.0.0.1:{port}/"), "requests": 10, "connections": 1, "transport": transport
        });
        let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
        engine::run(&spec, b"", None, &mut |_| true)
    };
    let result = serde_json::to_value(run("auto").unwrap()).unwrap();
    assert_eq!(
        (&result["ok"], &result["generator"]["transport"]),
        (&json!(10), &json!("epoll"))
    );
    let refusal = run("io_uring").unwrap_err().to_string();
    assert!(
        refusal.contains("io_uring cannot be used here") && refusal.contains("auto"),
        "{refusal}"
    );
}
