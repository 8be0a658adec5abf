//! Bodies of requests, as far as the server's windows let them go.

use super::error::NotTaken;
use super::frame::{self, END_STREAM, Kind};
use super::session::Session;

/// The largest DATA frame this side writes although a server may allow 16 MB: streams share the connection.
const LARGEST_FRAME: usize = 65_536;

impl Session {
    /// More of the body of a request, all of it taken; `end`: this is the last of it. What the windows hold back is
    /// kept and sent by and by.
    ///
    /// # Errors
    /// The request has ended, or too much waits for the windows already; nothing was taken.
    #[inline]
    pub fn send(
        &mut self,
        tag: u32,
        bytes: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), NotTaken> {
        let limit = self.settings.max_waiting;
        let stream = self
            .streams
            .live(tag)
            .filter(|stream| !stream.closing)
            .ok_or(NotTaken::NotSending(tag))?;
        let waiting = stream.waits();
        let window = match waiting {
            0 => stream.window.min(self.peer.window).max(0),
            _ => 0,
        };
        let free = usize::try_from(window).unwrap_or(usize::MAX);
        let (now, later) = bytes.split_at(bytes.len().min(free));
        if waiting.saturating_add(later.len()) > limit {
            return Err(NotTaken::TooMuchWaiting { limit });
        }
        stream.closing = end;
        let last = end && waiting == 0 && later.is_empty();
        let goes_out = !now.is_empty() || last;
        if goes_out {
            let largest = self.peer.max_frame.min(LARGEST_FRAME);
            write(out, stream.id, now, last, largest);
            stream.window -= now.len() as i64;
            self.peer.window -= now.len() as i64;
            stream.sent = last;
        }
        if !later.is_empty() {
            stream.keep(later);
            self.streams.waiting += usize::from(waiting == 0);
        }
        if goes_out {
            self.active();
        }
        Ok(())
    }

    /// A window was widened: writes what it lets go. Streams take turns with the connection's window.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let tags = self.streams.tags();
        let mut looked_at = 0;
        while self.streams.waiting > 0 && self.peer.window > 0 && looked_at < tags {
            let tag = self.turn % tags;
            self.flush_one(tag, out);
            self.turn = tag + 1;
            looked_at += 1;
        }
    }

    /// The window of one stream was widened.
    pub(super) fn flush_one(&mut self, tag: u32, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.live(tag) else {
            return;
        };
        let waiting = stream.waits();
        let window = stream.window.min(self.peer.window);
        if waiting == 0 || window <= 0 {
            return;
        }
        let now = waiting.min(usize::try_from(window).unwrap_or(usize::MAX));
        let last = stream.closing && now == waiting;
        let bytes = &stream.waiting[stream.written..stream.written + now];
        let largest = self.peer.max_frame.min(LARGEST_FRAME);
        write(out, stream.id, bytes, last, largest);
        stream.window -= now as i64;
        self.peer.window -= now as i64;
        stream.written += now;
        if now == waiting {
            stream.sent = last;
            stream.flushed();
            self.streams.waiting -= 1;
        }
        self.active();
    }
}

/// Writes bytes as DATA frames, an empty one if there are none.
#[inline]
fn write(out: &mut Vec<u8>, id: u32, mut bytes: &[u8], end: bool, largest: usize) {
    loop {
        let (piece, rest) = bytes.split_at(bytes.len().min(largest));
        let flags = match end && rest.is_empty() {
            true => END_STREAM,
            false => 0,
        };
        frame::begin(out, piece.len(), Kind::DATA, flags, id);
        out.extend_from_slice(piece);
        bytes = rest;
        if bytes.is_empty() {
            return;
        }
    }
}
