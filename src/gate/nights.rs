//! Tonight against the nights before: verdict, tolerance, and what could have been seen at all. Pure: numbers in, judgement out.
//!
//! A night gives one number, the location of its launches' logs, because its launches share the night: room, charge, what else the device
//! did. The spread between nights holds the noise within them, so it alone says what is usual.
//!
//! **Windows.** The mean of the last 1, 2, 3 and up to 21 nights is held against the nights before them (`WINDOWS`). One night finds a
//! large change at once, three find a small one, many a change that no three could. Each has its own level; together they raise a false
//! alarm in under 1 % of cell-nights.
//!
//! **Which nights before.** A change for the worse stays reported until it is accepted, however old it is, as long as the history that is given
//! reaches back before it: the level that counts is the one before it (`baseline.rs`). Who accepts a change gives a history that begins with it.

mod baseline;

use serde::{Deserialize, Serialize};

use super::verdict::{Effect, Verdict};
use crate::{
    stats::{centre, mad, mean, student},
    words::{count, percent},
};
pub use baseline::{ASSUMED, BASELINE};
use baseline::{Baseline, Reference, reference};

/// Fewest nights that tell their own spread; with fewer, what is assumed of it weighs more, and the judgement says so.
pub const FEWEST: usize = baseline::WORTH + 1;

/// Nights of a window and the one-sided level at which it raises an alarm.
const WINDOWS: [(usize, f64); 7] = [(1, 0.001), (2, 0.0015), (3, 0.005), (5, 0.0005), (8, 0.0005), (13, 0.0005), (21, 0.0005)];

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
    /// From one value a launch, as [`Night::of_row`] of the row that they make. `None` when there are none, or not all are above zero.
    pub fn of(values: &[f64], higher_is_better: bool) -> Option<Self> {
        Self::of_row(centre(values)?, mad(values), values.len(), higher_is_better)
    }

    /// From a row of `cells.csv`: the columns `_centre`, `_mad` and `_n`. The error is that of normal noise of the same MAD; it matters only for
    /// nights that are far noisier than usual, and for a short history.
    pub fn of_row(centre: f64, mad: Option<f64>, n: usize, higher_is_better: bool) -> Option<Self> {
        let at = (centre.is_finite() && centre > 0.0).then(|| centre.ln())?;
        let error = mad.filter(|_| n > 1).map(|mad| 1.4826 * mad / centre / (0.955 * n as f64).sqrt());
        Some(Self { at: if higher_is_better { -at } else { at }, error: error.filter(|error| error.is_finite()) })
    }
}

/// What is said of tonight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The word. Unchanged: a regression of the asked size is excluded, and nothing better is proven.
    pub verdict: Verdict,
    /// The change that the word rests on, with its 95 % interval; above 0 is worse. `None` without a night to compare with.
    pub effect: Option<Effect>,
    /// Nights, tonight the last, whose mean that change is.
    pub window: usize,
    /// Nights behind the level that it is held against.
    pub baseline: usize,
    /// Size from which a change counts (0.02 for 2 %): what the noise allows, between half of what is asked and what is asked.
    pub tolerance: f64,
    /// Smallest regression that is found within three nights, or as many as there are to compare with, nine times out of ten (0.02 for 2 %).
    pub mde: Option<f64>,
    /// Nights, tonight included, after which a regression of the asked size would be found nine times out of ten; `None` when more of them
    /// do not help, or tonight is decided.
    pub nights_needed: Option<usize>,
    /// Place in the history, tonight being its length, of the first night of the change that is reported.
    pub since: Option<usize>,
    /// Why this word, and what was assumed.
    pub reasons: Vec<String>,
}

