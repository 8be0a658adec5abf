//! Frames about the connection, or about a stream as a whole.

use super::StreamEvent;
use super::error::{GoAway, Http2Error};
use super::frame::{self, ACK, FLOW_CONTROL_ERROR, Header, Kind, PROTOCOL_ERROR, REFUSED_STREAM};
use super::session::{MAX_WINDOW, Session};
use crate::protocol::excerpt::excerpt;

/// So many frames in a row that carry nothing are a flood. A server that keeps an idle connection alive with a PING
/// every ten seconds may do so for a day.
const MOST_IDLE_FRAMES: u32 = 10_000;

impl Session {
    /// A frame that carries nothing, and costs work.
    #[inline]
    pub(super) fn idle(&mut self, kind: Kind) -> Result<(), Http2Error> {
        self.idle_frames += 1;
        match self.idle_frames > MOST_IDLE_FRAMES {
            true => Err(Http2Error::Flood {
                kind,
                limit: MOST_IDLE_FRAMES,
            }),
            false => Ok(()),
        }
    }

    /// A frame that is replied to. Bytes of an answer between do not excuse it: where the server takes no replies they
    /// wait here, so many at most.
    fn question(&mut self, header: &Header) -> Result<(), Http2Error> {
        if header.has(ACK) {
            return Ok(());
        }
        self.questions += 1;
        match self.questions > MOST_IDLE_FRAMES {
            true => Err(Http2Error::Flood {
                kind: header.kind,
                limit: MOST_IDLE_FRAMES,
            }),
            false => Ok(()),
        }
    }

    /// A request goes out, or an answer has ended.
    #[inline]
    pub(super) fn active(&mut self) {
        (self.idle_frames, self.questions) = (0, 0);
    }

