//! The time that this process was awake. Limits for giving a device up are measured with it: a process that was stopped (SIGSTOP, a
//! debugger, a virtual machine that was paused) finds the clock far ahead when it goes on, although nobody had a chance to answer meanwhile.
//! A suspended Linux or macOS stops the clock behind [`Instant`] itself (`CLOCK_MONOTONIC`, `CLOCK_UPTIME_RAW`), Windows does not.

use std::{
    sync::{Mutex, Once, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How often the clock is looked at by a thread of its own.
const TICK: Duration = Duration::from_millis(250);
/// A longer gap between two looks is sleep, and counts as this much.
const MOST: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Clock {
    awake: Duration,
    looked: Option<Instant>,
}

impl Clock {
    fn look(&mut self, now: Instant) -> Duration {
        let gap = self.looked.map_or(Duration::ZERO, |before| now.saturating_duration_since(before));
        self.looked = Some(now);
        self.awake += gap.min(MOST);
        self.awake
    }
}

static CLOCK: Mutex<Clock> = Mutex::new(Clock { awake: Duration::ZERO, looked: None });

/// How long this process has been awake since the first question.
pub(super) fn now() -> Duration {
    static TICKING: Once = Once::new();
    TICKING.call_once(|| {
        // It ends with the process.
        thread::spawn(|| {
            loop {
                thread::sleep(TICK);
                now();
            }
        });
    });
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner).look(Instant::now())
}

/// A moment from which awake time is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since(Duration);

impl Since {
    pub fn now() -> Self {
        Self(now())
    }

    pub fn elapsed(self) -> Duration {
        now().saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_sleep() {
        let (mut clock, start, ms) = (Clock { awake: Duration::ZERO, looked: None }, Instant::now(), Duration::from_millis);
        let looks = [0, 250, 510, 3_600_510, 3_600_760, 3_600_760].map(|at| clock.look(start + ms(at)));
        assert_eq!(looks, [0, 250, 510, 1510, 1760, 1760].map(ms));
    }
}
