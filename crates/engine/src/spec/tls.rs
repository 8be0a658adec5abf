//! How connections are encrypted, as the JSON of a load spells it; whom to trust stands in the load itself.

use std::path::PathBuf;

use serde::Deserialize;

use super::SpecError;
use super::check::fault;

/// The least version that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Version {
    /// TLS 1.2, the oldest there is here.
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// The name that is asked for, and that the certificate must have; none: the URL's host.
    #[serde(default)]
    pub sni: Option<String>,
    /// Protocols that are offered (ALPN); none: the one that is spoken. An empty list offers nothing.
    #[serde(default)]
    pub alpn: Option<Vec<String>>,
    /// File with this side's own certificate, those above it behind it.
    #[serde(default)]
    pub cert: Option<PathBuf>,
    /// File with its key; none: it is in the same file.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// See [`Version`].
    #[serde(default)]
    pub minimum: Version,
}

impl TlsSpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.key.is_some() && self.cert.is_none() {
            return fault("tls: key is that of a certificate; give cert too");
        }
        for name in self.alpn.iter().flatten() {
            // RFC 7301, section 3.1.
            if name.is_empty() || name.len() > 255 {
                return Err(SpecError(format!(
                    "tls: alpn: {name:?} is no name of a protocol"
                )));
            }
        }
        Ok(())
    }
}
