//! When a cell has been launched often enough.

use std::time::Duration;

use crate::{scenario::Measure, stats};

/// What is known of a cell while the run goes on: one value a launch, since queries of one launch are not independent.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Median TTFT of each good launch, in ms.
    pub ttft_ms: Vec<f64>,
    /// Median decode rate of each good launch, in tokens per second.
    pub decode_tok_s: Vec<f64>,
    /// Launches done in the measuring pass, good or not.
    pub launches: u32,
    /// Time in them.
    pub spent: Duration,
    /// What ended the repetitions.
    pub stop: Option<&'static str>,
}

impl Progress {
    /// Decides after a launch. The interval is looked at only at fixed checkpoints, with a correction for looking; a metric that
    /// the cell does not have does not hold it up.
    pub fn decide(&mut self, measure: &Measure) {
        if self.stop.is_some() {
            return;
        }
        let (min, max) = (measure.repetitions_min as usize, measure.repetitions_max as usize);
        let good = self.ttft_ms.len().max(self.decode_tok_s.len());
        if let Some(target) = measure.until_ci {
            let looks = stats::checkpoints(min, max);
            if let Some(look) = looks.iter().position(|n| *n == good) {
                let narrow = |values: &[f64]| values.is_empty() || stats::reached(values, look + 1, looks.len(), target);
                if good > 0 && narrow(&self.ttft_ms) && narrow(&self.decode_tok_s) {
                    self.stop = Some("until-ci");
                    return;
                }
            }
        }
        if self.launches as usize >= max {
            self.stop = Some("max");
        } else if measure.max_time_ms.is_some_and(|ms| good >= min && self.spent >= Duration::from_millis(ms)) {
            self.stop = Some("max-time");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Load, Order, Profile};

    fn measure(min: u32, max: u32, until_ci: Option<f64>) -> Measure {
        Measure {
            queries: 1,
            warmup: 1,
            warmup_max: 1,
            repetitions_min: min,
            repetitions_max: max,
            until_ci,
            max_time_ms: None,
            order: Order::Interleaved,
            timeout_ms: 1,
            budget_ms: None,
            load: Load::Any,
            profile: Profile::Off,
        }
    }

    /// Launches until a cell has enough, with the given values.
    fn launches_of(values: impl Fn(u32) -> f64, measure: &Measure) -> (u32, &'static str) {
        let mut cell = Progress::default();
        while cell.stop.is_none() {
            cell.launches += 1;
            cell.ttft_ms.push(values(cell.launches));
            cell.decode_tok_s.push(values(cell.launches));
            cell.decide(measure);
            assert!(cell.launches <= 100, "never stops");
        }
        (cell.launches, cell.stop.unwrap_or_default())
    }

    #[test]
    fn steady_values_stop_at_a_checkpoint_and_noisy_ones_at_the_most() {
        // Checkpoints of 6..20 are 6, 9, 14, 20; with four looks the interval needs 98.75 %, which 6 values can't give (96.9 %)
        // and 9 can (1 - 2 / 2^9 = 99.6 %).
        assert_eq!(launches_of(|i| 100.0 + f64::from(i % 2) * 0.1, &measure(6, 20, Some(0.02))), (9, "until-ci"));
        assert_eq!(launches_of(|i| if i % 2 == 0 { 80.0 } else { 120.0 }, &measure(6, 20, Some(0.02))), (20, "max"));
        assert_eq!(launches_of(|_| 100.0, &measure(3, 5, None)), (5, "max"));
    }

    #[test]
    fn time_ends_it_after_the_fewest() {
        // 10 s a launch: a minute is over with the sixth, and the fewest come first.
        for (min, max_time_ms, launches, stop) in [(3, 60_000, 6, "max-time"), (8, 60_000, 8, "max-time"), (3, 600_000, 20, "max")] {
            let measure = Measure { max_time_ms: Some(max_time_ms), ..measure(min, 20, None) };
            let mut cell = Progress::default();
            while cell.stop.is_none() {
                cell.launches += 1;
                cell.spent += Duration::from_secs(10);
                cell.ttft_ms.push(100.0);
                cell.decide(&measure);
            }
            assert_eq!((cell.launches, cell.stop), (launches, Some(stop)));
        }
    }

    #[test]
    fn a_cell_whose_every_launch_fails_by_the_cable_still_ends() {
        let mut cell = Progress::default();
        for launches in 1..=5 {
            cell.launches = launches;
            cell.decide(&measure(3, 5, Some(0.02)));
        }
        assert_eq!(cell.stop, Some("max"));
    }
}