/// Judges tonight by the nights before it, oldest first. `asked` is the regression that must not pass (0.02 for 2 %), `few` the spread of nights, in
/// logs, that is assumed of fewer than [`FEWEST`]: that of sessions ([`super::compare::session::assumed`]).
pub fn judge(history: &[Night], tonight: Night, asked: f64, few: f64) -> Judgement {
    let limit = asked.max(0.0).ln_1p();
    let mut nights = history.to_vec();
    nights.push(tonight);
    let kept = reference(&nights);
    let before = kept.places.iter().filter(|place| **place < history.len()).count();
    let between = if before < FEWEST { few } else { ASSUMED };
    let looks: Vec<Look> = WINDOWS.into_iter().filter_map(|window| Look::of(&nights, &kept, window, between)).collect();
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
        found.reasons.push("there is no night before this one".to_owned());
        return found;
    };
    let usual = first.baseline;
    let noise = usual.critical(MEANT);
    let tolerance = noise.clamp(limit / 2.0, limit);
    found.tolerance = tolerance.exp_m1();
    let widest = WINDOWS.into_iter().take_while(|window| window.0 <= usual.nights.min(MEANT.0)).last();
    found.mde = widest.map(|window| usual.finds(window, POWER).max(tolerance).exp_m1());
    // The clearest evidence speaks.
    let clearness = |look: &Look| look.change.abs() / look.critical.max(f64::MIN_POSITIVE);
    // What the last three nights do not show any more is over, however bad the weeks before were.
    let lately = looks.iter().filter(|look| look.window <= MEANT.0).map(|look| look.change).next_back().unwrap_or(first.change);
    // And what tonight alone excludes, at 99 %, is over at once.
    let tonight = student(0.99, usual.degrees) * first.error;
    let lasts = |look: &&Look| {
        let worse = look.change.signum();
        first.change * worse + tonight > tolerance && (look.window <= MEANT.0 || lately * worse > tolerance / 2.0)
    };
    let alarm = looks.iter().filter(|look| look.is_alarm(tolerance)).filter(lasts).max_by(|a, b| clearness(a).total_cmp(&clearness(b)));
    let spoken = alarm.unwrap_or(first);
    (found.effect, found.window, found.baseline) = (Some(spoken.effect()), spoken.window, spoken.baseline.nights);
    found.verdict = match alarm {
        Some(look) if look.change > 0.0 => Verdict::Regressed,
        Some(_) => Verdict::Improved,
        None if first.change + student(0.95, usual.degrees) * first.error < limit => Verdict::Unchanged,
        None => Verdict::Undecided,
    };
    if let Some(look) = alarm {
        let begin = kept.worse_since.filter(|_| look.change > 0.0);
        found.since = Some(begin.unwrap_or_else(|| onset(&nights, &look.baseline, look.change)));
    }
    if found.verdict == Verdict::Undecided {
        found.nights_needed = WINDOWS.into_iter().find(|window| usual.finds(*window, POWER) <= limit).map(|(nights, _)| nights);
        let of = format!("a change of {}", percent(asked));
        found.reasons.push(match found.nights_needed {
            Some(1) => format!("tonight neither shows nor excludes {of}: another night would"),
            Some(nights) => format!("one night does not tell {of}: {nights} in a row would"),
            None if usual.nights < FEWEST => format!(
                "if nights spread by the {} that are assumed here, no number of them tells {of} from the {} before: {FEWEST} nights tell their own spread",
                percent(few),
                count(usual.nights, "night")
            ),
            None => format!(
                "nights spread by {} here, so that no number of them tells {of} from the {} before: more repetitions, or a steadier device",
                percent(usual.spread),
                usual.nights
            ),
        });
    }
    if usual.nights < FEWEST {
        let nights = count(usual.nights, "night");
        found.reasons.push(format!("only {nights} to compare with: that nights spread by {} is assumed", percent(few)));
    }
    found
}

/// First of the last nights that differs from the level as the change does: where the nights since then, taken together, differ most clearly.
fn onset(nights: &[Night], level: &Baseline, change: f64) -> usize {
    let (mut sum, mut best) = (0.0, (nights.len() - 1, f64::NEG_INFINITY));
    for (back, night) in nights.iter().rev().enumerate() {
        sum += (night.at - level.level) * change.signum();
        let clear = sum / ((back + 1) as f64).sqrt();
        if clear > best.1 {
            best = (nights.len() - 1 - back, clear);
        }
    }
    best.0
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
    /// Nights in the window are left out of the level that counts. `None` when the window reaches back over a step, or fewer nights are
    /// left than it has: a long window against a short past is that past's accident.
    fn of(nights: &[Night], kept: &Reference, (window, level): (usize, f64), between: f64) -> Option<Self> {
        let begin = nights.len().checked_sub(window).filter(|begin| *begin >= kept.level_since)?;
        let before: Vec<Night> = kept.places.iter().filter(|place| **place < begin).map(|place| nights[*place]).collect();
        let baseline = Baseline::of(&before, between).filter(|found| found.nights >= window)?;
        let last = &nights[begin..];
        let mut values: Vec<f64> = last.iter().map(|night| night.at - baseline.level).collect();
        let change = mean(&values)?;
        values.sort_by(f64::total_cmp);
        let rest = if change > 0.0 { &values[..window - 1] } else { &values[1..] };
        let error = baseline.error(last);
        let critical = student(1.0 - level, baseline.degrees) * error;
        Some(Self { window, baseline, change, without_most: mean(rest).unwrap_or(change), error, critical })
    }

    /// Whether the change is no chance, large enough to count, and not one single night's: one bad night is no bad week.
    fn is_alarm(&self, tolerance: f64) -> bool {
        let change = self.change.abs();
        change > self.critical && change > tolerance && self.without_most * self.change.signum() > tolerance / 2.0
    }

    fn effect(&self) -> Effect {
        let half = student(0.975, self.baseline.degrees) * self.error;
        Effect { log: self.change, lo: self.change - half, hi: self.change + half }
    }
}

#[cfg(test)]
mod tests;
