//! The memory a ring shares with the kernel: provided buffers, labels, flights, stamps, and their end.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::mem::ManuallyDrop;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::squeue::Entry;
use io_uring::types::{BufRingEntry, CancelBuilder, RecvMsgOut, Timespec};

use crate::clock::monotonic;
use crate::clock::{Nanos, SECOND};
use crate::os::sockets::{CONTROL, Stamps};
use crate::transport::uring::Uring;
use crate::transport::{Received, Token};

/// Slots have 24 of the bits.
pub const MAX_SLOTS: usize = 1 << 24;

/// What was asked of the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Connect.
    Connect,
    /// Receive, again and again.
    Receive,
    /// Send a request.
    Send,
    /// Send bytes of a flight; the slot is its number.
    Fly,
    /// Let another operation or a socket go; only a failure is told, and it means that there was nothing to let go.
    Release,
    /// Wait until another poller has something; once.
    Watch,
}

/// Packs.
pub fn label(operation: Operation, token: Token) -> u64 {
    u64::from(token.generation) << 32 | (operation as u64) << 24 | u64::from(token.slot)
}

/// Unpacks.
pub fn unlabel(label: u64) -> (Operation, Token) {
    let operation = match (label >> 24) as u8 {
        0 => Operation::Connect,
        1 => Operation::Receive,
        2 => Operation::Send,
        3 => Operation::Fly,
        4 => Operation::Release,
        _ => Operation::Watch,
    };
    (
        operation,
        Token {
            slot: label as u32 & (MAX_SLOTS as u32 - 1),
            generation: (label >> 32) as u32,
        },
    )
}

/// The only buffer group.
pub const GROUP: u16 = 0;
/// Bytes in all buffers together, as far as the bounds of one allow.
const ALL: usize = 4 * 1024 * 1024;
/// The least and the most bytes in one buffer. Loopback delivers segments of up to 64 kB; a longer one takes several.
const SIZES: (usize, usize) = (1024, 32 * 1024);
/// The least and the most buffers. Whoever finds none left has to ask to receive anew.
const COUNTS: (usize, usize) = (64, 4096);
/// Between two buffers: were their beginnings a power of two apart, small answers would all want the same few lines of
/// the caches.
const STAGGER: usize = 64;
const PAGE: usize = 4096;

/// See the module. Lent buffers are given back with [`Buffers::give_back`].
pub struct Buffers {
    ring: *mut BufRingEntry,
    layout: Layout,
    bytes: Box<[u8]>,
    /// Of one buffer.
    size: usize,
    count: u16,
    tail: u16,
    lent: Vec<u16>,
}

impl Buffers {
    /// Registers `wanted` buffers (rounded to a power of two within bounds); the more there are, the smaller each is.
    pub fn register(uring: &IoUring, wanted: usize) -> io::Result<Buffers> {
        let count = wanted.next_power_of_two().clamp(COUNTS.0, COUNTS.1);
        let layout = Layout::array::<BufRingEntry>(count)
            .and_then(|layout| layout.align_to(PAGE))
            .map_err(io::Error::other)?;
        // SAFETY: the layout is not empty.
        let ring = unsafe { alloc_zeroed(layout) }.cast::<BufRingEntry>();
        if ring.is_null() {
            handle_alloc_error(layout);
        }
        let size = (ALL / count).clamp(SIZES.0, SIZES.1);
        let mut buffers = Buffers {
            ring,
            layout,
            bytes: vec![0; count * (size + STAGGER)].into(),
            size,
            count: count as u16,
            tail: 0,
            lent: Vec::with_capacity(count),
        };
        // SAFETY: `ring` is page-aligned memory for `count` entries, a power of two, and it stays allocated until
        // `Buffers` is dropped, which the transport does only after the kernel has let go of it.
        unsafe {
            uring
                .submitter()
                .register_buf_ring_with_flags(ring as u64, count as u16, GROUP, 0)?
        };
        buffers.lent.extend(0..count as u16);
        buffers.give_back();
        Ok(buffers)
    }

    /// Notes that the kernel has filled a buffer.
    #[inline]
    pub fn lent(&mut self, buffer: u16) {
        self.lent.push(buffer);
    }

