//! What all forms say.

use super::super::{Gate, Row, Verdict};
use crate::{
    gate::{
        require::{Judged, Met},
        verdict::Effect,
    },
    words::{self, count, signed, tenths},
};

/// The change of a figure as it is read off the table: -4.0 % of tokens a second, +4.0 % of milliseconds.
pub fn change(row: &Row) -> String {
    row.effect.map(|effect| plain(effect, row.higher_is_better)).unwrap_or_default()
}

fn plain(effect: Effect, higher_is_better: bool) -> String {
    let (ratio, lo, hi) = effect.ratio(higher_is_better);
    format!("{} % [{}, {}]", signed(ratio - 1.0), signed(lo - 1.0), signed(hi - 1.0))
}

/// A share in percent, or nothing.
pub fn percent(share: Option<f64>) -> String {
    share.map(|share| format!("{} %", tenths(share))).unwrap_or_default()
}

/// A figure of four digits.
pub fn figure(value: Option<f64>) -> String {
    value.map(words::figure).unwrap_or_default()
}

/// The minimum detectable effect in words.
pub fn finds(row: &Row) -> Option<String> {
    let within = ["one night", "two nights", "three nights"][row.baseline.clamp(1, 3) - 1];
    row.mde.map(|mde| format!("finds {} within {within}", percent(Some(mde))))
}

/// What a row is about: metric, or the kind of what happened to the cell.
pub fn subject(row: &Row) -> &str {
    if row.metric.is_empty() { row.kind.word() } else { row.metric }
}

/// Everything else that a row has to say, one statement each.
pub fn remarks(row: &Row) -> Vec<String> {
    let mut all = Vec::new();
    if row.effect.is_some() && row.window > 1 {
        all.push(format!("mean of the last {} nights", row.window));
    }
    if let Some(since) = &row.since {
        let changed =
            if since.changed.is_empty() { "nothing else that is known changed with it".to_owned() } else { since.changed.join("; ") };
        all.push(format!("since {} ({}): {changed}", since.started_utc, since.run));
    }
    if let Some(second) = &row.confirmed {
        let word = match second.verdict {
            Verdict::Regressed => "confirmed",
            Verdict::Undecided => "neither confirmed nor excluded",
            Verdict::Unchanged | Verdict::Improved => "not confirmed",
        };
        let change = second.effect.map(|effect| format!(", {}", plain(effect, row.higher_is_better))).unwrap_or_default();
        all.push(format!("{word} by {}{change}: {}", second.run, second.why));
    }
    all.extend(row.reasons.iter().cloned());
    all
}

/// A requirement's figure with its interval.
pub fn measured(judged: &Judged) -> String {
    let Some(value) = judged.value else { return judged.found.clone().unwrap_or_default() };
    let end = |end: Option<f64>| end.map_or_else(|| "-".to_owned(), |end| figure(Some(end)));
    let interval =
        if judged.mde.is_none() && judged.lo == judged.hi { String::new() } else { format!(" [{}, {}]", end(judged.lo), end(judged.hi)) };
    let unit = if judged.unit.is_empty() { String::new() } else { format!(" {}", judged.unit) };
    format!("{}{interval}{unit}", figure(Some(value)))
}

/// A requirement at one cell, in a line.
pub fn requirement(judged: &Judged) -> String {
    let all = [measured(judged), slack(judged), judged.why.clone()];
    let all: Vec<String> = all.into_iter().filter(|text| !text.is_empty()).collect();
    format!("{}: {} at {}: {}", judged.met.word(), judged.words, judged.cell, all.join(", "))
}

/// Room to the limit.
pub fn slack(judged: &Judged) -> String {
    judged.slack.map(|slack| format!("{} % room", signed(slack))).unwrap_or_default()
}

/// How many of each word.
pub fn counts(gate: &Gate) -> String {
    let rows = [Verdict::Regressed, Verdict::Undecided, Verdict::Improved, Verdict::Unchanged].into_iter().filter_map(|verdict| {
        let n = gate.rows.iter().filter(|row| row.verdict == verdict).count();
        (n > 0).then(|| format!("{n} {}", verdict.word()))
    });
    let needs = [Met::Violated, Met::Undecided, Met::NotTried, Met::Passed].into_iter().filter_map(|met| {
        let n = gate.requirements.iter().filter(|judged| judged.met == met).count();
        (n > 0).then(|| format!("{} {}", count(n, "requirement"), met.word()))
    });
    let all: Vec<String> = rows.chain(needs).collect();
    if all.is_empty() { "nothing to judge".to_owned() } else { all.join(", ") }
}

/// The first line.
pub fn title(gate: &Gate) -> String {
    format!("{} against {}, limit {}", gate.run, gate.against, words::percent(gate.limit))
}
