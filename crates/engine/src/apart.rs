//! Work that waits for others (name servers, a server that describes itself) on a thread of its own, so that whoever
//! waits for it can give up. What was given up runs on until its own limits end it, and nobody hears of it.

use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

/// As large as that of the thread that would do it otherwise: compilers of descriptions go deep.
const STACK_BYTES: usize = 8 << 20;

/// Does `work` and calls `go_on` every `glance` until it is done; None: `go_on` gave up.
///
/// # Errors
/// The system has no more threads.
pub fn apart<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
    glance: Duration,
    mut go_on: impl FnMut() -> bool,
) -> io::Result<Option<T>> {
    let (sender, answer) = channel();
    let builder = Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    let thread = builder.spawn(move || {
        // Nobody listens where it was given up.
        let _ = sender.send(work());
    })?;
    loop {
        match answer.recv_timeout(glance) {
            Ok(done) => return Ok(Some(done)),
            Err(RecvTimeoutError::Timeout) if go_on() => {}
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            // It ended without an answer: it panicked, and that fault is ours to tell.
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Ok(None),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn work_is_waited_for_as_long_as_somebody_wants_it() {
        let glance = Duration::from_millis(5);
        let done = apart("quick", || 7, glance, || true);
        assert_eq!(done.unwrap(), Some(7));
        let mut left = 3;
        let began = Instant::now();
        let slow = || std::thread::sleep(Duration::from_secs(20));
        let given_up = apart("slow", slow, glance, || {
            left -= 1;
            left > 0
        });
        assert_eq!((given_up.unwrap(), left), (None, 0));
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_panic_is_told_where_the_work_is_waited_for() {
        let found = std::panic::catch_unwind(|| {
            apart(
                "faulty",
                || panic!("a fault of ours"),
                Duration::from_secs(5),
                || true,
            )
            .map(|none: Option<()>| none)
        });
        assert!(found.is_err());
    }
}
