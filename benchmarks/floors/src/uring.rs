//! Closed loop on kept connections over io_uring: multishot receives into provided buffers, sends in batches.
//!
//! With a MIN_WAIT, a wait goes on for so many microseconds until 64 completions (or as many as there are
//! connections) are there: fewer wake-ups, each with more to do. Linux 6.12.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{BufRingEntry, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use crate::shot::{REQUEST, Shot};
use crate::system::now;

const BUFFERS: usize = 4096;
const SIZE: usize = 4096;
/// Label of a send; others are numbers of connections.
const SENT: u64 = u64::MAX;

/// The provided buffers: memory the kernel chooses from. Never given back: the process ends first.
struct Pool {
    ring: *mut BufRingEntry,
    bytes: *mut u8,
    tail: u16,
}

impl Pool {
    fn register(ring: &IoUring) -> io::Result<Pool> {
        let entries =
            std::alloc::Layout::from_size_align(BUFFERS * 16, 4096).map_err(io::Error::other)?;
        // SAFETY: the layout is not empty.
        let memory = unsafe { std::alloc::alloc_zeroed(entries) }.cast::<BufRingEntry>();
        let bytes = Box::leak(vec![0_u8; BUFFERS * SIZE].into_boxed_slice()).as_mut_ptr();
        // SAFETY: page-aligned memory for BUFFERS entries, which is never freed.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(memory as u64, BUFFERS as u16, 0, 0)?
        };
        let mut pool = Pool {
            ring: memory,
            bytes,
            tail: 0,
        };
        for number in 0..BUFFERS as u16 {
            pool.give(number);
        }
        pool.publish();
        Ok(pool)
    }

    fn give(&mut self, number: u16) {
        let place = usize::from(self.tail) & (BUFFERS - 1);
        // SAFETY: the place is within the ring, the buffer within the bytes; the kernel looks at neither before
        // `publish`.
        unsafe {
            let entry = &mut *self.ring.add(place);
            entry.set_addr(self.bytes.add(usize::from(number) * SIZE) as u64);
            entry.set_len(SIZE as u32);
            entry.set_bid(number);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail lies in the first entry and is shared with the kernel, which reads it with an acquire.
        unsafe {
            AtomicU16::from_ptr(BufRingEntry::tail(self.ring).cast_mut())
                .store(self.tail, Ordering::Release)
        };
    }
}

/// Loads; returns how many requests were answered.
pub fn load(shot: &Shot) -> io::Result<u64> {
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(32_768)
        .build(4096)?;
    let mut pool = Pool::register(&ring)?;
    let connections = shot.connect()?;
    let end = shot.end();
    for (number, stream) in connections.iter().enumerate() {
        let fd = Fd(stream.as_raw_fd());
        push(&mut ring, &receive(fd, number))?;
        push(&mut ring, &ask(fd))?;
    }
    let mut missing = vec![shot.bytes; connections.len()];
    let mut done = Vec::with_capacity(32_768);
    let (mut requests, timeout) = (0, Timespec::new().nsec(100_000_000));
    let want = match shot.extra {
        Some(_) => connections.len().min(64),
        None => 1,
    };
    let waits = SubmitArgs::new()
        .timespec(&timeout)
        .min_wait_usec(shot.extra.unwrap_or(0.0) as u32);
    while now() < end {
        match ring.submitter().submit_with_args(want, &waits) {
            Err(error) if error.raw_os_error() != Some(libc::ETIME) => return Err(error),
            _ => {}
        }
        done.extend(
            ring.completion()
                .filter(|one| one.user_data() != SENT)
                .map(|one| (one.user_data() as usize, one.result(), one.flags())),
        );
        for (number, result, flags) in done.drain(..) {
            let fd = Fd(connections[number].as_raw_fd());
            if let Some(buffer) = cqueue::buffer_select(flags) {
                pool.give(buffer);
            }
            if !cqueue::more(flags) {
                push(&mut ring, &receive(fd, number))?;
            }
            let left = &mut missing[number];
            *left = left.saturating_sub(usize::try_from(result).unwrap_or(0));
            if *left == 0 {
                *left = shot.bytes;
                requests += 1;
                push(&mut ring, &ask(fd))?;
            }
        }
        pool.publish();
    }
    Ok(requests)
}

fn receive(fd: Fd, number: usize) -> Entry {
    opcode::RecvMulti::new(fd, 0)
        .build()
        .user_data(number as u64)
}

fn ask(fd: Fd) -> Entry {
    opcode::Send::new(fd, REQUEST.as_ptr(), REQUEST.len() as u32)
        .build()
        .flags(Flags::SKIP_SUCCESS)
        .user_data(SENT)
}

fn push(ring: &mut IoUring, entry: &Entry) -> io::Result<()> {
    loop {
        // SAFETY: what an entry points at is a constant, or is given to the kernel for ever.
        if unsafe { ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        ring.submit()?;
    }
}
