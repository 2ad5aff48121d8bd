//! Run B against run A, cell by cell and metric by metric.
//!
//! Launches within a run can't show what a session does to all of them alike: the temperature of the day, where the loader put the program,
//! what else the machine did. Two runs are two sessions, so every interval here holds, beside the noise of the launches, what sessions
//! differ by ([`session`]): seen in a history, stated, or assumed, and it says which.

mod advice;
mod overall;
mod pairs;
pub mod session;

use serde::Serialize;
use thiserror::Error;

use super::{
    ab::{self, Partners},
    run::{Cell, Key, Run},
    unlike::{self, Difference, Weight},
    verdict::{Effect, Verdict},
};
use crate::{
    results::schema::{METRICS, Metric},
    stats,
};
use session::{Sessions, Source, Spread};

pub use advice::Advice;
pub use overall::Overall;
pub use pairs::{Lone, NotOk};

/// What is compared unless told otherwise: what a user of a model waits for and pays for. The other metrics mostly say the same again, and
/// every further one is a further chance to be wrong.
pub const USUAL: [&str; 7] = ["ttft_ms", "prefill_tok_s", "decode_tok_s", "load_ms", "load_cold_ms", "peak_mem_mb", "energy_j_per_tok"];

/// How to compare.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Differences up to this do not matter: 0.02 for 2 %.
    pub tolerance: f64,
    /// Metrics to compare, by name.
    pub metrics: Vec<&'static str>,
    /// What sessions differ by.
    pub sessions: Sessions,
}

impl Default for Settings {
    /// 2 %, the usual metrics, and of sessions what is assumed of them.
    fn default() -> Self {
        Self { tolerance: 0.02, metrics: USUAL.to_vec(), sessions: Sessions::default() }
    }
}

/// Why two runs are not compared at all.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A run against itself.
    #[error("A and B are one run ({0}): nothing can be learnt from a run against itself; name two runs")]
    Same(String),
}

/// Two runs, compared.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The run that is the measure.
    pub a: Side,
    /// The run that is judged.
    pub b: Side,
    /// Differences up to this do not matter.
    pub tolerance: f64,
    /// What is odd about the two as a pair, in words.
    pub notes: Vec<String>,
    /// What was not the same, the heaviest first.
    pub differences: Vec<Difference>,
    /// Cells and metrics, by metric.
    pub rows: Vec<Row>,
    /// By class and metric.
    pub overall: Vec<Overall>,
    /// Cells that only one of the two has.
    pub lone: Vec<Lone>,
    /// Cells that both have and that are not ok in one of them.
    pub not_ok: Vec<NotOk>,
}

/// One of the two runs.
#[derive(Debug, Serialize)]
pub struct Side {
    /// Its id.
    pub run: String,
    /// Its folder.
    pub folder: String,
    /// Name of its scenario.
    pub scenario: String,
    /// When it began.
    pub started_utc: String,
    /// What is missing in it or makes no sense.
    pub problems: Vec<String>,
}

/// One metric of one cell.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The cell, as A names it.
    #[serde(flatten)]
    pub key: Key,
    /// Its class; empty where the two are of different ones.
    pub class: String,
    /// The metric.
    pub metric: &'static str,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// Composed of the times of graphs and not measured: an upper bound.
    pub composed: bool,
    /// A's figure.
    pub a: Option<Figure>,
    /// B's figure.
    pub b: Option<Figure>,
    /// What came out.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Backend, model, quantisation, prompt tokens and generated tokens of the cell, as A has them: what people look for.
    #[serde(skip)]
    pub of: [String; 5],
}

/// The location of the launches' values (Hodges and Lehmann's, of the logarithms), and how many there are.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figure {
    /// In the metric's unit.
    pub centre: f64,
    /// Launches.
    pub n: usize,
}

/// Whether there is a comparison.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// There is.
    Compared(Compared),
    /// There is none.
    Not {
        /// Why.
        not_compared: String,
    },
}

