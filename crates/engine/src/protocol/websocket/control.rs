//! Control frames: pings, goodbyes, and frames that carry nothing.

use super::error::WebSocketError;
use super::frame::{self, CLOSE, PING};
use super::session::Session;
use crate::protocol::excerpt::excerpt;

/// So many frames in a row that carry nothing are a flood. A server that pings an idle connection every ten seconds
/// may do so for a day.
const MOST_IDLE_FRAMES: u32 = 10_000;

/// Of control frames: as good as any, see [`frame::framed`].
pub const MASK: [u8; 4] = [0x76, 0x65, 0x6c, 0x6f];

impl Session {
    /// A whole control frame, whose payload is in `cut`.
    pub(super) fn control(
        &mut self,
        opcode: u8,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), WebSocketError> {
        let payload = &self.cut[..length];
        match opcode {
            PING if !self.closing => frame::write(out, frame::PONG, payload, MASK),
            CLOSE => {
                let goodbye = goodbye(payload)?;
                if !std::mem::replace(&mut self.closing, true) {
                    frame::write(out, CLOSE, &payload[..length.min(2)], MASK);
                }
                return Err(goodbye);
            }
            // A pong nobody asked for is allowed (section 5.5.3).
            _ => {}
        }
        Ok(())
    }

    /// A frame that carries nothing, and costs work.
    pub(super) fn idle(&mut self) -> Result<(), WebSocketError> {
        self.idle_frames += 1;
        match self.idle_frames > MOST_IDLE_FRAMES {
            true => Err(WebSocketError::Flood {
                limit: MOST_IDLE_FRAMES,
            }),
            false => Ok(()),
        }
    }
}

/// What a Close frame says (section 5.5.1).
fn goodbye(payload: &[u8]) -> Result<WebSocketError, WebSocketError> {
    let bad = |why| Err(WebSocketError::BadFrame { why });
    let (code, reason) = match payload {
        [] => (None, &[][..]),
        [_] => return bad("it is a Close frame of one byte"),
        [c0, c1, reason @ ..] => (Some(u16::from_be_bytes([*c0, *c1])), reason),
    };
    // Section 7.4: what stands between the two ranges is for the inside of programs, or not given out.
    if !matches!(code, None | Some(1000..=1003 | 1007..=1014 | 3000..=4999)) {
        return bad("it is a Close frame with a code that may not be sent");
    }
    match std::str::from_utf8(reason) {
        Ok(_) => Ok(WebSocketError::Closed {
            code,
            reason: excerpt(reason),
        }),
        Err(_) => bad("it is a Close frame whose reason is not UTF-8"),
    }
}
