//! Bytes the kernel reads while it sends them: owned here until it has, then used again for others.

use crate::transport::Token;

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
        let empty = self.spare.pop().unwrap_or_default();
        let flight = Some(Flight {
            token,
            bytes: std::mem::replace(bytes, empty),
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
