//! What became of a cell in each night: failures of its own against those of its surroundings. Pure.

use super::{Kind, Verdict};
use crate::gate::history::{Figure, Gap};

/// Nights before tonight in which failures make a cell flaky, and in which a figure is missed that is not there tonight.
pub const RECENT: usize = 10;

/// What tonight's failure means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// What kind of row it makes.
    pub kind: Kind,
    /// Its verdict.
    pub verdict: Verdict,
    /// Place of the first night of this failure.
    pub since: Option<usize>,
    /// In words.
    pub why: String,
}

/// Judges a cell that did not work tonight. `nights` are what became of it before, by run, oldest first.
pub fn fate(nights: &[(usize, Figure)], tonight: Option<Gap>) -> Fate {
    let undecided = |kind, why: String| Fate { kind, verdict: Verdict::Undecided, since: None, why };
    match tonight {
        None => return undecided(Kind::Missing, "the run has no row for this cell, and those before it had".to_owned()),
        Some(Gap::Skipped) => return undecided(Kind::Missing, "skipped tonight".to_owned()),
        Some(Gap::Infra) => return undecided(Kind::Infra, "failed for a reason outside of the cell: no regression".to_owned()),
        Some(Gap::Absent | Gap::Failed | Gap::Unverified) => {}
    }
    let recent: Vec<(usize, bool)> = told(nights);
    let fails = recent.iter().filter(|(_, ok)| !ok).count();
    let Some(last_ok) = recent.iter().rposition(|(_, ok)| *ok) else {
        return undecided(
            Kind::Failure,
            if fails == 0 {
                "failed, and nothing is known of the nights before".to_owned()
            } else {
                format!("failed, as in all {fails} nights before")
            },
        );
    };
    // A failure that ended once is one that comes and goes.
    if recent[..last_ok].iter().any(|(_, ok)| !ok) {
        return undecided(Kind::Flaky, format!("flaky: failed in {fails} of the last {} nights, and tonight", recent.len()));
    }
    let first = recent.get(last_ok + 1).map(|(run, _)| *run);
    let why = match recent.len() - last_ok - 1 {
        0 => "used to work, and fails tonight for its own reason".to_owned(),
        more => format!("used to work, and fails for its own reason since {} nights", more + 1),
    };
    Fate { kind: Kind::Failure, verdict: Verdict::Regressed, since: first, why }
}

/// What is to be said of a cell that is ok tonight, if it was not always.
pub fn flaky(nights: &[(usize, Figure)]) -> Option<String> {
    let recent = told(nights);
    let fails = recent.iter().filter(|(_, ok)| !ok).count();
    (fails > 0 && fails < recent.len()).then(|| format!("flaky: failed in {fails} of the last {} nights", recent.len()))
}

/// What is to be said of a cell that is skipped tonight and that no night ever tried: an engine that can't do the combination, or is not installed.
pub fn never(nights: &[(usize, Figure)]) -> Option<String> {
    let all = nights.iter().all(|(_, figure)| *figure == Figure::None(Gap::Skipped));
    (all && !nights.is_empty()).then(|| "skipped, as in every night before".to_owned())
}

/// The recent nights that tell something of the cell itself: whether it worked.
fn told(nights: &[(usize, Figure)]) -> Vec<(usize, bool)> {
    let known = |(run, figure): &(usize, Figure)| match figure {
        Figure::Value { .. } | Figure::None(Gap::Absent) => Some((*run, true)),
        Figure::None(Gap::Failed | Gap::Unverified) => Some((*run, false)),
        Figure::None(Gap::Skipped | Gap::Infra) => None,
    };
    let all: Vec<_> = nights.iter().filter_map(known).collect();
    all[all.len().saturating_sub(RECENT)..].to_vec()
}
