//! `bench gate`: one night against a baseline or the nights before it, and against what the product needs.
//!
//! Failures come first, apart from performance: a cell that did not run for a reason outside of it says nothing, one that fails now and then is
//! flaky, and one that used to work and now fails for its own reason is a regression of its own kind. What is left is judged by
//! [`super::nights`], each cell and metric on its own.

pub mod confirm;
mod fate;
mod input;
mod judge;
pub mod output;

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::{
    nights::{FEWEST, Night},
    require::{Judged, Met},
    run::Key,
    verdict::{Effect, Verdict},
};

pub use input::{InputError, Settings, gate, requirements};

/// What is gated unless told otherwise. Each further metric is a further chance of a false alarm, so those that say the same again are not in it:
/// prefill is prompt over TTFT, TPOT one over decode. Nor is `load_ms`, which is mostly the page cache's.
pub const USUAL: [&str; 3] = ["ttft_ms", "decode_tok_s", "peak_mem_mb"];

/// Chance of a false alarm for one metric of one cell in one night; see [`super::nights`].
pub const FALSE_ALARM: f64 = 0.01;

/// What came out.
#[derive(Debug, Serialize)]
pub struct Gate {
    /// Id of the run that is judged.
    pub run: String,
    /// Its scenario.
    pub scenario: String,
    /// When it began.
    pub started_utc: String,
    /// What it is held against, in words.
    pub against: String,
    /// Nights that it is held against.
    pub nights: usize,
    /// Change that must not pass: 0.02 for 2 %.
    pub limit: f64,
    /// The metrics that are gated.
    pub metrics: Vec<&'static str>,
    /// What to know before reading on: what is missing, left out, or not alike.
    pub notes: Vec<String>,
    /// One for each metric of each cell; a cell without figures has one row.
    pub rows: Vec<Row>,
    /// One for each requirement and cell.
    pub requirements: Vec<Judged>,
    /// Whether the plan could be read: without it nobody knows what is required.
    pub requirements_known: bool,
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A figure.
    Performance,
    /// The cell failed for its own reason.
    Failure,
    /// The cell fails now and then.
    Flaky,
    /// The cell failed for a reason outside of it.
    Infra,
    /// The cell was skipped or has no row, or the metric is not there any more.
    Missing,
}
impl Kind {
    /// As it is written in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::Failure => "failure",
            Self::Flaky => "flaky",
            Self::Infra => "infrastructure",
            Self::Missing => "missing",
        }
    }
}

/// One judgement.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The cell.
    #[serde(flatten)]
    pub key: Key,
    /// Its class.
    pub class: String,
    /// The metric; empty where the row is about the cell as a whole.
    pub metric: &'static str,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// What the row is about.
    pub kind: Kind,
    /// The word.
    pub verdict: Verdict,
    /// Tonight's figure, in the metric's unit.
    pub tonight: Option<f64>,
    /// The change with its 95 % interval, as the log of a ratio; above 0 is worse.
    pub effect: Option<Effect>,
    /// Size from which a change counts.
    pub tolerance: Option<f64>,
    /// Smallest regression that is found in three nights, or as many as there are to compare with, nine times out of ten (rule R28).
    pub mde: Option<f64>,
    /// Nights after which a change of the asked size is found or excluded.
    pub nights_needed: Option<usize>,
    /// Nights behind the level.
    pub baseline: usize,
    /// Nights, tonight the last, whose mean the change is.
    pub window: usize,
    /// First run of the change.
    pub since: Option<Since>,
    /// What a second measurement says, if there was one.
    pub confirmed: Option<confirm::Confirmed>,
    /// What else there is to say.
    pub reasons: Vec<String>,
    /// The nights before, oldest first.
    #[serde(skip)]
    pub before: Vec<Night>,
}

/// The run that a change is dated to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Since {
    /// Its id.
    pub run: String,
    /// When it began.
    pub started_utc: String,
    /// What was not as in the run before it, in words: runtime, firmware, tool.
    pub changed: Vec<String>,
}

/// How many false alarms so many judgements give, in a sentence.
pub fn expected(judged: usize) -> String {
    format!(
        "each metric of each cell is judged on its own, with under {:.0} % false alarms a night: {judged} here, so up to {:.2} false alarms a night are to be expected",
        FALSE_ALARM * 100.0,
        judged as f64 * FALSE_ALARM
    )
}

impl Gate {
    /// Whether something is worse than it may be: the exit code 10.
    pub fn regressed(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Regressed) || super::require::overall(&self.requirements) == Met::Violated
    }

    /// Whether something is not known, or there was nothing to judge: the exit code 11.
    pub fn undecided(&self) -> bool {
        let nothing = self.rows.is_empty() && self.requirements.is_empty();
        nothing
            || !self.requirements_known
            || self.rows.iter().any(|row| row.verdict == Verdict::Undecided)
            || super::require::overall(&self.requirements) == Met::Undecided
    }

    /// How to read the alarms and the intervals, in a sentence each.
    pub fn odds(&self) -> String {
        let judged = self.rows.iter().filter(|row| row.effect.is_some());
        let (known, few): (Vec<&Row>, Vec<&Row>) = judged.partition(|row| row.baseline >= FEWEST);
        let mut all = Vec::new();
        if !known.is_empty() {
            all.push(expected(known.len()));
        }
        if !few.is_empty() {
            all.push(format!(
                "of {} with under {FEWEST} nights before them no odds are known: what nights differ by is assumed",
                few.len()
            ));
        }
        if known.len() + few.len() > 0 {
            all.push(
                "the 95 % interval is that of the change that is shown; regressed and improved rest on a stricter level, since the clearest of \
                 several windows speaks, and unchanged on the one-sided 95 % end"
                    .to_owned(),
            );
        }
        if all.is_empty() { "no change was judged".to_owned() } else { all.join(". ") }
    }
}
