//! Being on time: the real-time class while a thread needs little of its CPU, and a timer set as much earlier as the thread
//! has seen itself wake late.
//!
//! A thread of an open loop sleeps until a request is due. Woken then, it stands behind whatever else its CPU has to do,
//! for a time slice or two: milliseconds, on a machine that does anything else. In the real-time class it does not.

use serde::Serialize;

use crate::clock::{MICROSECOND, Nanos};
use crate::os;

/// Of its time, the most a thread may use a CPU and keep the class: it takes the CPU from everybody else, which on a
/// small machine is the server.
const MOST: f64 = 0.6;
/// A thread that gave the class up takes it again when it used less than this: well below [`MOST`], so that it does not
/// come and go with every look.
const LITTLE: f64 = 0.4;

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
    /// The least it had since [`Priority::begin_span`].
    least: Class,
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
            least: class,
            looked: None,
        }
    }

    /// How it stands.
    pub fn class(&self) -> Class {
        self.class
    }

    /// From now on it is noted whether the class was given up.
    pub fn begin_span(&mut self) {
        self.least = self.class;
    }

    /// The least the thread had since the span began: one that gave the class up for a while was not on time then.
    pub fn least(&self) -> Class {
        self.least
    }

    /// Leaves the class if more than [`MOST`] of the time since the last look went by on a CPU, and takes it again once
    /// that was less than [`LITTLE`].
    pub fn look(&mut self, now: Nanos) {
        if self.class == Class::Normal {
            return;
        }
        let used = os::thread_cpu();
        let Some((then, used_then)) = self.looked.replace((now, used)) else {
            return;
        };
        if now <= then {
            return;
        }
        let share = used.saturating_sub(used_then) as f64 / (now - then) as f64;
        if self.class == Class::RealTime && share > MOST {
            os::leave_real_time();
            self.class = Class::GivenUp;
            self.least = Class::GivenUp;
        } else if self.class == Class::GivenUp && share < LITTLE && os::enter_real_time() {
            self.class = Class::RealTime;
        }
    }
}

/// Longest wait awake before one request, and the most that is saved up for it.
const LONGEST: Nanos = 100 * MICROSECOND;
/// One part in so many of the time between requests may be waited awake: 2 % of a CPU.
const SHARE: Nanos = 50;
/// The same where requests are no further apart than [`CLOSE`]: 0.25 % of a CPU, which is less than 1 % of what so many
/// requests cost it themselves.
const SHARE_OF_CLOSE: Nanos = 400;
const CLOSE: Nanos = 200 * MICROSECOND;
/// Lateness is learned by the length of the sleep, in powers of two from 8 us on: who slept long wakes later, because
/// its CPU slept deeper.
const LENGTHS: usize = 10;
const SHORTEST: Nanos = 8 * MICROSECOND;
/// What is learned in one step: so much of the estimate, and at least so much.
const STEP: Nanos = 32;
const LEAST_STEP: Nanos = 64;

/// How late a thread wakes that sleeps until a moment, as it sees for itself.
#[derive(Debug, Default)]
struct Lateness([Nanos; LENGTHS]);

impl Lateness {
    fn place(sleep: Nanos) -> usize {
        let doublings = (sleep / SHORTEST).checked_ilog2().map_or(0, |log| log + 1);
        (doublings as usize).min(LENGTHS - 1)
    }

    fn of(&self, sleep: Nanos) -> Nanos {
        self.0[Lateness::place(sleep)]
    }

    /// A sleep of this length ended so late. The estimate goes up where it was too low and down where it was too high, by
    /// the same step: it settles at the median. With much `left` to be waited awake it goes up by many, so that hardly one
    /// is late; with less than nothing, down by several.
    fn learn(&mut self, sleep: Nanos, late: Nanos, left: i64) {
        let estimate = &mut self.0[Lateness::place(sleep)];
        let step = (*estimate / STEP).max(LEAST_STEP);
        if late > *estimate {
            let up = if left > LONGEST as i64 / 2 {
                32 * step
            } else {
                step
            };
            *estimate = (*estimate + up).min(late).min(LONGEST);
        } else {
            let down = if left < 0 { 4 * step } else { step };
            *estimate = estimate.saturating_sub(down).max(late.min(*estimate));
        }
    }
}

