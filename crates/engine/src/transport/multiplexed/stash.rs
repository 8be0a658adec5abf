//! Events of streams, kept from when their connection was read until the worker asks for them.

use crate::protocol::http2::{GrpcStatus, GrpcTrailer, Length, StreamEvent};

/// A piece of the bytes kept.
#[derive(Clone, Copy)]
struct Piece {
    at: usize,
    length: usize,
}

#[derive(Clone, Copy)]
struct Trailer {
    status: GrpcStatus,
    message: Piece,
}

enum Kept {
    Head {
        status: u16,
        length: Length,
        grpc: Trailer,
        end: bool,
    },
    Data {
        bytes: Piece,
        end: bool,
    },
    Trailers {
        grpc: Trailer,
    },
    Reset {
        code: u32,
    },
    Refused,
    Malformed {
        why: &'static str,
    },
}

/// See the module. Emptied for each batch, so its memory is that of the largest.
#[derive(Default)]
pub struct Stash {
    events: Vec<Kept>,
    bytes: Vec<u8>,
}

impl Stash {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.events.clear();
        self.bytes.clear();
    }

    /// Keeps an event and returns its number.
    #[inline]
    pub fn keep(&mut self, event: StreamEvent<'_>) -> usize {
        let kept = match event {
            StreamEvent::Head {
                status,
                length,
                grpc,
                end,
            } => Kept::Head {
                status,
                length,
                grpc: self.trailer(grpc),
                end,
            },
            StreamEvent::Data { bytes, end } => Kept::Data {
                bytes: self.piece(bytes),
                end,
            },
            StreamEvent::Trailers { grpc } => Kept::Trailers {
                grpc: self.trailer(grpc),
            },
            StreamEvent::Reset { code } => Kept::Reset { code },
            StreamEvent::Refused => Kept::Refused,
            StreamEvent::Malformed { why } => Kept::Malformed { why },
        };
        self.events.push(kept);
        self.events.len() - 1
    }

    /// The event of a number.
    #[inline]
    pub fn event(&self, number: usize) -> Option<StreamEvent<'_>> {
        Some(match self.events.get(number)? {
            Kept::Head {
                status,
                length,
                grpc,
                end,
            } => StreamEvent::Head {
                status: *status,
                length: *length,
                grpc: self.told(*grpc),
                end: *end,
            },
            Kept::Data { bytes, end } => StreamEvent::Data {
                bytes: self.bytes(*bytes),
                end: *end,
            },
            Kept::Trailers { grpc } => StreamEvent::Trailers {
                grpc: self.told(*grpc),
            },
            Kept::Reset { code } => StreamEvent::Reset { code: *code },
            Kept::Refused => StreamEvent::Refused,
            Kept::Malformed { why } => StreamEvent::Malformed { why },
        })
    }

    #[inline]
    fn piece(&mut self, bytes: &[u8]) -> Piece {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Piece {
            at,
            length: bytes.len(),
        }
    }

    #[inline]
    fn trailer(&mut self, grpc: GrpcTrailer<'_>) -> Trailer {
        Trailer {
            status: grpc.status,
            message: self.piece(grpc.message),
        }
    }

    #[inline]
    fn bytes(&self, piece: Piece) -> &[u8] {
        &self.bytes[piece.at..piece.at + piece.length]
    }

    #[inline]
    fn told(&self, trailer: Trailer) -> GrpcTrailer<'_> {
        GrpcTrailer {
            status: trailer.status,
            message: self.bytes(trailer.message),
        }
    }
}
