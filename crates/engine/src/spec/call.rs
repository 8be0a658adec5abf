//! A gRPC call as the JSON of a load spells it.

use std::path::PathBuf;

use serde::Deserialize;

use super::SpecError;
use crate::protocol::grpc::Kind;

/// Which call is made, with which messages. Either they are encoded already (`kind` is told: the load's body and
/// expected body are then messages, each with its prefix, as they stand on the wire), or they are JSON and described by
/// `.proto` files or by the server itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSpec {
    /// `package.Service/Method`; none: the path of the URL.
    #[serde(default)]
    pub call: Option<String>,
    /// Who sends several messages; none: the description of the call says it.
    #[serde(default)]
    pub kind: Option<Kind>,
    /// Files that describe the call; none, and no `kind`: the server is asked (reflection).
    #[serde(default)]
    pub proto: Vec<PathBuf>,
    /// Folders in which their imports are looked for.
    #[serde(default)]
    pub include: Vec<PathBuf>,
    /// The message as JSON, or a list of them; none: one without fields.
    #[serde(default)]
    pub data: Option<String>,
    /// How many messages a call sends.
    #[serde(default)]
    pub messages: Option<u64>,
    /// The right answer as JSON; of a call with several, all of them as a list, or the one that each is like.
    #[serde(default)]
    pub expect_data: Option<String>,
}

/// More messages in a call are a mistake, or a load of days.
const MOST_MESSAGES: u64 = 1_000_000;

impl CallSpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let described = !self.proto.is_empty()
            || self.data.is_some()
            || self.messages.is_some()
            || self.expect_data.is_some();
        if self.kind.is_some() && described {
            return super::check::fault(
                "grpc: kind says that the messages are encoded already, so proto, data, messages and expect_data do not go with it",
            );
        }
        if let Some(messages) = self.messages {
            super::check::whole("messages", messages, 1, MOST_MESSAGES)?;
        }
        Ok(())
    }
}