/// A comparison.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// B over A.
    pub ratio: f64,
    /// 95 % interval of it, sessions included; absent under [`stats::FEWEST_FOR_EFFECT`] launches a side.
    pub interval: Option<(f64, f64)>,
    /// 95 % interval of the launches' noise alone: what holds within these two sessions.
    pub within: Option<(f64, f64)>,
    /// What sessions are taken to differ by.
    pub spread: Spread,
    /// The verdict.
    pub verdict: Verdict,
    /// Pairs of launches of an A/B run; absent where the launches are no pairs.
    pub pairs: Option<usize>,
    /// Smallest regression that so many pairs of this noise find nine times out of ten, 0.02 for 2 %.
    pub mde: Option<f64>,
    /// For an undecided one: what would decide it.
    pub decide: Vec<Advice>,
    /// For the mean over cells.
    #[serde(skip)]
    error: Option<f64>,
}

impl Row {
    /// The comparison, if there is one.
    pub fn compared(&self) -> Option<&Compared> {
        match &self.outcome {
            Outcome::Compared(compared) => Some(compared),
            Outcome::Not { .. } => None,
        }
    }
}

impl Comparison {
    /// How often each verdict was given.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts().filter(|found| *found == verdict).count()
    }

    /// The verdicts of the rows.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.rows.iter().filter_map(|row| Some(row.compared()?.verdict))
    }
}

/// Compares B with A.
pub fn compare(a: &Run, b: &Run, settings: &Settings) -> Result<Comparison, CompareError> {
    let mut notes = pairs::of_one_run(a, b)?;
    let partners = Partners::of(a, b);
    let found = pairs::pair(a, b, partners);
    notes.extend(found.note.clone());
    let mut sessions = settings.sessions.clone();
    let busy = [("A", a), ("B", b)].into_iter().filter_map(|(name, run)| Some(format!("{} in {name}", run.busy()?)));
    let busy: Vec<String> = busy.collect();
    // Pairs need no assumption, which is what a busy computer forbids; but it need not treat both launches of a pair alike.
    sessions.busy = partners.is_none() && !busy.is_empty();
    if !busy.is_empty() {
        let pairs = if partners.is_some() { "; it need not have hit both launches of a pair: measure again on a quiet one" } else { "" };
        notes.push(format!("the computer may have been busy with something else: {}{pairs}", busy.join(", ")));
    }
    let settings = &Settings { sessions, ..settings.clone() };
    let differences = unlike::between(a, b, found.both.iter().map(|pair| (pair.key, pair.a, pair.b)));
    let ok: Vec<_> = found.both.iter().filter(|pair| pair.a.is_ok() && pair.b.is_ok()).collect();
    let mut rows = Vec::new();
    for metric in METRICS.iter().filter(|metric| settings.metrics.contains(&metric.name)) {
        rows.extend(ok.iter().filter_map(|pair| row(pair, metric, &differences, settings, partners.is_some())));
    }
    let compared = rows.iter().filter(|row| row.compared().is_some_and(|c| c.interval.is_some())).count();
    if compared >= 20 {
        notes.push(format!(
            "{compared} comparisons at 95 %: some {} of their intervals miss the truth by chance alone",
            compared.div_ceil(20)
        ));
    }
    let overall = overall::of_rows(&rows, settings);
    let side = |run: &Run| Side {
        run: run.id.clone(),
        folder: run.folder.display().to_string(),
        scenario: run.scenario.clone(),
        started_utc: run.started_utc.clone(),
        problems: run.problems.clone(),
    };
    Ok(Comparison {
        a: side(a),
        b: side(b),
        tolerance: settings.tolerance,
        notes,
        differences,
        rows,
        overall,
        lone: found.lone,
        not_ok: found.not_ok,
    })
}

