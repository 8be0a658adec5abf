//! The few fields of an answer that matter here.

/// The longest `grpc-message` that is kept; the rest is cut off. Enough for a sentence and the top of a traceback.
pub const MAX_MESSAGE: usize = 1024;

/// The field `grpc-status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GrpcStatus {
    #[default]
    Missing,
    Code(u32),
    /// It is there and is not a number.
    Unreadable,
}

/// How a gRPC server says what became of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GrpcTrailer<'a> {
    pub status: GrpcStatus,
    /// `grpc-message` as it came: percent-encoded, and cut after [`MAX_MESSAGE`] bytes.
    pub message: &'a [u8],
}

/// The field `content-length`: what the body must come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Length {
    #[default]
    Untold,
    Bytes(u64),
    /// It is there and is not a number, or is there twice with two numbers.
    Unreadable,
}

impl Length {
    /// One field more. The same number several times is one number (RFC 9110, section 8.6).
    fn take(&mut self, value: &[u8]) {
        for token in value.split(|byte| *byte == b',') {
            *self = match (*self, digits(token.trim_ascii())) {
                (Self::Untold, Some(bytes)) => Self::Bytes(bytes),
                (Self::Bytes(before), Some(bytes)) if before == bytes => Self::Bytes(bytes),
                _ => Self::Unreadable,
            };
        }
    }
}

/// What one header block says.
#[derive(Debug, Default)]
pub struct Fields {
    pub status: Option<u16>,
    pub length: Length,
    pub grpc: GrpcStatus,
    message: Vec<u8>,
    /// What is wrong with the block by RFC 9113, section 8: the stream is faulty, not the connection.
    pub fault: Option<&'static str>,
    regular: bool,
}

impl Fields {
    /// Before a block.
    #[inline]
    pub fn clear(&mut self) {
        self.status = None;
        self.length = Length::Untold;
        self.grpc = GrpcStatus::Missing;
        self.message.clear();
        self.fault = None;
        self.regular = false;
    }

    /// One field. The length of the name tells those that matter from nearly all others.
    #[inline]
    pub fn take(&mut self, name: &[u8], value: &[u8]) {
        if name.first() == Some(&b':') {
            return self.pseudo(name, value);
        }
        self.regular = true;
        match name.len() {
            11 if name == b"grpc-status" => {
                let code = digits(value).and_then(|code| u32::try_from(code).ok());
                self.grpc = code.map_or(GrpcStatus::Unreadable, GrpcStatus::Code);
            }
            12 if name == b"grpc-message" => {
                self.message.clear();
                self.message
                    .extend_from_slice(&value[..value.len().min(MAX_MESSAGE)]);
            }
            14 if name == b"content-length" => self.length.take(value),
            _ => {}
        }
    }

    #[inline]
    fn pseudo(&mut self, name: &[u8], value: &[u8]) {
        let status = match value {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                Some(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
            }
            _ => None,
        };
        let fault = match (name, status) {
            (b":status", None) => Some("its :status is not a number of three digits"),
            (b":status", _) if self.status.is_some() => Some("it has :status twice"),
            (b":status", _) if self.regular => Some("its :status comes after other fields"),
            (b":status", Some(_)) => None,
            _ => Some("it has a pseudo-header field other than :status"),
        };
        self.fault = self.fault.or(fault);
        self.status = status;
    }

    /// What it says of a gRPC call.
    #[inline]
    pub fn trailer(&self) -> GrpcTrailer<'_> {
        GrpcTrailer {
            status: self.grpc,
            message: &self.message,
        }
    }
}

/// Decimal digits and nothing else: `str::parse` would take a sign.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}
