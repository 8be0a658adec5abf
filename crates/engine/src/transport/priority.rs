//! The scheduler's real-time class for a thread that has to be on time, while it needs little of its CPU.
//!
//! A thread of an open loop sleeps until a request is due. Woken then, it stands behind whatever else its CPU has to do,
//! for a time slice or two: milliseconds, on a machine that does anything else. In the real-time class it does not.

use serde::Serialize;

use super::os;
use crate::clock::Nanos;

/// Of its time, the most a thread may use a CPU and keep the class: it takes the CPU from everybody else, which on a
/// small machine is the server.
const MOST: f64 = 0.6;

/// How a thread stands with the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// In the real-time class.
    RealTime,
    /// In it until it needed too much of its CPU.
    GivenUp,
    /// Like everybody else: nobody asked, or the system did not allow it.
    #[default]
    Normal,
}

/// The class of the calling thread, looked after.
#[derive(Debug, Default)]
pub struct Priority {
    class: Class,
    looked: Option<(Nanos, Nanos)>,
}

impl Priority {
    /// Enters the real-time class with its lowest priority, if the system allows it (CAP_SYS_NICE, RLIMIT_RTPRIO).
    pub fn enter() -> Priority {
        let class = if os::enter_real_time() {
            Class::RealTime
        } else {
            Class::Normal
        };
        Priority {
            class,
            looked: None,
        }
    }

    /// How it stands.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Leaves the class for good if more than [`MOST`] of the time since the last look went by on a CPU.
    pub fn look(&mut self, now: Nanos) {
        if self.class != Class::RealTime {
            return;
        }
        let used = os::thread_cpu();
        if let Some((then, used_then)) = self.looked.replace((now, used)) {
            let share =
                used.saturating_sub(used_then) as f64 / now.saturating_sub(then).max(1) as f64;
            if now > then && share > MOST {
                os::leave_real_time();
                self.class = Class::GivenUp;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::clock::{Clock, Monotonic, SECOND};

    fn spin(length: Duration) {
        let end = Instant::now() + length;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn who_computes_all_the_time_leaves_the_class_and_who_sleeps_keeps_it() {
        // On a thread of its own, which nobody needs afterwards.
        std::thread::spawn(|| {
            let mut priority = Priority::enter();
            if priority.class() == Class::Normal {
                return; // not allowed here
            }
            priority.look(Monotonic.now());
            std::thread::sleep(Duration::from_millis(20));
            priority.look(Monotonic.now());
            assert_eq!(priority.class(), Class::RealTime);
            spin(Duration::from_millis(50));
            priority.look(Monotonic.now());
            assert_eq!(priority.class(), Class::GivenUp);
            assert!(!os::is_real_time());
        })
        .join()
        .expect("the thread's own assertions");
    }

    #[test]
    fn a_moment_is_no_time_to_judge_by() {
        let mut priority = Priority {
            class: Class::RealTime,
            looked: Some((SECOND, os::thread_cpu())),
        };
        priority.look(SECOND);
        assert_eq!(priority.class(), Class::RealTime);
    }

    #[test]
    fn of_several_threads_the_least_is_told() {
        assert_eq!(Class::RealTime.max(Class::Normal), Class::Normal);
        assert_eq!(Class::GivenUp.max(Class::RealTime), Class::GivenUp);
    }
}
