//! The provided buffers of io_uring: the kernel takes one when bytes have come, and gets it back after they were read.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

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
