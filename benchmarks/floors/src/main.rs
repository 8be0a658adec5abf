//! The floors of the benchmarks: what the kernel alone costs a generator, and the plainest targets there can be.
//!
//! ```text
//! floors target ANSWER_BYTES [close | work MICROSECONDS]    serves; prints port and bytes on the wire of an answer
//! floors epoll ADDRESS CONNECTIONS SECONDS BYTES            closed loop on kept connections, edge-triggered epoll
//! floors discard ADDRESS CONNECTIONS SECONDS BYTES          the same, answers dropped in the kernel (MSG_TRUNC)
//! floors uring ADDRESS CONNECTIONS SECONDS BYTES [MIN_WAIT_US]  the same over io_uring, optionally batched
//! floors fresh ADDRESS CONNECTIONS SECONDS BYTES            closed loop, a connection for each request
//! floors arrivals ADDRESS CONNECTIONS SECONDS BYTES RATE    open loop, one request after another at its moment
//! ```
//!
//! The clients know how many BYTES an answer has and count them; they look at nothing in it and keep no time of any
//! request. Each prints how many requests it made as `{"requests": N}`; the targets count for themselves.

#[cfg(target_os = "linux")]
mod arrivals;
#[cfg(target_os = "linux")]
mod epoll;
#[cfg(target_os = "linux")]
mod fresh;
#[cfg(target_os = "linux")]
mod shot;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod target;
#[cfg(target_os = "linux")]
mod uring;

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (what, rest) = words.split_first().unwrap_or((&"", &[]));
    let requests = match *what {
        "target" => return target::serve(rest),
        "epoll" => epoll::load(&shot::Shot::read(rest)?, epoll::Reading::Copied)?,
        "discard" => epoll::load(&shot::Shot::read(rest)?, epoll::Reading::Discarded)?,
        "uring" => uring::load(&shot::Shot::read(rest)?)?,
        "fresh" => fresh::load(&shot::Shot::read(rest)?)?,
        "arrivals" => arrivals::load(&shot::Shot::read(rest)?)?,
        _ => {
            return Err(std::io::Error::other(
                "say one of target, epoll, discard, uring, fresh, arrivals; see the top of main.rs",
            ));
        }
    };
    println!("{{\"requests\": {requests}}}");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the floors are Linux' own: epoll and io_uring");
}
