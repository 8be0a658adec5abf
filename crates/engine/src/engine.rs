//! Runs a load: one thread per worker, this one tells what happens.

mod part;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::json;

use crate::apart::apart;
use crate::clock::{Clock, MILLISECOND, Monotonic, Nanos, nanos};
use crate::course::Course;
use crate::progress::Progress;
use crate::record::{Record, Slice};
use crate::results::LoadResult;
use crate::spec::{Length, LoadSpec, SpecError};
use crate::target::{Target, TargetError};
use crate::transport::{LEAVING, os};
use part::Part;

/// Raised when a load cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// What was asked for makes no sense.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The target may not be loaded.
    #[error("{0}")]
    NotAllowed(String),
    /// The system does not let us.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The listener ended it while it was prepared: there is nothing to tell.
    #[error("the load was ended before its first request")]
    Ended,
}

impl From<TargetError> for EngineError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Spec(fault) => EngineError::Spec(fault),
            TargetError::NotAllowed(_) | TargetError::NotLoopback(_) => {
                EngineError::NotAllowed(error.to_string())
            }
            TargetError::Unknown { .. } => EngineError::Spec(SpecError(error.to_string())),
        }
    }
}

/// Told an event as one line of JSON; returns whether the load goes on.
pub type Listener<'a> = &'a mut dyn FnMut(&str) -> bool;

/// At least four ticks a second, with room for a late wake-up.
const TICK: Nanos = 200 * MILLISECOND;
/// How soon the beginning is noticed.
const GLANCE: Nanos = 2 * MILLISECOND;
/// Descriptors for everything that is not a connection: standard streams, pollers, what the host program has open.
const OTHER_FILES: u64 = 64;

/// Runs a whole load and returns its result. `on_event` is called on this thread, at least four times a second.
pub fn run(
    spec: &LoadSpec,
    body: &[u8],
    expected: Option<&[u8]>,
    on_event: Listener<'_>,
) -> Result<LoadResult, EngineError> {
    let spec = &allowed(spec, os::most_files()?);
    let target = prepared(spec, body, expected, on_event)?;
    os::allow_files(files(spec.connections, spec.threads))?;
    let span = match spec.length() {
        Length::Span(span) => Some(span),
        Length::Requests(_) => None,
    };
    let course = Course::new(
        nanos(spec.warmup_s),
        span,
        nanos(spec.drain_s),
        spec.threads as usize,
    );
    let mut progress = Progress::new(spec.threads);
    let (sender, slices) = channel();
    let mut told_end = false;
    let results: Vec<io::Result<Record>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..spec.threads)
            .map(|thread| {
                let part = Part::new(spec, &target, &course, thread, sender.clone());
                // Its record hangs up at the end of the span; the drain is attended, too.
                let present = sender.clone();
                scope.spawn(move || {
                    let done = part.work();
                    drop(present);
                    done
                })
            })
            .collect();
        drop(sender);
        told_end = attend(&course, &slices, &mut progress, on_event);
        // A worker that panics has a fault of ours to tell, so the panic goes on here.
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let mut total = Record::new(0, spec.max_examples, None);
    for result in results {
        total.add(result?);
    }
    if !told_end {
        // Where a count ended the span, its end is known only now. Nobody can stop a load that is over.
        on_event(&json!({"event": "span_ended", "monotonic_ns": total.span.end}).to_string());
    }
    Ok(LoadResult::new(spec, &target, total, progress.series()))
}

/// Looks up the target and asks it for what it describes, which waits for others: meanwhile `on_event` is called.
fn prepared(
    spec: &LoadSpec,
    body: &[u8],
    expected: Option<&[u8]>,
    on_event: Listener<'_>,
) -> Result<Target, EngineError> {
    let (spec, body, expected) = (spec.clone(), body.to_vec(), expected.map(<[u8]>::to_vec));
    let work = move || Target::new(&spec, &body, expected.as_deref());
    let event = json!({"event": "preparing"}).to_string();
    match apart("prepare", work, Duration::from_nanos(TICK), || {
        on_event(&event)
    })? {
        Some(target) => Ok(target?),
        None => Err(EngineError::Ended),
    }
}

/// How many files a load has open at most: some connections are still being closed when others take their places.
fn files(connections: u64, threads: u64) -> u64 {
    let leaving = connections.min(LEAVING as u64 * threads);
    connections + leaving + 4 * threads + OTHER_FILES
}

