//! What the product needs against what was measured: one verdict a requirement and cell. Pure.

mod evidence;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use super::run::{Cell, Key, Run};
use crate::scenario::{Limit, Plan, Requirement, Source};

pub use evidence::{Evidence, gather};
pub use value::DAMAGED;
use value::{Value, measured};

/// Whether a requirement is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Met {
    /// The bad end of the 95 % interval keeps to the limit.
    Passed,
    /// Nothing is known, for a reason that is not the cell's: it was skipped.
    NotTried,
    /// The limit is within the interval, or there is none.
    Undecided,
    /// The good end of the interval does not keep to the limit.
    Violated,
}
impl Met {
    /// As it is written in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::NotTried => "not tried",
            Self::Undecided => "undecided",
            Self::Violated => "violated",
        }
    }
}

/// A requirement at one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Place of the requirement in the plan.
    pub requirement: usize,
    /// The requirement in words.
    pub words: String,
    /// Name of the device; empty where the run has no row for the cell.
    pub device: String,
    /// Id of the cell.
    pub cell: String,
    /// What was measured, in the unit of the column; a word for words.
    pub value: Option<f64>,
    /// What was found, where the requirement is about a word.
    pub found: Option<String>,
    /// Unit of the numbers.
    pub unit: &'static str,
    /// Lower end of the 95 % interval; absent where it has none.
    pub lo: Option<f64>,
    /// Upper end.
    pub hi: Option<f64>,
    /// Independent values behind it.
    pub n: usize,
    /// Room to the limit, as a share of the limit; below 0 it is exceeded.
    pub slack: Option<f64>,
    /// Smallest distance from the limit that values like these tell in four of five runs, in the unit (rule R28).
    pub mde: Option<f64>,
    /// The verdict.
    pub met: Met,
    /// Why it is not decided, or what to know of the figure.
    pub why: String,
}

/// Judges every requirement of a plan at each of its cells.
pub fn judge(plan: &Plan, run: &Run, evidence: &Evidence) -> Vec<Judged> {
    judge_others(&plan.require, plan, run, evidence)
}

/// Judges requirements, whoever has them, at each cell of a plan.
pub fn judge_others(requirements: &[Requirement], plan: &Plan, run: &Run, evidence: &Evidence) -> Vec<Judged> {
    let (mut all, busy) = (Vec::new(), run.busy());
    for (place, requirement) in requirements.iter().enumerate() {
        for planned in plan.cells.iter().filter(|planned| requirement.selects(&planned.cell)) {
            let rows: Vec<(&Key, &Cell)> = run.cells.iter().filter(|(key, _)| key.cell == planned.id).collect();
            if rows.is_empty() {
                all.push(unknown(place, requirement, &planned.id, Met::Undecided, "the run has no row for this cell"));
            }
            all.extend(rows.into_iter().map(|(key, cell)| {
                let judged = of_cell(place, requirement, &planned.id, measured(requirement, key, cell, evidence));
                let busy = busy.as_deref().filter(|_| cell.field("device_class") == "pc");
                Judged { device: key.device.clone(), ..shaken(judged, requirement, busy) }
            }));
        }
    }
    all
}

/// What shook the launches of a busy computer nobody knows: whether an engine is stable it does not tell.
fn shaken(judged: Judged, requirement: &Requirement, busy: Option<&str>) -> Judged {
    let of_launches = requirement.subject().is_some_and(|subject| matches!(subject.source, Source::Word("stability", _)));
    match busy {
        Some(busy) if of_launches && matches!(judged.met, Met::Passed | Met::Violated) => {
            Judged { met: Met::Undecided, why: format!("the computer may have been busy with something else ({busy})"), ..judged }
        }
        _ => judged,
    }
}

fn of_cell(place: usize, requirement: &Requirement, cell: &str, value: Value) -> Judged {
    let blank = unknown(place, requirement, cell, Met::Undecided, "");
    match value {
        Value::None { tried, why } => Judged { met: if tried { Met::Undecided } else { Met::NotTried }, why, ..blank },
        Value::Word { found, met, why } => Judged { found: Some(found), met, why, ..blank },
        Value::Number { value, lo, hi, n, why, exact } => {
            let (limit, at_least) = match requirement.limit {
                Limit::AtLeast(limit) => (limit, true),
                Limit::AtMost(limit) => (limit, false),
                Limit::Is(_) => return Judged { why: "a word as the limit of a number".to_owned(), ..blank },
            };
            let keeps = |value: f64| if at_least { value >= limit } else { value <= limit };
            let (bad, good) = if at_least { (lo, hi) } else { (hi, lo) };
            // The distance of a limit from the median that four of five runs would tell: (1.96 + 0.84) standard errors, where the half-width is 1.96.
            let mde = bad.filter(|_| !exact).map(|bad| (bad - value).abs() * (1.96 + 0.84) / 1.96);
            let blunt = mde.is_some_and(|mde| mde >= limit);
            // What the interval excludes is decided, however wide it is.
            let (met, own) = match (bad, good) {
                (Some(bad), _) if keeps(bad) => (Met::Passed, String::new()),
                (_, Some(good)) if !keeps(good) => (Met::Violated, String::new()),
                _ if blunt => (Met::Undecided, "the limit is below what this cell can tell".to_owned()),
                _ => (Met::Undecided, why_open(bad, limit, value, keeps(value))),
            };
            let slack = if at_least { value / limit - 1.0 } else { 1.0 - value / limit };
            let why = [own, why].into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join("; ");
            Judged { value: Some(value), lo, hi, n, slack: Some(slack), mde, met, why, ..blank }
        }
    }
}

fn why_open(bad: Option<f64>, limit: f64, value: f64, keeps: bool) -> String {
    let Some(bad) = bad else { return "too few values for an interval".to_owned() };
    let (width, room) = ((bad - value).abs(), (limit - value).abs());
    if keeps && room > 0.0 {
        // The half-width falls with the root of the number of launches.
        format!(
            "the interval holds the limit: about {:.0} times as many launches would decide",
            (width / room).powi(2).clamp(2.0, 1e6).ceil()
        )
    } else {
        "the interval holds the limit".to_owned()
    }
}

fn unknown(place: usize, requirement: &Requirement, cell: &str, met: Met, why: &str) -> Judged {
    Judged {
        requirement: place,
        words: requirement.words(),
        device: String::new(),
        cell: cell.to_owned(),
        value: None,
        found: None,
        unit: requirement.subject().and_then(|s| s.units.first()).map_or("", |(unit, _)| unit),
        lo: None,
        hi: None,
        n: 0,
        slack: None,
        mde: None,
        met,
        why: why.to_owned(),
    }
}

/// The word of a whole run: violated by any cell, or undecided: by a cell that was tried, or because no cell of a requirement was.
pub fn overall(judged: &[Judged]) -> Met {
    let mut by_requirement: BTreeMap<usize, Vec<Met>> = BTreeMap::new();
    for one in judged {
        by_requirement.entry(one.requirement).or_default().push(one.met);
    }
    let of_one = |all: &Vec<Met>| {
        let tried = all.iter().copied().filter(|met| *met != Met::NotTried).max();
        tried.unwrap_or(Met::Undecided)
    };
    by_requirement.values().map(of_one).max().unwrap_or(Met::Passed)
}
