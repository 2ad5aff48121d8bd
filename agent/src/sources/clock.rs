//! Time spent suspended, once a second, so that the window in which a phone slept can be told (rule R17: growth over 100 ms voids it).

use super::{Opened, Pace, Reader, Rows};
use crate::clock;

struct Suspended;

/// Every kernel has both clocks.
pub fn open() -> Opened {
    Opened::available("CLOCK_BOOTTIME minus CLOCK_MONOTONIC", vec![Box::new(Suspended)])
}

impl Reader for Suspended {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn sample(&mut self, rows: &mut Rows) {
        // Tenths; adding zero turns the -0 of two readings that were a little apart into 0.
        let ms = (clock::suspended_ns() as f64 / 1e5).round() / 10.0 + 0.0;
        rows.push("clock", "suspended_ms", ms, "ms");
    }
}
