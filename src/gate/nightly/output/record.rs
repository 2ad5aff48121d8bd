//! What the lab's site keeps of a judgement: `gate.json` beside the page of the run.

use serde::{Deserialize, Serialize};

use super::super::{Gate, Verdict};
use super::words;
use crate::{gate::require::Met, results::schema::FORMAT_VERSION, words::percent};

/// A judgement in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format.
    pub format_version: u32,
    /// Id of the run.
    pub run: String,
    /// `regressed`, `undecided` or `passed`.
    pub verdict: String,
    /// How many rows and requirements have which verdict, and what they are held against.
    pub words: Vec<String>,
    /// A line for each regression and each requirement that is violated.
    pub worse: Vec<String>,
    /// Whether anything was held against other nights; an older bench did not say.
    #[serde(default)]
    pub held: Option<bool>,
}

impl Record {
    /// Of a gate.
    pub fn of(gate: &Gate) -> Self {
        let regressed = gate.rows.iter().filter(|row| row.verdict == Verdict::Regressed).map(|row| {
            let what = [row.key.cell.as_str(), "on", row.key.device.as_str(), words::subject(row)].map(str::to_owned);
            let told = std::iter::once(words::change(row)).chain(words::remarks(row)).filter(|text| !text.is_empty());
            format!("{}: {}", what.join(" "), told.collect::<Vec<_>>().join("; "))
        });
        let violated = gate.requirements.iter().filter(|judged| judged.met == Met::Violated).map(words::requirement);
        Self {
            format_version: FORMAT_VERSION,
            run: gate.run.clone(),
            verdict: word(gate).to_owned(),
            words: vec![words::counts(gate), format!("against {}, limit {}", gate.against, percent(gate.limit))],
            worse: regressed.chain(violated).collect(),
            held: Some(gate.rows.iter().any(|row| row.effect.is_some() || row.verdict == Verdict::Regressed)),
        }
    }
}

/// The judgement as a whole.
pub fn word(gate: &Gate) -> &'static str {
    match (gate.regressed(), gate.undecided()) {
        (true, _) => "regressed",
        (false, true) => "undecided",
        (false, false) => "passed",
    }
}
