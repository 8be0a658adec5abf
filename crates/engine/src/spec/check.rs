//! What a load may be: every absurd value is named in one sentence.

use super::{CallSpec, LoadSpec, SpecError};

const DAY_S: f64 = 86_400.0;
/// Longest time-out and drain: the histograms end at one hour.
const HOUR_S: f64 = 3_600.0;

impl LoadSpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        // A Linux process cannot hold more than about a million descriptors (fs.nr_open).
        whole("connections", self.connections, 1, 1_000_000)?;
        whole("threads", self.threads, 1, 1_024)?;
        if self.threads > self.connections {
            return Err(SpecError(format!(
                "threads: {} threads for {} connections leaves some without any; give at most as many threads as connections",
                self.threads, self.connections
            )));
        }
        self.check_streams()?;
        match (self.duration_s, self.requests) {
            (Some(duration), None) => time("duration_s", duration, 0.001, 7.0 * DAY_S)?,
            (None, Some(requests)) => whole("requests", requests, 1, 1_000_000_000_000)?,
            // A schedule says it.
            (None, None) if !self.schedule.is_empty() => {}
            (None, None) => {
                return fault(
                    "neither duration_s nor requests says when the load ends; give one of them",
                );
            }
            (Some(_), Some(_)) => {
                return fault(
                    "duration_s and requests both say when the load ends; give one of them",
                );
            }
        }
        time("warmup_s", self.warmup_s, 0.0, DAY_S)?;
        time("timeout_s", self.timeout_s, 0.001, HOUR_S)?;
        time("drain_s", self.drain_s, 0.0, HOUR_S)?;
        if let Some(rate) = self.rate {
            check_rate("rate", rate)?;
        }
        self.check_schedule()?;
        self.tls.check()?;
        if let Some(part) = self.part {
            part.check(self)?;
        }
        whole("check_every", self.check_every.unwrap_or(1), 1, u64::MAX)?;
        whole("max_examples", self.max_examples as u64, 0, 1_000)?;
        if let Some(status) = self.expect_status {
            // 1xx answers are interim: a request never ends with one.
            whole("expect_status", u64::from(status), 200, 999)?;
        }
        self.check_head()
    }

    fn check_streams(&self) -> Result<(), SpecError> {
        whole("streams", self.streams, 1, 65_535)?;
        whole(
            "connections × streams",
            self.connections * self.streams,
            1,
            10_000_000,
        )?;
        if self.streams > 1 && !self.keepalive {
            return fault(
                "streams: a connection that is closed after each request carries one at a time",
            );
        }
        if self.insecure && self.cacert.is_some() {
            return fault(
                "insecure accepts any certificate, so cacert has nothing to say; give one of them",
            );
        }
        self.grpc.as_ref().map_or(Ok(()), CallSpec::check)
    }

    fn check_head(&self) -> Result<(), SpecError> {
        check_method(&self.method)?;
        check_fields(&self.headers)?;
        self.check_mix()
    }
}

pub(super) fn check_method(method: &str) -> Result<(), SpecError> {
    if !is_token(method) {
        return Err(SpecError(format!(
            "method: {method:?} is not an HTTP method"
        )));
    }
    if method == "CONNECT" {
        return fault("method: CONNECT makes a tunnel, and a tunnel has no answer to measure");
    }
    Ok(())
}

pub(super) fn check_fields(headers: &[(String, String)]) -> Result<(), SpecError> {
    for (name, value) in headers {
        if !is_token(name) {
            return Err(SpecError(format!(
                "headers: {name:?} is not the name of a header field"
            )));
        }
        if !value.bytes().all(is_field_byte) {
            return Err(SpecError(format!(
                "headers: the value of {name} has a control character in it"
            )));
        }
        let framing = [
            "content-length",
            "transfer-encoding",
            "connection",
            "expect",
            "upgrade",
        ];
        if framing.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(SpecError(format!(
                "headers: {name} is written by the generator itself; leave it out (for connections use keepalive)"
            )));
        }
    }
    Ok(())
}

/// What may stand in the value of a header field (RFC 9110, section 5.5).
fn is_field_byte(byte: u8) -> bool {
    (byte >= b' ' || byte == b'\t') && byte != 0x7f
}

pub(super) fn fault<T>(sentence: &str) -> Result<T, SpecError> {
    Err(SpecError(sentence.into()))
}

pub(super) fn whole(field: &str, value: u64, least: u64, most: u64) -> Result<(), SpecError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SpecError(format!(
        "{field}: {value} is out of bounds; give {least} to {most}"
    )))
}

pub(super) fn check_rate(field: &str, rate: f64) -> Result<(), SpecError> {
    if rate.is_finite() && (1e-4..=1e7).contains(&rate) {
        return Ok(());
    }
    Err(SpecError(format!(
        "{field}: {rate} is not a rate this can keep; give requests per second above 0 and up to 10000000"
    )))
}

pub(super) fn time(field: &str, value: f64, least: f64, most: f64) -> Result<(), SpecError> {
    if value.is_finite() && (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SpecError(format!(
        "{field}: {value} is out of bounds; give {least} to {most} seconds"
    )))
}

/// A `token` of RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}