    /// What the kernel wrote into a buffer that has not been given back since.
    #[inline]
    pub fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        let start = usize::from(buffer) * (self.size + STAGGER);
        &self.bytes[start..start + length.min(self.size)]
    }

    /// Lends all buffers that were read to the kernel again. No slice of `bytes` may be in use, which `&mut` ensures.
    pub fn give_back(&mut self) {
        if self.lent.is_empty() {
            return;
        }
        let base = self.bytes.as_mut_ptr();
        for buffer in self.lent.drain(..) {
            let place = usize::from(self.tail & (self.count - 1));
            // SAFETY: `place` is below `count`, for which `ring` was allocated; the kernel does not look at entries
            // from `tail` on until the store below. The address is that of buffer number `buffer`, within `bytes`.
            unsafe {
                let entry = &mut *self.ring.add(place);
                entry.set_addr(base.add(usize::from(buffer) * (self.size + STAGGER)) as u64);
                entry.set_len(self.size as u32);
                entry.set_bid(buffer);
            }
            self.tail = self.tail.wrapping_add(1);
        }
        // SAFETY: the tail lies within the first entry of the ring, is 2-aligned, and is shared with the kernel, which
        // reads it with an acquire that this release pairs with.
        unsafe {
            AtomicU16::from_ptr(BufRingEntry::tail(self.ring).cast_mut())
                .store(self.tail, Ordering::Release)
        };
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated in `register` with this layout and not freed since.
        unsafe { dealloc(self.ring.cast(), self.layout) };
    }
}

/// One send under way.
struct Flight {
    token: Token,
    bytes: Vec<u8>,
    sent: usize,
}

/// All sends under way of bytes that belong to one connection alone.
#[derive(Default)]
pub struct Flights {
    under_way: Vec<Option<Flight>>,
    free: Vec<u32>,
    spare: Vec<Vec<u8>>,
}

/// What the end of a send means.
pub enum Landing {
    /// The kernel took a part: the rest is to be sent.
    Part,
    /// All is out, or the peer is gone; the bytes are the kernel's no more.
    Over(Token),
}

/// A buffer that was larger is not kept for later.
const SPARE_BYTES: usize = 64 * 1024;
/// More buffers are not kept for later.
const SPARES: usize = 1024;

impl Flights {
    /// Takes the bytes away and leaves an empty buffer; returns the number of the flight.
    pub fn depart(&mut self, token: Token, bytes: &mut Vec<u8>) -> u32 {
        let empty = self.spare();
        self.begin(token, std::mem::replace(bytes, empty))
    }

    /// Takes a copy of the bytes; returns the number of the flight.
    pub fn copy(&mut self, token: Token, bytes: &[u8]) -> u32 {
        let mut copy = self.spare();
        copy.extend_from_slice(bytes);
        self.begin(token, copy)
    }

