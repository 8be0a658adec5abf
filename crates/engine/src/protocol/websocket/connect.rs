//! An opening handshake, as a worker drives it: the request is to be connected.

use super::frame::{CLOSE, write};
use super::handshake::{Answer, Upgrade};
use crate::clock::Nanos;
use crate::outcome::Outcome;
use crate::protocol::websocket::WebSocketError;
use crate::protocol::{Bytes, Fault, Payload, Progress, Protocol};

/// The request of the handshake, and the goodbye after it.
#[derive(Debug, Clone)]
pub struct Ask {
    request: Payload,
    key: [u8; 24],
    goodbye: Payload,
}

impl Ask {
    /// All connections of a worker use one key: that a proxy could take one answer for another (RFC 6455, section 10.3)
    /// is nothing a load is afraid of, and a request that is always the same is made once.
    #[must_use]
    pub fn new(upgrade: &mut Upgrade) -> Ask {
        let (mut request, mut goodbye) = (Vec::new(), Vec::new());
        let key = upgrade.write(&mut request);
        write(&mut goodbye, CLOSE, &1000_u16.to_be_bytes(), [0; 4]);
        Ask {
            request: Payload::Shared(request.into()),
            key,
            goodbye: Payload::Shared(goodbye.into()),
        }
    }
}

/// One connection's side.
#[derive(Debug, Default)]
pub struct Connect {
    answer: Answer,
    heard: bool,
}

/// What the handshake came to.
pub type Shaken = Result<(), WebSocketError>;

impl Protocol for Connect {
    type Medium = Bytes;
    type Ask = Ask;
    type Answer = Shaken;

    fn new() -> Self {
        Connect::default()
    }

    fn begin<'a>(&mut self, ask: &'a mut Ask, _: u64) -> &'a Payload {
        self.answer = Answer::to(ask.key);
        self.heard = false;
        &ask.request
    }

    fn feed(&mut self, mut bytes: &[u8], _: &Ask) -> Result<Progress<Shaken>, Fault> {
        self.heard = true;
        match self.answer.feed(&mut bytes) {
            Ok(false) => Ok(Progress::More),
            Ok(true) => Ok(Progress::Done(Ok(()))),
            Err(error @ WebSocketError::NotUpgraded { .. }) => Ok(Progress::Done(Err(error))),
            Err(error) => Err(Fault {
                outcome: Outcome::BadProtocol,
                why: error.to_string(),
            }),
        }
    }

    fn eof(&mut self, _: &Ask) -> Result<Option<Shaken>, Fault> {
        match self.heard {
            false => Ok(None),
            true => Err(Fault {
                outcome: Outcome::Reset,
                why: WebSocketError::ClosedInHandshake.to_string(),
            }),
        }
    }

    fn farewell<'a>(shaken: &Shaken, ask: &'a Ask) -> Option<&'a Payload> {
        shaken.is_ok().then_some(&ask.goodbye)
    }

    fn judge(shaken: &Shaken, _: &Ask, _: Nanos) -> Outcome {
        match shaken {
            Ok(()) => Outcome::Ok,
            Err(_) => Outcome::BadStatus,
        }
    }

    fn explain(&self, shaken: &Shaken, _: &Ask) -> String {
        match shaken {
            Ok(()) => "the handshake was right".into(),
            Err(error) => error.to_string(),
        }
    }

    fn is_reusable(_: &Shaken) -> bool {
        false
    }
}