/// One metric of one cell; `None` when neither side has it.
fn row(pair: &pairs::Pair, metric: &Metric, differences: &[Difference], settings: &Settings, interleaved: bool) -> Option<Row> {
    let pairs::Pair { key, a, b } = *pair;
    let (of_a, of_b) = (a.values(metric.name), b.values(metric.name));
    if of_a.is_empty() && of_b.is_empty() {
        return None;
    }
    let figure = |values: &[f64]| Some(Figure { centre: stats::centre(values).or_else(|| stats::median(values))?, n: values.len() });
    let method = |cell: &Cell| match metric.name {
        "ttft_ms" => cell.field("ttft_method") == "composed",
        "prefill_tok_s" => cell.field("prefill_method") == "composed",
        _ => cell.field("decode_method") == "composed",
    };
    let class = if a.field("device_class") == b.field("device_class") { a.field("device_class") } else { "" };
    let here =
        |difference: &&Difference| difference.touches(metric.name) && (difference.cells.is_empty() || difference.cells.contains(key));
    let relevant: Vec<&Difference> = differences.iter().filter(here).collect();
    let outcome = match bar(&relevant, metric, (a, &of_a), (b, &of_b)) {
        Some(not_compared) => Outcome::Not { not_compared },
        None if interleaved => {
            let pairs = ab::pairs(a, b, metric.name);
            judge(stats::paired_effect(&pairs), pairs.len(), metric, &Spread::INTERLEAVED, settings.tolerance, &relevant)
        }
        None => {
            let (effect, spread) = (stats::log_effect(&of_a, &of_b), settings.sessions.of(key, class, metric.name));
            judge(effect, of_a.len().min(of_b.len()), metric, &spread, settings.tolerance, &relevant)
        }
    };
    Some(Row {
        key: key.clone(),
        class: class.to_owned(),
        metric: metric.name,
        higher_is_better: metric.higher_is_better,
        composed: method(a) || method(b),
        a: figure(&of_a),
        b: figure(&of_b),
        outcome,
        of: ["backend", "model", "quant", "prompt_tokens", "gen_tokens"].map(|column| a.field(column).to_owned()),
    })
}

/// Why the two figures are not to be compared.
fn bar(relevant: &[&Difference], metric: &Metric, a: (&Cell, &[f64]), b: (&Cell, &[f64])) -> Option<String> {
    if let Some(difference) = relevant.iter().find(|difference| difference.weight == Weight::Bars) {
        return Some(difference.words());
    }
    for (name, (cell, values)) in [("A", a), ("B", b)] {
        if values.is_empty() {
            let reasons = cell.field("absent").split(';').filter_map(|entry| entry.split_once('='));
            let reason = reasons.filter(|(of, _)| *of == metric.name).map(|(_, why)| format!(": {why}")).next();
            return Some(format!("absent in {name}{}", reason.unwrap_or_default()));
        }
        if cell.unmeasured.contains_key(metric.name) || values.iter().any(|value| *value <= 0.0) {
            return Some(format!("{name} has values that are not above 0 or no numbers, which have no ratio"));
        }
    }
    None
}

fn judge(
    effect: Option<stats::Effect>,
    launches: usize,
    metric: &Metric,
    spread: &Spread,
    tolerance: f64,
    relevant: &[&Difference],
) -> Outcome {
    let Some(effect) = effect else {
        return Outcome::Not { not_compared: "the values have no ratio".to_owned() };
    };
    let interleaved = spread.source == Source::Interleaved;
    let both = effect.interval.zip(effect.error).filter(|_| spread.sd.is_finite());
    let interval = both.map(|(_, error)| spread.widen(effect.log, error, effect.degrees));
    let oriented = interval.map(|(lo, hi)| Effect::oriented(effect.log, lo, hi, metric.higher_is_better));
    let verdict = oriented.map_or(Verdict::Undecided, |effect| effect.verdict(tolerance));
    let decide = if verdict == Verdict::Undecided {
        advice::decide(&advice::Seen { effect, launches, spread, tolerance, differences: relevant })
    } else {
        Vec::new()
    };
    let natural = |(lo, hi): (f64, f64)| (lo.exp(), hi.exp());
    Outcome::Compared(Compared {
        ratio: effect.ratio(),
        interval: interval.map(natural),
        within: effect.interval.map(natural),
        spread: spread.clone(),
        verdict,
        decide,
        pairs: interleaved.then_some(launches),
        mde: if interleaved { ab::detectable(&effect, tolerance) } else { None },
        error: both.map(|(_, error)| error),
    })
}

#[cfg(test)]
mod tests;