/// When to stop sleeping, and how long was waited awake.
///
/// Who sleeps until a moment is woken after it: by some microseconds, on a virtual machine by tens, because its CPU slept
/// as well. So the timer is set earlier by as much as this thread has seen itself wake late, and what is then left is
/// waited awake, looking at the sockets and at the clock. That takes a CPU from whoever else could use it: it is for
/// threads of the real-time class only, and no more than one part in [`SHARE`] of the time.
#[derive(Debug)]
pub struct Awake {
    /// The request waited for.
    due: Nanos,
    /// The sleep under way: how long it was to be on time, and when its timer ends it.
    sleep: Option<(Nanos, Nanos)>,
    /// This request's timer has ended.
    woken: bool,
    /// When the wait awake began; `Nanos::MAX`: not yet.
    began: Nanos,
    /// Of the share, not used yet; below 0: used before its time.
    left: i64,
    waited: Nanos,
    lateness: Lateness,
}

impl Awake {
    /// Nothing is waited for at `now`.
    pub fn new(now: Nanos) -> Awake {
        Awake {
            due: now,
            sleep: None,
            woken: false,
            began: Nanos::MAX,
            left: 0,
            waited: 0,
            lateness: Lateness::default(),
        }
    }

    /// Until when a thread of this class sleeps at most that has to wake for `wake`, and for a request due at `due`; `now`:
    /// not at all.
    #[inline]
    pub fn sleep_until(&mut self, class: Class, now: Nanos, wake: Nanos, due: Nanos) -> Nanos {
        self.sleep = None;
        if class != Class::RealTime || due == Nanos::MAX {
            return wake;
        }
        if due != self.due {
            self.turn_to(due);
        }
        let Some(ahead) = due.checked_sub(now).filter(|ahead| *ahead > 0) else {
            return wake;
        };
        // Who has used more than its share sleeps as long as anybody, until that is earned again: to wake early and sleep
        // once more would cost as much as the wait.
        let late = match self.left {
            0.. => self.lateness.of(ahead),
            _ => 0,
        };
        let may = self.woken || self.began != Nanos::MAX || ahead as i64 <= self.left;
        if self.woken || ahead <= late {
            if !may {
                return wake;
            }
            self.began = self.began.min(now);
            return now;
        }
        let until = due - late;
        if wake < until {
            return wake;
        }
        self.sleep = Some((ahead, until));
        until
    }

    /// The thread was woken by its timer, at `now`; nothing else had happened.
    #[inline]
    pub fn woke(&mut self, now: Nanos) {
        if let Some((sleep, until)) = self.sleep.take()
            && now >= until
        {
            self.lateness.learn(sleep, now - until, self.left);
            self.woken = true;
        }
    }

    /// Another request is waited for: what the last one took is paid for.
    fn turn_to(&mut self, due: Nanos) {
        let took = self.due.saturating_sub(self.began);
        self.waited += took;
        let gap = due.saturating_sub(self.due);
        let share = if gap <= CLOSE { SHARE_OF_CLOSE } else { SHARE };
        let earned = (gap / share).min(LONGEST);
        let most = LONGEST as i64;
        self.left = (self.left - took as i64 + earned as i64).clamp(-most, most);
        self.due = due;
        self.woken = false;
        self.began = Nanos::MAX;
    }