    fn spare(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    fn begin(&mut self, token: Token, bytes: Vec<u8>) -> u32 {
        let flight = Some(Flight {
            token,
            bytes,
            sent: 0,
        });
        match self.free.pop() {
            Some(number) => {
                self.under_way[number as usize] = flight;
                number
            }
            None => {
                self.under_way.push(flight);
                self.under_way.len() as u32 - 1
            }
        }
    }

    /// Whose flight it is, and what of it is not out. The bytes do not move before [`Landing::Over`].
    pub fn rest(&self, number: u32) -> Option<(Token, &[u8])> {
        let flight = self.under_way.get(number as usize)?.as_ref()?;
        Some((flight.token, &flight.bytes[flight.sent..]))
    }

    /// The kernel has finished with a flight: `result` is how many bytes it took, or a negative `errno`.
    pub fn arrive(&mut self, number: u32, result: i32) -> Option<Landing> {
        let place = self.under_way.get_mut(number as usize)?;
        let flight = place.as_mut()?;
        if let Ok(count @ 1..) = usize::try_from(result) {
            flight.sent += count;
            if flight.sent < flight.bytes.len() {
                return Some(Landing::Part);
            }
        }
        let Flight {
            token, mut bytes, ..
        } = place.take()?;
        self.free.push(number);
        if bytes.capacity() <= SPARE_BYTES && self.spare.len() < SPARES {
            bytes.clear();
            self.spare.push(bytes);
        }
        Some(Landing::Over(token))
    }
}

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

impl Uring {
    /// Queues an operation, submitting what is queued if there is no room.
    pub(super) fn push(&mut self, entry: &Entry) {
        loop {
            // SAFETY: every entry made here points only to memory that outlives its operation: a flight's bytes are
            // kept until its completion; the target's address, the requests and the buffers are freed in `drop`, after
            // the kernel has let go of all operations.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // A full completion queue refuses (EBUSY) until it is read; the kernel keeps what has no room.
            if self.ring.submit().is_err() {
                self.collect();
            }
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        self.let_go();
        let _ = self.ring.submit();
        for link in self.links.drain(..).flatten() {
            let _ = link.socket.shutdown(Shutdown::Both);
        }
        let deadline = monotonic() + SECOND;
        while self.under_way > 0 && monotonic() < deadline && self.wait(SECOND / 10).is_ok() {
            self.collect();
            self.completions.clear();
        }
        // Sends do not tell of their success, and this waits for the last of them. For receives it would do as well, but
        // in quadratic time.
        let cancelled = self
            .ring
            .submitter()
            .register_sync_cancel(Some(Timespec::new().sec(1)), CancelBuilder::any());
        let gone = cancelled.is_ok()
            || cancelled.is_err_and(|error| error.raw_os_error() == Some(libc::ENOENT));
        // SAFETY: each is dropped here only, once, and not used after. The ring goes first: with no operation left, the
        // kernel then knows none of the memory.
        unsafe { ManuallyDrop::drop(&mut self.ring) };
        if gone {
            // SAFETY: as above.
            unsafe {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.requests);
                ManuallyDrop::drop(&mut self.flights);
                ManuallyDrop::drop(&mut self.target);
                ManuallyDrop::drop(&mut self.stamped);
            }
        }
        // Otherwise operations may still be under way: memory they know is leaked rather than reused under them.
    }
}

#[cfg(test)]
mod label_tests {
    use super::*;

    #[test]
    fn a_label_comes_back_as_it_was() {
        for operation in [
            Operation::Connect,
            Operation::Receive,
            Operation::Send,
            Operation::Fly,
            Operation::Release,
            Operation::Watch,
        ] {
            let token = Token {
                slot: MAX_SLOTS as u32 - 1,
                generation: u32::MAX,
            };
            let (seen, same) = unlabel(label(operation, token));
            assert!(seen == operation && same == token);
        }
    }
}

#[cfg(test)]
mod flight_tests {
    use super::*;

    const TOKEN: Token = Token {
        slot: 0,
        generation: 1,
    };

    #[test]
    fn a_copy_takes_the_memory_of_one_flight_that_is_over() {
        let mut flights = Flights::default();
        for number in [(); 4].map(|()| flights.copy(TOKEN, b"GET")) {
            let landing = flights.arrive(number, 3);
            assert!(matches!(landing, Some(Landing::Over(TOKEN))));
        }
        let number = flights.copy(TOKEN, b"PUT");
        assert_eq!(flights.rest(number), Some((TOKEN, &b"PUT"[..])));
        assert_eq!(flights.spare.len(), 3);
    }
}

#[cfg(test)]
mod stamped_tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::Duration;

    use crate::clock::monotonic;
    use crate::clock::{MILLISECOND, SECOND};
    use crate::transport::uring::Uring;
    use crate::transport::{Event, Need, Probe, Reading, Received, Token, Transport};

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
        let read = uring.receive(TOKEN, &mut reading, Need::All);
        assert!(matches!(read, Received::Piece(b"now")), "{read:?}");
        let at = uring.arrived().unwrap();
        // The two clocks are not read at the same moment.
        assert!(
            (before - MILLISECOND..after + 5 * MILLISECOND).contains(&at),
            "{before} {at} {after}"
        );
        assert!(matches!(
            uring.receive(TOKEN, &mut reading, Need::All),
            Received::Nothing
        ));
        drop(peer);
        let mut reading = event(&mut uring).unwrap();
        assert!(matches!(
            uring.receive(TOKEN, &mut reading, Need::All),
            Received::Closed
        ));
    }
}
