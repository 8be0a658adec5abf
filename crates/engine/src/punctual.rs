//! Being on time: the real-time class, and the last moments before a request is due, waited awake.

use serde::Serialize;

use crate::clock::{MICROSECOND, Nanos};

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
        let class = if crate::os::enter_real_time() {
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
        let used = crate::os::thread_cpu();
        if let Some((then, used_then)) = self.looked.replace((now, used)) {
            let share =
                used.saturating_sub(used_then) as f64 / now.saturating_sub(then).max(1) as f64;
            if now > then && share > MOST {
                crate::os::leave_real_time();
                self.class = Class::GivenUp;
            }
        }
    }
}

/// Longest before one request. Waking takes longer once in a hundred times, where a hypervisor has to do it.
const LONGEST: Nanos = 100 * MICROSECOND;
/// One part in so many of the time between requests.
const SHARE: Nanos = 20;

/// When to stop sleeping, and how long was waited awake.
#[derive(Debug)]
pub struct Awake {
    /// The request waited for.
    due: Nanos,
    /// From when on.
    from: Nanos,
    /// When that began in fact; `Nanos::MAX`: not yet.
    began: Nanos,
    /// Of the share, not used yet.
    left: Nanos,
    waited: Nanos,
}

impl Awake {
    /// Nothing is waited for at `now`.
    pub fn new(now: Nanos) -> Awake {
        Awake {
            due: now,
            from: Nanos::MAX,
            began: Nanos::MAX,
            left: 0,
            waited: 0,
        }
    }

    /// Until when a thread of this class sleeps at most that has to wake for `wake`, and for a request due at `due`; `now`:
    /// not at all.
    #[inline]
    pub fn sleep_until(&mut self, class: Class, now: Nanos, wake: Nanos, due: Nanos) -> Nanos {
        if class != Class::RealTime || due == Nanos::MAX {
            return wake;
        }
        if due != self.due {
            self.plan(due);
        }
        if now >= self.from && now < due {
            self.began = self.began.min(now);
            return now;
        }
        wake.min(self.from)
    }

    fn plan(&mut self, due: Nanos) {
        self.waited += self.due.saturating_sub(self.began);
        let earned = self.left + due.saturating_sub(self.due) / SHARE;
        let length = earned.min(LONGEST);
        self.left = (earned - length).min(LONGEST);
        self.due = due;
        self.from = due - length;
        self.began = Nanos::MAX;
    }

    /// How long was waited awake before requests since this was last asked.
    pub fn take(&mut self) -> Nanos {
        std::mem::take(&mut self.waited)
    }
}

#[cfg(test)]
mod priority_tests {
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
            assert!(!crate::os::is_real_time());
        })
        .join()
        .expect("the thread's own assertions");
    }

    #[test]
    fn a_moment_is_no_time_to_judge_by() {
        let mut priority = Priority {
            class: Class::RealTime,
            looked: Some((SECOND, crate::os::thread_cpu())),
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

#[cfg(test)]
mod awake_tests {
    use super::*;
    use crate::clock::MILLISECOND;

    const ALWAYS: Nanos = 100 * MILLISECOND;

    /// A thread that wakes late by 10 us, looks every microsecond while it is awake, and has `gap` between requests.
    fn waits(gap: Nanos, class: Class) -> (Nanos, Nanos) {
        let (mut awake, mut now, mut late) = (Awake::new(0), 0, 0);
        for number in 1..=1_000 {
            let due = number * gap;
            while now < due {
                let until = awake.sleep_until(class, now, due, due);
                now = if until <= now {
                    now + MICROSECOND
                } else {
                    until + 10 * MICROSECOND
                };
            }
            late += now - due;
        }
        awake.plan(ALWAYS * gap);
        (late / 1_000, awake.take())
    }

    #[test]
    fn who_waits_awake_is_on_time_for_a_twentieth_of_its_cpu_at_most() {
        let (late, waited) = waits(MILLISECOND, Class::RealTime);
        assert!(late <= MICROSECOND);
        assert_eq!(waited, 1_000 * (MILLISECOND / SHARE - 10 * MICROSECOND));
        let (_, waited) = waits(100 * MICROSECOND, Class::RealTime);
        assert!(waited <= 100_000 * MICROSECOND / SHARE);
        let (late, waited) = waits(10 * MILLISECOND, Class::RealTime);
        assert!(late <= MICROSECOND);
        assert_eq!(waited, 1_000 * (LONGEST - 10 * MICROSECOND));
    }

    #[test]
    fn without_the_real_time_class_all_of_it_is_slept() {
        for class in [Class::Normal, Class::GivenUp] {
            assert_eq!(waits(MILLISECOND, class), (10 * MICROSECOND, 0));
        }
    }

    #[test]
    fn what_else_there_is_to_wake_for_comes_first() {
        let mut awake = Awake::new(0);
        let due = 10 * MILLISECOND;
        let mut until = |now, wake| awake.sleep_until(Class::RealTime, now, wake, due);
        assert_eq!(until(0, MILLISECOND), MILLISECOND);
        assert_eq!(until(MILLISECOND, due), due - LONGEST);
        assert_eq!(until(due - MICROSECOND, due), due - MICROSECOND);
        assert_eq!(until(due, due), due - LONGEST); // late: nothing is slept
    }

    #[test]
    fn a_burst_is_owed_no_more_than_one_wait() {
        let mut awake = Awake::new(0);
        awake.sleep_until(Class::RealTime, 0, ALWAYS, ALWAYS);
        let next = ALWAYS + MICROSECOND;
        assert_eq!(
            awake.sleep_until(Class::RealTime, ALWAYS, next, next),
            ALWAYS
        );
        let third = next + MICROSECOND;
        let from = awake.sleep_until(Class::RealTime, next - LONGEST, third, third);
        assert!(from > third - MICROSECOND);
    }

    #[test]
    fn a_load_without_due_requests_sleeps_as_it_likes() {
        let mut awake = Awake::new(0);
        let until = awake.sleep_until(Class::RealTime, 0, ALWAYS, Nanos::MAX);
        assert_eq!(until, ALWAYS);
    }
}