    /// How long was waited awake before requests since this was last asked.
    pub fn take(&mut self) -> Nanos {
        std::mem::take(&mut self.waited)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::clock::{Clock, MILLISECOND, Monotonic, SECOND};

    fn spin(length: Duration) {
        let end = Instant::now() + length;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn who_computes_all_the_time_leaves_the_class_and_takes_it_again_when_it_sleeps() {
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
            std::thread::sleep(Duration::from_millis(50));
            priority.look(Monotonic.now());
            assert_eq!(priority.class(), Class::RealTime);
            assert!(os::is_real_time());
            // What was lost of the span is not forgotten.
            assert_eq!(priority.least(), Class::GivenUp);
            priority.begin_span();
            assert_eq!(priority.least(), Class::RealTime);
        })
        .join()
        .expect("the thread's own assertions");
    }

    #[test]
    fn a_moment_is_no_time_to_judge_by() {
        let mut priority = Priority {
            class: Class::RealTime,
            least: Class::RealTime,
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

    const ALWAYS: Nanos = 100 * MILLISECOND;

    /// A thread that wakes late by `late`, in turns, looks every microsecond while it is awake, and has `gap` between
    /// requests. Returns how late its requests are (the median of the last half), and how long it waits awake for each.
    fn waits(gap: Nanos, late: &[Nanos], class: Class) -> (Nanos, Nanos) {
        let (mut awake, mut now, mut deviations) = (Awake::new(0), 0, Vec::new());
        let mut turns = late.iter().cycle();
        for number in 1..=2_000 {
            let due = number * gap;
            while now < due {
                let until = awake.sleep_until(class, now, due, due);
                if until <= now {
                    now += MICROSECOND;
                } else {
                    now = until + turns.next().expect("it never ends");
                    awake.woke(now);
                }
            }
            deviations.push(now - due);
        }
        awake.turn_to(ALWAYS * gap);
        let mut settled = deviations.split_off(1_000);
        settled.sort_unstable();
        (settled[500], awake.take() / 2_000)
    }

    #[test]
    fn who_always_wakes_late_by_the_same_is_on_time_and_hardly_waits_awake() {
        for gap in [100 * MICROSECOND, MILLISECOND, 10 * MILLISECOND] {
            let (late, waited) = waits(gap, &[50 * MICROSECOND], Class::RealTime);
            assert!(late <= MICROSECOND, "{gap}: {late}");
            assert!(waited <= MICROSECOND, "{gap}: {waited}");
        }
    }

    #[test]
    fn who_wakes_now_earlier_now_later_waits_awake_no_more_than_its_share() {
        let late = [5, 12, 7, 30, 9, 6, 50, 8, 11, 10].map(|us| us * MICROSECOND);
        for gap in [100 * MICROSECOND, MILLISECOND, 10 * MILLISECOND] {
            let (late, waited) = waits(gap, &late, Class::RealTime);
            assert!(waited <= gap / SHARE + MICROSECOND / 2, "{gap}: {waited}");
            assert!(late <= 10 * MICROSECOND, "{gap}: {late}");
        }
    }

    #[test]
    fn without_the_real_time_class_all_of_it_is_slept() {
        for class in [Class::Normal, Class::GivenUp] {
            let late = waits(MILLISECOND, &[10 * MICROSECOND], class);
            assert_eq!(late, (10 * MICROSECOND, 0));
        }
    }

    #[test]
    fn what_else_there_is_to_wake_for_comes_first() {
        let mut awake = Awake::new(0);
        let due = 10 * MILLISECOND;
        assert_eq!(
            awake.sleep_until(Class::RealTime, 0, MILLISECOND, due),
            MILLISECOND
        );
        assert_eq!(
            awake.sleep_until(Class::RealTime, MILLISECOND, due, due),
            due
        );
        // Late: nothing is slept for it.
        assert_eq!(awake.sleep_until(Class::RealTime, due, due, due), due);
    }

    #[test]
    fn a_load_without_due_requests_sleeps_as_it_likes() {
        let mut awake = Awake::new(0);
        let until = awake.sleep_until(Class::RealTime, 0, ALWAYS, Nanos::MAX);
        assert_eq!(until, ALWAYS);
    }
}
