//! One of several requests of a load, as its JSON spells it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::check::{check_fields, check_method, whole};
use super::{LoadSpec, SpecError};

/// What is asked as often as its weight says. What is left out is as in the load itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// What results call it.
    pub name: String,
    /// How often, compared with the others.
    #[serde(default = "once")]
    pub weight: f64,
    /// None: that of the load.
    #[serde(default)]
    pub method: Option<String>,
    /// Path and query; none: those of the URL.
    #[serde(default)]
    pub path: Option<String>,
    /// Besides those of the load; one of the same name is instead of it.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// None: that of the load.
    #[serde(default)]
    pub body: Option<Content>,
    /// The right status; none: that of the load.
    #[serde(default)]
    pub expect_status: Option<u16>,
    /// The right body, compared whole.
    #[serde(default)]
    pub expect_body: Option<Content>,
    /// What the right body has in it.
    #[serde(default)]
    pub expect_contains: Option<String>,
}

fn once() -> f64 {
    1.0
}

/// Bytes in JSON: text, or base64 where they are none.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// As it stands.
    Text(String),
    /// Encoded.
    Base64(String),
}

impl Content {
    /// The bytes; `field` is what to call them in a fault.
    pub fn bytes(&self, field: &str) -> Result<Vec<u8>, SpecError> {
        match self {
            Content::Text(text) => Ok(text.clone().into_bytes()),
            Content::Base64(text) => STANDARD
                .decode(text)
                .map_err(|error| SpecError(format!("{field}: this is not base64: {error}"))),
        }
    }
}

/// Each is told by itself, with two histograms of its own.
const MOST_REQUESTS: usize = 500;

impl LoadSpec {
    pub(super) fn check_mix(&self) -> Result<(), SpecError> {
        if self.mix.len() > MOST_REQUESTS {
            return Err(SpecError(format!(
                "mix: {} requests are too many, each is told by itself; give at most {MOST_REQUESTS}",
                self.mix.len()
            )));
        }
        for (number, request) in self.mix.iter().enumerate() {
            let fault = |why: &str| Err(SpecError(format!("{}: {why}", request.label())));
            let named = request.name.trim();
            if named.is_empty() {
                return Err(SpecError(format!("request {}: it has no name", number + 1)));
            }
            if self.mix[..number]
                .iter()
                .any(|other| other.name == request.name)
            {
                return fault("another one has this name");
            }
            if !(request.weight.is_finite() && request.weight > 0.0) {
                return fault(&format!(
                    "weight: {} is no weight; give a number above 0",
                    request.weight
                ));
            }
            let in_request =
                |fault: SpecError| SpecError(format!("{}: {}", request.label(), fault.0));
            if let Some(method) = &request.method {
                check_method(method).map_err(in_request)?;
            }
            check_fields(&request.headers).map_err(in_request)?;
            if let Some(status) = request.expect_status {
                whole("expect_status", u64::from(status), 200, 999).map_err(in_request)?;
            }
        }
        Ok(())
    }
}

impl RequestSpec {
    /// As faults name it.
    pub fn label(&self) -> String {
        format!("request {:?}", self.name)
    }
}
