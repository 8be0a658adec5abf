//! A rate that changes with time, as the JSON of a load spells it.

use serde::{Deserialize, Serialize};

use super::check::{check_rate, fault, time};
use super::{LoadSpec, SpecError};
use crate::clock::{nanos, seconds};
use crate::pace::{Schedule, Step};

/// A piece of a schedule: one rate, or a ramp to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Requests per second at its beginning.
    pub rate: f64,
    /// At its end; none: the rate does not change.
    #[serde(default)]
    pub to_rate: Option<f64>,
    /// How long it takes.
    pub duration_s: f64,
}

/// Each step is told by itself, with three histograms of its own.
const MOST_STEPS: usize = 500;

impl StepSpec {
    fn step(&self) -> Step {
        Step {
            from: self.rate,
            to: self.to_rate.unwrap_or(self.rate),
            length: nanos(self.duration_s),
        }
    }

    fn check(&self) -> Result<(), SpecError> {
        for rate in [Some(self.rate), self.to_rate].into_iter().flatten() {
            // Nothing may be sent for a while, and a ramp may begin or end there.
            if rate != 0.0 {
                check_rate("schedule: rate", rate)?;
            }
        }
        time("schedule: duration_s", self.duration_s, 0.001, 86_400.0)
    }
}

impl LoadSpec {
    pub(super) fn check_schedule(&self) -> Result<(), SpecError> {
        if self.schedule.is_empty() {
            return Ok(());
        }
        if self.rate.is_some() {
            return fault("rate and schedule both say when requests are due; give one of them");
        }
        if self.requests.is_some() {
            return fault("requests: a schedule ends by its time; leave out the count");
        }
        if self.schedule.len() > MOST_STEPS {
            return Err(SpecError(format!(
                "schedule: {} steps are too many, each is told by itself; give at most {MOST_STEPS}",
                self.schedule.len()
            )));
        }
        self.schedule.iter().try_for_each(StepSpec::check)?;
        let steps: Vec<Step> = self.schedule.iter().map(StepSpec::step).collect();
        if steps.iter().all(|step| step.requests() == 0.0) {
            return fault("schedule: all its rates are 0, so nothing would be sent");
        }
        let whole = seconds(steps.iter().map(|step| step.length).sum());
        match self.duration_s {
            Some(duration) if nanos(duration) < nanos(whole) => Err(SpecError(format!(
                "duration_s: {duration} s is shorter than the schedule, which takes {whole} s; leave it out, or give more"
            ))),
            _ => Ok(()),
        }
    }

    /// The steps of a load whose rate changes; the last one is longer where the load is.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.schedule.iter().map(StepSpec::step).collect();
        let whole: u64 = steps.iter().map(|step| step.length).sum();
        let held = self.duration_s.map_or(0, nanos).saturating_sub(whole);
        if let Some(last) = steps.last().copied()
            && held > 0
        {
            steps.push(Step {
                from: last.to,
                to: last.to,
                length: held,
            });
        }
        steps
    }

    /// When requests are due; None in closed loop. Its time begins with the warm-up, which has the first rate.
    #[must_use]
    pub fn pace(&self) -> Option<Schedule> {
        if let Some(rate) = self.rate {
            return Some(Schedule::constant(rate));
        }
        let mut steps = self.steps();
        let first = steps.first()?.from;
        if self.warmup_s > 0.0 {
            let warmup = Step {
                from: first,
                to: first,
                length: nanos(self.warmup_s),
            };
            steps.insert(0, warmup);
        }
        Some(Schedule::new(&steps))
    }

    /// Requests per second of an open loop, on average; None in closed loop.
    #[must_use]
    pub fn mean_rate(&self) -> Option<f64> {
        if self.schedule.is_empty() {
            return self.rate;
        }
        let steps = self.steps();
        let whole: u64 = steps.iter().map(|step| step.length).sum();
        Some(steps.iter().map(Step::requests).sum::<f64>() / seconds(whole))
    }

    /// Whether requests fall due whatever the server does.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rate.is_some() || !self.schedule.is_empty()
    }
}
