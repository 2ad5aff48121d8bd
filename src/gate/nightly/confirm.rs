//! What looks regressed, measured again. Pure: the second measurement comes from outside.
//!
//! There are two, and they answer different questions. The same once more on the same device tells whether the night was a bad one. An interleaved
//! A/B of an older state and tonight's tells whether what was built got slower: it alone rules out that the device or the room changed.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Gate, Kind, Verdict};
use crate::{
    gate::{
        compare::Comparison,
        nights::{Night, judge},
        run::Run,
        verdict::Effect,
    },
    results::schema::METRICS,
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
    for row in gate.rows.iter_mut().filter(|row| row.verdict == Verdict::Regressed) {
        let cell = second.cells.get(&row.key);
        let (verdict, effect, why) = if row.kind == Kind::Failure {
            match cell {
                Some(cell) if cell.is_ok() => (Verdict::Undecided, None, "it worked when tried again: flaky".to_owned()),
                Some(cell) => (Verdict::Regressed, None, format!("it is {} again", cell.field("status"))),
                None => (Verdict::Undecided, None, "it was not tried again".to_owned()),
            }
        } else {
            let values = cell.map(|cell| cell.values(row.metric)).unwrap_or_default();
            match Night::of(&values, row.higher_is_better) {
                None => (Verdict::Undecided, None, "the second measurement has no figure".to_owned()),
                Some(night) => {
                    let found = judge(&row.before, night, gate.limit);
                    let why = if found.verdict == Verdict::Regressed {
                        "measured again on the same device, it is still slower than the nights before"
                    } else {
                        "measured again on the same device, it does not stand out: a bad night"
                    };
                    (found.verdict, found.effect, why.to_owned())
                }
            }
        };
        settle(row, Confirmed { run: second.id.clone(), paired: false, verdict, effect, why });
    }
}

/// Old and new pair by pair, the old as side A.
pub fn against(gate: &mut Gate, comparison: &Comparison) {
    for row in gate.rows.iter_mut().filter(|row| row.verdict == Verdict::Regressed && row.kind == Kind::Performance) {
        let same = |other: &&crate::gate::compare::Row| other.key.cell == row.key.cell && other.metric == row.metric;
        let compared = comparison.rows.iter().find(same).and_then(crate::gate::compare::Row::compared);
        let higher = METRICS.iter().any(|m| m.name == row.metric && m.higher_is_better);
        let effect = compared.and_then(|c| {
            let (lo, hi) = c.interval?;
            Some(Effect::oriented(c.ratio.ln(), lo.ln(), hi.ln(), higher))
        });
        let (verdict, why) = match compared.map(|c| c.verdict) {
            Some(Verdict::Regressed) => (Verdict::Regressed, "slower than the old one, pair by pair on the same device"),
            Some(Verdict::Undecided) => (Verdict::Undecided, "old and new, pair by pair, are not told apart"),
            Some(_) => (
                Verdict::Undecided,
                "old and new, pair by pair, do not differ by so much: the device or the room changed, not what was built",
            ),
            None => (Verdict::Undecided, "old and new were not compared"),
        };
        settle(row, Confirmed { run: comparison.b.run.clone(), paired: true, verdict, effect, why: why.to_owned() });
    }
}

/// What is not confirmed is not known; what was measured stays.
fn settle(row: &mut super::Row, confirmed: Confirmed) {
    row.verdict = if confirmed.verdict == Verdict::Regressed { Verdict::Regressed } else { Verdict::Undecided };
    row.confirmed = Some(confirmed);
}
