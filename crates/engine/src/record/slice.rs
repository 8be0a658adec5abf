//! A piece of the timeline.

use crate::clock::{MILLISECOND, Nanos};
use crate::durations::Coarse;

/// The timeline is reported in slices of this length.
pub const SLICE: Nanos = 250 * MILLISECOND;
/// Slices in a second of the series.
pub const SLICES_PER_SECOND: i64 = 4;

/// What one thread saw in one slice of the timeline.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Which thread.
    pub thread: u64,
    /// Number of the slice, counted from the start of the measured span; negative during warm-up.
    pub index: i64,
    /// Requests that came to an end.
    pub requests: u64,
    /// Those of them with a right answer.
    pub ok: u64,
    /// Requests in flight when the slice ended.
    pub in_flight: u64,
    /// Requests due and not sent then, because all connections were busy.
    pub waiting: u64,
    /// Latency from when requests were due.
    pub latency: Coarse,
}
