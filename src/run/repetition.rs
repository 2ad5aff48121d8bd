//! When a cell has been launched often enough.

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
        }
    }
}
