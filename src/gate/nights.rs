//! Tonight against the nights before: verdict, tolerance, and what could have been seen at all. Pure: numbers in, judgement out.
//!
//! A night gives one number, the location of its launches' logs, because its launches share the night: room, charge, what else the device
//! did. The spread between nights holds the noise within them, so it alone says what is usual.
//!
//! **Window.** The mean of the last 1, 2, 3, 5, 8 and 13 nights is held against the nights before it, the newest [`BASELINE`] of them. One night finds
//! a large change at once, three find the small one. Each has its own level, which together are under 1 % of false alarms a
//! cell and night.
//!
//! **Baseline.** Only the nights given count: who accepts a change begins the history at the night that is accepted.

use serde::{Deserialize, Serialize};

use super::verdict::{Effect, Verdict};
use crate::stats::{hodges_lehmann, log_centre, mean, median, outliers, standard_deviation, student};

/// Most nights that a baseline has: enough for its level and spread, few enough to follow what drifts slowly.
pub const BASELINE: usize = 30;

/// Fewest nights that tell their own spread.
pub const FEWEST: usize = 5;

/// Spread between nights in logs that is assumed under [`FEWEST`] nights: 1 %, what phones in a room without climate control show.
pub const ASSUMED: f64 = 0.01;

/// Nights of a window and the one-sided level at which it raises an alarm.
const WINDOWS: [(usize, f64); 6] = [(1, 0.001), (2, 0.0015), (3, 0.003), (5, 0.0008), (8, 0.0008), (13, 0.0008)];

/// The window within which a regression of the asked size is meant to be found.
const MEANT: (usize, f64) = WINDOWS[2];

/// Chance of finding a change of the size of the minimum detectable effect.
const POWER: f64 = 0.9;

/// What one night says of one metric of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Night {
    /// Location of the logs of its launches' values, turned over where higher is better: more is worse.
    pub at: f64,
    /// Standard error of that within the night; `None` where one launch stands behind it.
    pub error: Option<f64>,
}

impl Night {
    /// From one value a launch. `None` when there are none, or not all are above zero.
    pub fn of(values: &[f64], higher_is_better: bool) -> Option<Self> {
        let centre = log_centre(values)?;
        Some(Self { at: if higher_is_better { -centre.at } else { centre.at }, error: centre.error })
    }

    /// From a row of `cells.csv`: the columns `_centre`, `_mad` and `_n`. The error is that of normal noise of the same MAD, so it is
    /// coarser than that of [`Night::of`]; it matters only for nights that are far noisier than usual, and for a short history.
    pub fn of_row(centre: f64, mad: Option<f64>, n: usize, higher_is_better: bool) -> Option<Self> {
        let at = (centre.is_finite() && centre > 0.0).then(|| centre.ln())?;
        let error = mad.filter(|_| n > 1).map(|mad| 1.4826 * mad / centre / (0.955 * n as f64).sqrt());
        Some(Self { at: if higher_is_better { -at } else { at }, error: error.filter(|error| error.is_finite()) })
    }
}

/// What is said of tonight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The word.
    pub verdict: Verdict,
    /// The change that the word rests on, with its 95 % interval; above 0 is worse. `None` without a night to compare with.
    pub effect: Option<Effect>,
    /// Nights, tonight the last, whose mean that change is.
    pub window: usize,
    /// Nights behind the level that it is held against.
    pub baseline: usize,
    /// Size from which a change counts (0.02 for 2 %): what the noise allows, between half of what is asked and what is asked.
    pub tolerance: f64,
    /// Smallest regression that is found within three nights nine times out of ten (0.02 for 2 %).
    pub mde: Option<f64>,
    /// Nights, tonight included, after which a change of the asked size would be found or excluded; `None` when no number of
    /// nights helps, or none is needed.
    pub nights_needed: Option<usize>,
    /// Place in the history, tonight being its length, of the first night of the change that is reported.
    pub since: Option<usize>,
    /// Why this word, and what was assumed.
    pub reasons: Vec<String>,
}

/// Level and spread of the nights that tonight is held against.
#[derive(Debug, Clone, Copy)]
struct Baseline {
    level: f64,
    /// Standard deviation of a night.
    spread: f64,
    degrees: f64,
    /// Typical standard error within a night.
    within: f64,
    nights: usize,
    assumed: bool,
}

impl Baseline {
    /// Of the newest [`BASELINE`] nights. Nights that stand apart move neither level nor spread.
    fn of(nights: &[Night]) -> Option<Self> {
        let nights = &nights[nights.len().saturating_sub(BASELINE)..];
        let values: Vec<f64> = nights.iter().map(|night| night.at).collect();
        let level = hodges_lehmann(&values)?.at;
        let errors: Vec<f64> = nights.iter().filter_map(|night| night.error).collect();
        let within = median(&errors);
        if values.len() < FEWEST {
            let within = within?;
            return Some(Self {
                level,
                spread: within.hypot(ASSUMED),
                degrees: f64::INFINITY,
                within,
                nights: values.len(),
                assumed: true,
            });
        }
        let flags = outliers(&values);
        let kept: Vec<f64> = values.iter().zip(flags).filter(|(_, apart)| !apart).map(|(value, _)| *value).collect();
        let within = within.unwrap_or(0.0);
        let spread = standard_deviation(&kept)?.max(within);
        Some(Self { level, spread, degrees: (kept.len() - 1) as f64, within, nights: values.len(), assumed: false })
    }

