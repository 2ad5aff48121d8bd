//! The level that tonight is held against, and how far nights scatter around it.

use super::Night;
use crate::stats::{autocorrelation, drawn_in, mean, median, standard_deviation, steps, student};

/// Most nights that a baseline has: enough for its level and spread, few enough to follow what drifts slowly.
pub const BASELINE: usize = 60;

/// Spread of the levels of nights, in logs, that is assumed beside what [`super::FEWEST`] nights or more show: half a percent, and the noise within a
/// night. Of fewer nights what two sessions are assumed to differ by is assumed.
pub const ASSUMED: f64 = 0.005;

/// Nights that the assumption is worth: it counts like so many, and fades as real ones come (an inverse chi-squared prior; Gelman et al. 2013,
/// section 2.6, and limma's moderated t: Smyth 2004).
pub(super) const WORTH: usize = 5;

/// Level of the search for steps among nights. Strict, since it is searched anew every night.
const STEP_LEVEL: f64 = 0.001;

/// Fewest nights of a level of its own.
const FEWEST_OF_A_LEVEL: usize = 5;

/// Level and spread of the nights that tonight is held against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Baseline {
    pub level: f64,
    /// Standard deviation of a night.
    pub spread: f64,
    pub degrees: f64,
    /// Typical standard error within a night.
    pub within: f64,
    /// Autocorrelation from night to night; 0 unless it is plain.
    pub repeats: f64,
    pub nights: usize,
}

impl Baseline {
    /// Of the newest [`BASELINE`] nights. Nights that stand apart count no more than the last that does not.
    /// `between` is the spread of their levels that is assumed.
    pub fn of(nights: &[Night], between: f64) -> Option<Self> {
        let nights = &nights[nights.len().saturating_sub(BASELINE)..];
        let values = drawn_in(&nights.iter().map(|night| night.at).collect::<Vec<_>>());
        let level = mean(&values)?;
        let within = median(&nights.iter().filter_map(|night| night.error).collect::<Vec<_>>()).unwrap_or(0.0);
        let (assumed, seen) = (within * within + between * between, standard_deviation(&values).unwrap_or(0.0).powi(2));
        let (prior, own) = (WORTH as f64, (values.len() - 1) as f64);
        let variance = (prior * assumed + own * seen) / (prior + own);
        // Of thirty nights without any, one in twenty histories has more than 1.645 standard errors.
        let plain = |r: &f64| *r > 1.645 / (values.len() as f64).sqrt();
        let repeats = autocorrelation(&values, 1).filter(plain).map_or(0.0, |r| r.min(0.9));
        Some(Self { level, spread: variance.sqrt(), degrees: prior + own, within, repeats, nights: values.len() })
    }

    /// Standard error of the mean of these nights against the level.
    pub fn error(&self, window: &[Night]) -> f64 {
        // Estimates of errors scatter themselves; only what is plainly noisier than usual counts as such.
        let excess = |night: &Night| {
            let own = night.error.filter(|own| *own > 1.5 * self.within);
            own.map_or(0.0, |own| own * own - self.within * self.within)
        };
        let excess = window.iter().map(excess).sum::<f64>() / (window.len() as f64).powi(2);
        (self.usual_error(window.len()).powi(2) + excess).sqrt()
    }

    /// The same of `window` usual nights.
    fn usual_error(&self, window: usize) -> f64 {
        self.spread * (self.of_mean(window) + self.of_mean(self.nights)).sqrt()
    }

    /// Variance of the mean of `n` nights as a share of that of one: 1/n, and more where a night repeats the one before (AR(1)).
    fn of_mean(&self, n: usize) -> f64 {
        let all = n as f64;
        let shared: f64 = (1..n).map(|lag| (1.0 - lag as f64 / all) * self.repeats.powf(lag as f64)).sum();
        (1.0 + 2.0 * shared) / all
    }

    /// Change from which a usual window raises an alarm.
    pub fn critical(&self, (window, level): (usize, f64)) -> f64 {
        student(1.0 - level, self.degrees) * self.usual_error(window)
    }

    /// True change that such a window finds with the chance `power`. Infinite where it has fewer nights to stand against than it has itself.
    pub fn finds(&self, window: (usize, f64), power: f64) -> f64 {
        if self.nights < window.0 {
            return f64::INFINITY;
        }
        self.critical(window) + student(power, self.degrees) * self.usual_error(window.0)
    }
}

/// The nights whose level counts.
#[derive(Debug, Default)]
pub(super) struct Reference {
    /// Their places, oldest first.
    pub places: Vec<usize>,
    /// First night of the level of tonight.
    pub level_since: usize,
    /// First night of a level that is worse than that and lasts until tonight.
    pub worse_since: Option<usize>,
}

/// Goes through the levels of the series, as its steps divide it. A level that is better than the one that counts takes its place: there is no
/// way back from a gain without saying so. A worse one never does: losses that each pass as noise would add up. What can't be told from it
/// joins it.
pub(super) fn reference(nights: &[Night]) -> Reference {
    let values: Vec<f64> = nights.iter().map(|night| night.at).collect();
    let found = steps(&values, STEP_LEVEL, FEWEST_OF_A_LEVEL);
    let ends: Vec<usize> = found.iter().map(|step| step.at).chain([nights.len()]).collect();
    let level_since = found.last().map_or(0, |step| step.at);
    let mut kept = Reference { places: (0..ends[0]).collect(), level_since, worse_since: None };
    for level in ends.windows(2) {
        let places = level[0]..level[1];
        let before: Vec<Night> = kept.places.iter().map(|place| nights[*place]).collect();
        let Some((baseline, change)) = Baseline::of(&before, ASSUMED).zip(mean(&values[places.clone()])) else { continue };
        let critical = baseline.critical((places.len(), STEP_LEVEL));
        let change = change - baseline.level;
        if change > critical {
            kept.worse_since = kept.worse_since.or(Some(places.start));
            continue;
        }
        if change < -critical {
            kept.places.clear();
        }
        kept.worse_since = None;
        kept.places.extend(places);
    }
    kept
}