    /// A frame on a stream: this side has begun it, be it that it has ended since.
    #[inline]
    pub(super) fn known(&self, kind: Kind, stream: u32) -> Result<(), Http2Error> {
        match stream {
            0 => Err(bad(kind, "it is for no stream")),
            _ if stream.is_multiple_of(2) || stream >= self.next_id => {
                Err(Http2Error::IdleStream { kind, stream })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn control(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        // A window can be widened 2^31 - 1 times at most, and a server may do so for each piece it reads of an upload.
        if header.kind != Kind::WINDOW_UPDATE {
            self.idle(header.kind)?;
        }
        let about_connection = matches!(header.kind, Kind::SETTINGS | Kind::PING | Kind::GOAWAY);
        if about_connection && header.stream != 0 {
            return Err(bad(header.kind, "it is for a stream"));
        }
        if matches!(header.kind, Kind::SETTINGS | Kind::PING) {
            self.question(header)?;
        }
        match header.kind {
            Kind::SETTINGS => self.take_settings(header, payload, out),
            Kind::PING => ping(header, payload, out),
            Kind::GOAWAY => self.go_away(payload, on),
            Kind::WINDOW_UPDATE => self.widen(header.stream, payload, out, on),
            Kind::RST_STREAM => self.reset(header.stream, payload, on),
            Kind::PRIORITY => match (header.stream, payload.len()) {
                (0, _) => Err(bad(header.kind, "it is for no stream")),
                (_, 5) => Ok(()),
                _ => Err(bad(header.kind, "it is not of 5 bytes")),
            },
            _ => Err(Http2Error::Pushed),
        }
    }

    fn take_settings(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Http2Error> {
        if header.has(ACK) {
            return match payload.len() {
                0 => Ok(()),
                _ => Err(bad(Kind::SETTINGS, "an acknowledgement has a payload")),
            };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(bad(Kind::SETTINGS, "its length is not a multiple of 6"));
        }
        for &[n0, n1, v0, v1, v2, v3] in settings {
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            self.set(u16::from_be_bytes([n0, n1]), value)?;
        }
        self.ready = true;
        frame::begin(out, 0, Kind::SETTINGS, ACK, 0);
        self.flush(out);
        Ok(())
    }

    fn set(&mut self, setting: u16, value: u32) -> Result<(), Http2Error> {
        let out_of_bounds = |setting| Err(Http2Error::BadSetting { setting, value });
        match setting {
            0x1 => self.table.allow(value),
            0x2 if value != 0 => return out_of_bounds("ENABLE_PUSH"),
            0x3 => self.peer.streams = value,
            0x4 if value > MAX_WINDOW => return out_of_bounds("INITIAL_WINDOW_SIZE"),
            0x4 => {
                // RFC 9113, section 6.9.2: windows in use move by the difference, below 0 if need be.
                let by = i64::from(value) - i64::from(self.peer.stream_window);
                self.peer.stream_window = value;
                for stream in self.streams.each_live() {
                    stream.window += by;
                    if stream.window > i64::from(MAX_WINDOW) {
                        return Err(Http2Error::WindowOverflow);
                    }
                }
            }
            0x5 if !(16_384..1 << 24).contains(&value) => return out_of_bounds("MAX_FRAME_SIZE"),
            0x5 => self.peer.max_frame = value as usize,
            // MAX_HEADER_LIST_SIZE is advice, and what is unknown is ignored (section 6.5.2).
            _ => {}
        }
        Ok(())
    }

    fn go_away(
        &mut self,
        payload: &[u8],
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        let Some((&[l0, l1, l2, l3, c0, c1, c2, c3], debug)) = payload.split_first_chunk() else {
            return Err(bad(Kind::GOAWAY, "it is shorter than 8 bytes"));
        };
        let last_stream = u32::from_be_bytes([l0, l1, l2, l3]) & MAX_WINDOW;
        if let Some(before) = &self.goaway
            && last_stream > before.last_stream
        {
            return Err(bad(Kind::GOAWAY, "it takes back streams it had refused"));
        }
        self.goaway = Some(GoAway {
            last_stream,
            code: u32::from_be_bytes([c0, c1, c2, c3]),
            debug: excerpt(debug),
        });
        for tag in 0..self.streams.tags() {
            if self
                .streams
                .live(tag)
                .is_some_and(|stream| stream.id > last_stream)
            {
                self.streams.end(tag);
                on(tag, StreamEvent::Refused);
            }
        }
        Ok(())
    }

    fn widen(
        &mut self,
        id: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        let by = i64::from(word(Kind::WINDOW_UPDATE, payload)? & MAX_WINDOW);
        if id == 0 {
            self.peer.window += by;
            if by == 0 {
                return Err(bad(Kind::WINDOW_UPDATE, "it widens the window by nothing"));
            }
            if self.peer.window > i64::from(MAX_WINDOW) {
                return Err(Http2Error::WindowOverflow);
            }
            self.flush(out);
            return Ok(());
        }
        self.known(Kind::WINDOW_UPDATE, id)?;
        let Some((tag, stream)) = self.streams.find(id) else {
            return self.idle(Kind::WINDOW_UPDATE);
        };
        stream.window += by;
        if by == 0 {
            let why = "the server widens its window by nothing";
            self.spoil(tag, PROTOCOL_ERROR, why, out, on);
        } else if stream.window > i64::from(MAX_WINDOW) {
            let why = "the server widens its window beyond 2147483647 bytes";
            self.spoil(tag, FLOW_CONTROL_ERROR, why, out, on);
        } else {
            self.flush_one(tag, out);
        }
        Ok(())
    }

    fn reset(
        &mut self,
        id: u32,
        payload: &[u8],
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        let code = word(Kind::RST_STREAM, payload)?;
        self.known(Kind::RST_STREAM, id)?;
        let Some((tag, _)) = self.streams.find(id) else {
            return Ok(());
        };
        self.streams.end(tag);
        self.active();
        on(
            tag,
            match code {
                REFUSED_STREAM => StreamEvent::Refused,
                _ => StreamEvent::Reset { code },
            },
        );
        Ok(())
    }
}

fn ping(header: &Header, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Http2Error> {
    if payload.len() != 8 {
        return Err(bad(Kind::PING, "it is not of 8 bytes"));
    }
    if !header.has(ACK) {
        frame::begin(out, 8, Kind::PING, ACK, 0);
        out.extend_from_slice(payload);
    }
    Ok(())
}

fn word(kind: Kind, payload: &[u8]) -> Result<u32, Http2Error> {
    match *payload {
        [b0, b1, b2, b3] => Ok(u32::from_be_bytes([b0, b1, b2, b3])),
        _ => Err(bad(kind, "it is not of 4 bytes")),
    }
}

const fn bad(kind: Kind, why: &'static str) -> Http2Error {
    Http2Error::BadFrame { kind, why }
}
