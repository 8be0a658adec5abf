//! Receives that bring the kernel's time stamp with the bytes: a completion is seen with its batch, and that is late.

use std::io;

use io_uring::types::RecvMsgOut;

use crate::clock::Nanos;
use crate::transport::Received;
use crate::transport::stamps::{CONTROL, Stamps};

/// Stamps, and what each receive asks for beside bytes: room for one.
pub struct Stamped {
    stamps: Stamps,
    /// The kernel reads it when a receive begins: it must not move.
    wanted: Box<libc::msghdr>,
}

impl Stamped {
    /// Nothing was received yet.
    pub fn new() -> Stamped {
        // SAFETY: `msghdr` is plain numbers and pointers, for which all zeroes is a value.
        let mut wanted: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        wanted.msg_controllen = CONTROL as _;
        Stamped {
            stamps: Stamps::new(),
            wanted,
        }
    }

    /// What a receive asks for.
    pub fn wanted(&self) -> *const libc::msghdr {
        &raw const *self.wanted
    }

    /// See [`Stamps::align`].
    pub fn align(&mut self) {
        self.stamps.align();
    }

    /// When what was unwrapped last came; None: no stamp was with it.
    pub fn last(&self) -> Option<Nanos> {
        self.stamps.last()
    }

    /// Takes the stamp off what a receive brought, which lies before the bytes.
    pub fn unwrap<'a>(&mut self, received: &'a [u8]) -> Received<&'a [u8]> {
        let Ok(told) = RecvMsgOut::parse(received, &self.wanted) else {
            return Received::Failed(io::Error::from_raw_os_error(libc::EPROTO));
        };
        match told.payload_data().len() {
            0 => Received::Closed,
            count => {
                self.stamps.note(told.control_data());
                Received::Piece(&received[received.len() - count..])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::Duration;

    use crate::clock::{MILLISECOND, SECOND};
    use crate::transport::os::monotonic;
    use crate::transport::uring::Uring;
    use crate::transport::{Event, Reading, Received, Token, Transport};

    const TOKEN: Token = Token {
        slot: 0,
        generation: 1,
    };

    /// The next event, and how it is to be read.
    fn event(uring: &mut Uring) -> Option<Reading> {
        let (deadline, mut events) = (monotonic() + 5 * SECOND, Vec::new());
        while events.is_empty() {
            assert!(monotonic() < deadline, "nothing came");
            uring.poll(monotonic(), deadline, &mut events).unwrap();
        }
        match events.remove(0) {
            Event::Readable(TOKEN, reading) => Some(reading),
            Event::Connected(TOKEN) => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_comes_is_stamped_with_its_moment_however_late_it_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let Ok(uring) = Uring::new(listener.local_addr().unwrap(), 1) else {
            return; // a system without io_uring
        };
        let mut uring = uring.stamped();
        uring.connect(TOKEN).unwrap();
        assert!(event(&mut uring).is_none());
        let (mut peer, _) = listener.accept().unwrap();
        // The receive begins, and the first socket that asks switches stamps on for the system, a moment later.
        uring
            .poll(monotonic(), monotonic(), &mut Vec::new())
            .unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let before = monotonic();
        peer.write_all(b"now").unwrap();
        let after = monotonic();
        std::thread::sleep(Duration::from_millis(30));
        let mut reading = event(&mut uring).unwrap();
        let read = uring.received(TOKEN, &mut reading);
        assert!(matches!(read, Received::Piece(b"now")), "{read:?}");
        let at = uring.arrived().unwrap();
        // The two clocks are not read at the same moment.
        assert!(
            (before - MILLISECOND..after + 5 * MILLISECOND).contains(&at),
            "{before} {at} {after}"
        );
        assert!(matches!(
            uring.received(TOKEN, &mut reading),
            Received::Nothing
        ));
        drop(peer);
        let mut reading = event(&mut uring).unwrap();
        assert!(matches!(
            uring.received(TOKEN, &mut reading),
            Received::Closed
        ));
    }
}
