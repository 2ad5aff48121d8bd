//! What looks regressed, measured again. Pure: the second measurement comes from outside.
//!
//! There are two, and they answer different questions. The same once more on the same device tells whether the night was a bad one. An interleaved
//! A/B of an older state and tonight's tells whether what was built got slower: it alone rules out that the device or the room changed.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Gate, Kind, Row, Verdict};
use crate::gate::{
    compare::{self, Comparison},
    nights::{Night, judge},
    run::Run,
    verdict::Effect,
};

/// What the second measurement says.
#[derive(Debug, Clone, Serialize)]
pub struct Confirmed {
    /// Its run; of an A/B that of side B.
    pub run: String,
    /// Old and new pair by pair, instead of the same once more.
    pub paired: bool,
    /// Its verdict.
    pub verdict: Verdict,
    /// The change that it found; above 0 is worse.
    pub effect: Option<Effect>,
    /// What it means.
    pub why: String,
}

/// Ids of the cells that are worth it.
pub fn suspicious(gate: &Gate) -> BTreeSet<String> {
    gate.rows.iter().filter(|row| row.verdict == Verdict::Regressed).map(|row| row.key.cell.clone()).collect()
}

/// The same once more: tonight's place is taken by the second measurement.
pub fn again(gate: &mut Gate, second: &Run) {
    let limit = gate.limit;
    for row in gate.rows.iter_mut().filter(|row| row.verdict == Verdict::Regressed) {
        let found = second.cells.get(&row.key).ok_or_else(|| "it was not tried".to_owned()).and_then(|cell| {
            let status = cell.field("status");
            if row.kind == Kind::Failure {
                return match status {
                    "ok" => Ok((Verdict::Unchanged, None, "it worked when tried again: flaky".to_owned())),
                    "skipped" => Err("it was skipped".to_owned()),
                    _ => Ok((Verdict::Regressed, None, format!("it is {status} again"))),
                };
            }
            let night =
                Night::of(&cell.values(row.metric), row.higher_is_better).ok_or_else(|| format!("it is {status}, without a figure"))?;
            if status != "ok" {
                return Err(format!("it is {status}"));
            }
            let found = judge(&row.before, night, limit);
            let why = match found.verdict {
                Verdict::Regressed => "measured again on the same device, it is still worse than the nights before",
                Verdict::Undecided => "measured again on the same device, it is neither shown nor excluded",
                Verdict::Unchanged => "measured again on the same device, it does not stand out: a bad night",
                Verdict::Improved => {
                    "measured again on the same device, it is better than the nights before: a bad night, or figures that jump"
                }
            };
            Ok((found.verdict, found.effect, why.to_owned()))
        });
        settle(row, &second.id, false, found);
    }
}

/// Old and new pair by pair, the old as side A.
pub fn against(gate: &mut Gate, comparison: &Comparison) {
    for row in gate.rows.iter_mut().filter(|row| row.verdict == Verdict::Regressed) {
        let same = |other: &&compare::Row| other.key.cell == row.key.cell && other.metric == row.metric;
        let compared = comparison.rows.iter().find(same).and_then(compare::Row::compared);
        let found = compared.ok_or_else(|| "old and new were not compared".to_owned()).map(|found| {
            let ends = found.interval.map(|(lo, hi)| Effect::oriented(found.ratio.ln(), lo.ln(), hi.ln(), row.higher_is_better));
            let why = match found.verdict {
                Verdict::Regressed => "worse than the old one, pair by pair on the same device",
                Verdict::Undecided => "old and new, pair by pair, are not told apart",
                Verdict::Unchanged => {
                    "old and new, pair by pair, do not differ by so much: the device or the room changed, not what was built"
                }
                Verdict::Improved => "better than the old one, pair by pair: the device or the room changed, not what was built",
            };
            (found.verdict, ends, why.to_owned())
        });
        settle(row, &comparison.b.run, true, found);
    }
}

/// A regression that a second measurement excludes is not known to be one. Without such a measurement, or with one that tells nothing, it
/// stands.
fn settle(row: &mut Row, run: &str, paired: bool, found: Result<(Verdict, Option<Effect>, String), String>) {
    match found {
        Err(why) => row.reasons.push(format!("could not be confirmed in {run}, so it stands: {why}")),
        Ok((verdict, effect, why)) => {
            if matches!(verdict, Verdict::Unchanged | Verdict::Improved) {
                row.verdict = Verdict::Undecided;
            }
            row.confirmed = Some(Confirmed { run: run.to_owned(), paired, verdict, effect, why });
        }
    }
}