    /// Standard error of the mean of such nights against the level.
    fn error(&self, window: &[Night]) -> f64 {
        let n = window.len() as f64;
        // Estimates of errors scatter themselves; only what is plainly noisier than usual counts as such.
        let excess = |night: &Night| {
            let own = night.error.filter(|own| *own > 1.5 * self.within);
            own.map_or(0.0, |own| own * own - self.within * self.within)
        };
        let of_window = self.spread.powi(2) / n + window.iter().map(excess).sum::<f64>() / (n * n);
        (of_window + self.of_level()).sqrt()
    }

    /// Variance of the level itself, by the efficiency of Hodges and Lehmann's location.
    fn of_level(&self) -> f64 {
        self.spread.powi(2) / (0.955 * self.nights as f64)
    }
}

/// Judges tonight by the nights before it, oldest first. `asked` is the change that must not pass (0.02 for 2 %).
pub fn judge(history: &[Night], tonight: Night, asked: f64) -> Judgement {
    let limit = asked.max(0.0).ln_1p();
    let mut nights = history.to_vec();
    nights.push(tonight);
    let looks: Vec<Look> = WINDOWS.into_iter().filter_map(|window| Look::of(&nights, window)).collect();
    let mut found = Judgement {
        verdict: Verdict::Undecided,
        effect: None,
        window: 1,
        baseline: 0,
        tolerance: asked,
        mde: None,
        nights_needed: None,
        since: None,
        reasons: Vec::new(),
    };
    let Some(first) = looks.first() else {
        found.reasons.push(match history.len() {
            0 => "there is no night before this one".to_owned(),
            n => format!("{n} nights without an error of their own, fewer than {FEWEST}, tell no noise: repeat launches"),
        });
        return found;
    };
    let baseline = first.baseline;
    let three = baseline.critical(MEANT);
    let tolerance = three.clamp(limit / 2.0, limit);
    let mde = three.max(tolerance) + student(POWER, baseline.degrees) * baseline.plain_error(MEANT.0);
    (found.tolerance, found.mde) = (tolerance.exp_m1(), Some(mde.exp_m1()));
    // The strongest evidence speaks.
    let beyond = |look: &&Look| look.change.abs() > look.critical && look.change.abs() > tolerance && look.holds(tolerance);
    let alarm = looks.iter().filter(beyond).max_by(|a, b| (a.change.abs() / a.critical).total_cmp(&(b.change.abs() / b.critical)));
    let look = alarm.unwrap_or(first);
    found.effect = Some(look.effect());
    (found.window, found.baseline) = (look.window, look.baseline.nights);
    let reach = student(0.95, first.baseline.degrees) * first.error;
    found.verdict = match alarm {
        Some(look) if look.change > 0.0 => Verdict::Regressed,
        Some(_) => Verdict::Improved,
        None if first.change.abs() + reach < limit => Verdict::Unchanged,
        None => Verdict::Undecided,
    };
    if found.verdict == Verdict::Undecided {
        found.nights_needed = baseline.nights_needed(limit);
        found.reasons.push(match found.nights_needed {
            Some(nights) => format!("one night does not tell a change of {:.1} %: {nights} would", asked * 100.0),
            None => format!(
                "no number of nights tells a change of {:.1} % against {} nights that spread by {:.1} %: more repetitions, or a steadier device",
                asked * 100.0,
                baseline.nights,
                baseline.spread * 100.0
            ),
        });
    }
    if baseline.assumed {
        found.reasons.push(format!(
            "{} nights before this one: their spread is not known yet and assumed to be {:.0} %",
            baseline.nights,
            ASSUMED * 100.0
        ));
    }
    found
}

impl Baseline {
    /// Standard error of the mean of `window` usual nights against the level.
    fn plain_error(&self, window: usize) -> f64 {
        (self.spread.powi(2) / window as f64 + self.of_level()).sqrt()
    }

    /// Change from which such a window raises an alarm.
    fn critical(&self, (window, level): (usize, f64)) -> f64 {
        student(1.0 - level, self.degrees) * self.plain_error(window)
    }

    /// Nights of the smallest window that finds a change of the size `limit` as surely as [`POWER`] says.
    fn nights_needed(&self, limit: f64) -> Option<usize> {
        let finds = |(window, level): (usize, f64)| {
            let needed = student(1.0 - level, self.degrees) + student(POWER, self.degrees);
            needed * self.plain_error(window) <= limit
        };
        WINDOWS.into_iter().find(|window| finds(*window)).map(|(nights, _)| nights)
    }
}

/// One window of the last nights, against those before it.
struct Look {
    window: usize,
    baseline: Baseline,
    /// Mean of the window less the level.
    change: f64,
    /// The same without the night that speaks most for it.
    without_most: f64,
    error: f64,
    critical: f64,
}

impl Look {
    fn of(nights: &[Night], (window, level): (usize, f64)) -> Option<Self> {
        let (before, last) = nights.split_at_checked(nights.len().checked_sub(window)?)?;
        let baseline = Baseline::of(before)?;
        let mut values: Vec<f64> = last.iter().map(|night| night.at - baseline.level).collect();
        let change = mean(&values)?;
        values.sort_by(f64::total_cmp);
        let rest = if change > 0.0 { &values[..window - 1] } else { &values[1..] };
        let error = baseline.error(last);
        Some(Self {
            window,
            baseline,
            change,
            without_most: mean(rest).unwrap_or(change),
            error,
            critical: student(1.0 - level, baseline.degrees) * error,
        })
    }

    /// Whether the change is not one single night's: one bad night is no bad week.
    fn holds(&self, tolerance: f64) -> bool {
        self.without_most * self.change.signum() > tolerance / 2.0
    }

    fn effect(&self) -> Effect {
        let half = student(0.975, self.baseline.degrees) * self.error;
        Effect { log: self.change, lo: self.change - half, hi: self.change + half }
    }
}

#[cfg(test)]
mod tests;
