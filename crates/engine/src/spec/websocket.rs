//! A WebSocket load as the JSON of a load spells it.

use serde::{Deserialize, Serialize};

use super::check::{fault, whole};
use super::{LoadSpec, SpecError};

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A message on a connection that stays, until it comes back.
    #[default]
    Echo,
    /// A connection, until the opening handshake is done.
    Connect,
    /// A message that one member of a room sends, until all members have it.
    Broadcast,
}

/// How WebSockets are loaded; the message is the body of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSocketSpec {
    /// See [`Mode`].
    #[serde(default)]
    pub mode: Mode,
    /// Instead of a body: a message of so many bytes.
    #[serde(default)]
    pub message_bytes: Option<u64>,
    /// Broadcast: messages on their way at once, at most. None: 1 in closed loop, 1000 in open loop.
    #[serde(default)]
    pub at_once: Option<u64>,
}

/// Larger messages are an upload.
const MOST_MESSAGE_BYTES: u64 = 1 << 30;
const OPEN_AT_ONCE: u64 = 1_000;

impl WebSocketSpec {
    /// Messages of a room on their way at once.
    #[must_use]
    pub fn at_once(&self, open: bool) -> u64 {
        self.at_once.unwrap_or(if open { OPEN_AT_ONCE } else { 1 })
    }

    /// What of the load does not go with it.
    pub fn check(&self, load: &LoadSpec) -> Result<(), SpecError> {
        if let Some(bytes) = self.message_bytes {
            whole("message_bytes", bytes, 1, MOST_MESSAGE_BYTES)?;
        }
        if let Some(at_once) = self.at_once {
            whole("at_once", at_once, 1, 1_000_000)?;
            if self.mode != Mode::Broadcast {
                return fault(
                    "websocket: at_once is for broadcast; elsewhere each connection has one message on its way",
                );
            }
        }
        if self.mode == Mode::Broadcast && load.threads > 1 {
            return fault(
                "websocket: all members of a room are heard by one thread; leave threads at 1",
            );
        }
        if self.mode == Mode::Broadcast && !load.keepalive {
            return fault("websocket: the members of a room stay; leave keepalive at true");
        }
        if load.method != "GET" || load.expect_status.is_some() {
            return fault(
                "websocket: an opening handshake is a GET and its right status is 101; leave out method and expect_status",
            );
        }
        Ok(())
    }
}