/// The load with as many connections as `most` open files allow, where it takes fewer than it asks for.
fn allowed(spec: &LoadSpec, most: u64) -> LoadSpec {
    let mut spec = spec.clone();
    if spec.fewer_connections && files(spec.connections, spec.threads) > most {
        // Each of few needs a second file while it is closed, of many only some.
        let room = most.saturating_sub(files(0, spec.threads));
        let many = room.saturating_sub(LEAVING as u64 * spec.threads);
        spec.connections = (room / 2).max(many).clamp(spec.threads, spec.connections);
    }
    spec
}

/// Tells events until all workers are done. Returns whether the end of the span was among them.
fn attend(
    course: &Course,
    slices: &Receiver<Slice>,
    progress: &mut Progress,
    on_event: Listener<'_>,
) -> bool {
    let mut milestones = Milestones::default();
    let mut next_tick = Monotonic.now() + TICK;
    loop {
        let now = Monotonic.now();
        let mut go_on = true;
        for event in milestones.passed(course, now) {
            go_on &= on_event(&event);
        }
        if now >= next_tick {
            next_tick = now + TICK;
            let tick = progress.tick(now, milestones.start.unwrap_or(now), milestones.over);
            go_on &= on_event(&serde_json::to_string(&tick).expect("numbers and names"));
        }
        if !go_on {
            course.stop.store(true, Ordering::Relaxed);
        }
        let wake = next_tick.min(milestones.next(course, now));
        match slices.recv_timeout(Duration::from_nanos(wake.saturating_sub(now))) {
            Ok(slice) => progress.add(&slice),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return milestones.over,
        }
    }
}

/// The events that come once.
#[derive(Default)]
struct Milestones {
    start: Option<Nanos>,
    measuring: bool,
    over: bool,
}

impl Milestones {
    fn passed(&mut self, course: &Course, now: Nanos) -> Vec<String> {
        let Some(origin) = course.origin() else {
            return Vec::new();
        };
        let start = origin + course.warmup;
        let mut events = Vec::new();
        if self.start.replace(start).is_none() {
            events.push(
                json!({"event": "connected", "opened": course.opened.load(Ordering::SeqCst)}),
            );
        }
        if !self.measuring && now >= start {
            self.measuring = true;
            events.push(json!({"event": "measuring", "monotonic_ns": start}));
        }
        if let Some(end) = course.end(start)
            && !self.over
            && now >= end
        {
            self.over = true;
            events.push(json!({"event": "span_ended", "monotonic_ns": end}));
        }
        events.into_iter().map(|event| event.to_string()).collect()
    }

    fn next(&self, course: &Course, now: Nanos) -> Nanos {
        match self.start {
            None => now + GLANCE,
            Some(start) if !self.measuring => start,
            Some(start) if !self.over => course.end(start).unwrap_or(Nanos::MAX),
            Some(_) => Nanos::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(fields: &str) -> LoadSpec {
        let json = format!(
            r#"{{"url": "http://127.0.0.1/", "duration_s": 1, "rate": 10, "connections": 1000, {fields}}}"#
        );
        LoadSpec::from_json(&json).unwrap()
    }

    #[test]
    fn connections_that_nobody_asked_for_are_as_many_as_files_allow() {
        for threads in [1, 4] {
            for most in [100, 256, 600, 1_024, 1_400] {
                let asked = spec(&format!(
                    r#""fewer_connections": true, "threads": {threads}"#
                ));
                let had = allowed(&asked, most).connections;
                assert!(files(had, threads) <= most, "{most}: {had}");
                assert!(
                    files(had + 1, threads) > most || had == 1_000,
                    "{most}: {had}"
                );
            }
        }
        assert_eq!(
            allowed(&spec(r#""fewer_connections": true"#), 4_096).connections,
            1_000
        );
        let asked = spec(r#""fewer_connections": false"#);
        assert_eq!(
            allowed(&asked, 1_024).connections,
            1_000,
            "what was asked for is not changed"
        );
        let none = allowed(&spec(r#""fewer_connections": true, "threads": 2"#), 10);
        assert_eq!(
            none.connections, 2,
            "too few for any: the limit says so itself"
        );
    }
}
