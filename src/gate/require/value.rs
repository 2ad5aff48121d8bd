//! What was measured of a requirement's metric at a cell, or why nothing was.

use std::collections::BTreeMap;

use bench_backend_api::FailureKind;

use super::{
    super::run::{Cell, Key},
    Evidence, Met,
};
use crate::{
    results::read::visible,
    scenario::{Limit, Phase, Requirement, Source, Statistic},
    stats::{self, DEFAULT_SEED, interval, tail},
    words,
};

/// What a requirement is held against.
pub enum Value {
    /// Nothing.
    None {
        /// The cell was tried.
        tried: bool,
        /// Why.
        why: String,
    },
    /// A word.
    Word {
        /// The word.
        found: String,
        /// What it means for the requirement.
        met: Met,
        /// Why.
        why: String,
    },
    /// A number.
    Number {
        /// The number.
        value: f64,
        /// Lower end of its 95 % interval.
        lo: Option<f64>,
        /// Upper end.
        hi: Option<f64>,
        /// Independent values behind it.
        n: usize,
        /// It is what it is: no interval belongs to it.
        exact: bool,
        /// What to know of it.
        why: String,
    },
}

fn none(why: impl Into<String>) -> Value {
    Value::None { tried: true, why: why.into() }
}

/// Fewest values of which two order statistics are a 95 % interval of the median.
const FEWEST: usize = 6;

/// Looks the value up.
pub fn measured(requirement: &Requirement, key: &Key, cell: &Cell, evidence: &Evidence) -> Value {
    let Some(subject) = requirement.subject() else {
        return none(format!("this bench does not know the metric {}: update it", requirement.metric));
    };
    let status = cell.field("status");
    let of_checks = matches!(subject.source, Source::Exact("token_agreement") | Source::Word("unit_found", _));
    // Checks tell something of a contradicted cell as well: that is how it was contradicted.
    let of_endings = matches!(subject.source, Source::Support(_));
    if status != "ok" && !of_endings && !(of_checks && status == "unverified") {
        let reason = cell.field("reason");
        return Value::None {
            tried: status != "skipped",
            why: format!("not measured: the cell is {status}{}{reason}", if reason.is_empty() { "" } else { ": " }),
        };
    }
    let timed = !matches!(subject.source, Source::Exact(_) | Source::Word(..) | Source::Support(_));
    if timed && cell.field("device_class") == "emulator" {
        return none("not measured: the time, memory and power of an emulator say nothing about a device");
    }
    match subject.source {
        Source::Metric(name) => metric(name, requirement.statistic.unwrap_or(Statistic::Median), key, cell, evidence),
        Source::Gaps => {
            let name = match requirement.statistic {
                Some(Statistic::P90) => "itl_p90_ms",
                Some(Statistic::P99) => "itl_p99_ms",
                _ => "itl_p50_ms",
            };
            metric(name, Statistic::Median, key, cell, evidence)
        }
        Source::Power => power(requirement.phase, requirement.statistic == Some(Statistic::Net), cell),
        Source::Energy => {
            let name = if requirement.phase == Some(Phase::Prefill) { "energy_j_per_prompt_tok" } else { "energy_j_per_tok" };
            match cell.field("energy_phase_method") {
                // Its values are those of many cells together; the interval of the regression is the row's.
                "regression" => none(
                    "joules of a token are from a regression over cells here: its row in cells.csv has them, and no value a launch decides",
                ),
                _ => of_launches(name, &cell.values(name), cell, String::new()),
            }
        }
        Source::Soak => soak(requirement.minute, None, key, cell, evidence),
        Source::SoakRatio => match number(cell, "soak_tok_s") {
            None => none(absent(cell, "soak_absent", "soak_tok_s")),
            first => soak(requirement.minute, first, key, cell, evidence),
        },
        Source::Exact(column) => match number(cell, column) {
            Some(value) => Value::Number { value, lo: Some(value), hi: Some(value), n: 1, exact: true, why: String::new() },
            None => none(absent(cell, "absent", column)),
        },
        Source::Word(column, _) => word(column, &requirement.limit, cell),
        Source::Support(_) => support(key, cell, evidence),
    }
}

/// A number of a row; what is none, or can't be, is absent.
fn number(cell: &Cell, column: &str) -> Option<f64> {
    let can_be = |value: &f64| if column == "token_agreement" { (0.0..=1.0).contains(value) } else { *value > 0.0 };
    cell.field(column).parse().ok().filter(|v: &f64| v.is_finite()).filter(can_be)
}

/// What the reason begins with where there are figures, and none that could have been measured, or not all of them.
pub const DAMAGED: &str = "damaged: ";

fn damaged(what: &str) -> Value {
    none(format!("{DAMAGED}{what}"))
}

/// Why the values of a metric decide nothing: times, rates, memory, power and energy are above 0 where they were measured at all, and as many as
/// `cells.csv` counts.
fn odd(name: &str, mut values: impl Iterator<Item = f64>, cell: &Cell) -> Option<Value> {
    if let Some(what) = cell.damage(name) {
        return Some(damaged(&what));
    }
    let odd = values.find(|value| !value.is_finite() || *value <= 0.0)?;
    Some(damaged(&format!("a value of {name} is {}, which can't be one", words::figure(odd))))
}

/// Why a figure is absent, as its row says.
fn absent(cell: &Cell, column: &str, figure: &str) -> String {
    // There is a figure, and it is none.
    if let Some(what) = cell.damage(figure) {
        return format!("{DAMAGED}{what}");
    }
    let told = cell.field(column).split(';').find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == figure));
    match (told, column, cell.field("soak_ended")) {
        (Some((_, why)), ..) => format!("not measured: {why}"),
        (None, "soak_absent", "") => "not measured: the cell has no soak".to_owned(),
        (None, "soak_absent", ended) => format!("not measured: the soak is {ended}"),
        _ => "not measured: the run does not say why".to_owned(),
    }
}

fn metric(name: &'static str, statistic: Statistic, key: &Key, cell: &Cell, evidence: &Evidence) -> Value {
    let method = match name {
        "ttft_ms" => cell.field("ttft_method"),
        "prefill_tok_s" => cell.field("prefill_method"),
        "decode_tok_s" | "tpot_ms" => cell.field("decode_method"),
        _ => "",
    };
    if method == "composed" {
        return none("not measured: composed of graph times, a bound that no engine reaches (rule R11)");
    }
    let told = if method == "runtime_reported" { "as the runtime reports it".to_owned() } else { String::new() };
    if statistic == Statistic::Median {
        return of_launches(name, &cell.values(name), cell, told);
    }
    let higher = crate::results::schema::METRICS.iter().any(|m| m.name == name && m.higher_is_better);
    let share = statistic.share().map_or(0.5, |share| if higher { 1.0 - share } else { share });
    let values = evidence.values(name, key, cell);
    if let Some(odd) = odd(name, values.iter().flatten().copied(), cell) {
        return odd;
    }
    let Some(found) = tail(&values, share) else { return none(absent(cell, "absent", name)) };
    let few = if found.effective < found.needed {
        let why = format!("{} queries are worth {} independent ones, {} have an interval", found.n, found.effective, found.needed);
        if told.is_empty() { why } else { format!("{why}; {told}") }
    } else {
        told
    };
    Value::Number { value: found.value, lo: found.lo, hi: found.hi, n: found.effective, exact: false, why: few }
}

/// The median of launches with its interval; none of too few.
fn of_launches(name: &str, values: &[f64], cell: &Cell, told: String) -> Value {
    if let Some(odd) = odd(name, values.iter().copied(), cell) {
        return odd;
    }
    let (Some(value), Some(found)) = (stats::median(values), interval(values, DEFAULT_SEED)) else {
        return none(absent(cell, "absent", name));
    };
    with_interval(value, values, found, told, "launches")
}

fn with_interval(value: f64, values: &[f64], found: stats::Interval, told: String, what: &str) -> Value {
    if found.coverage < 0.95 {
        let why = format!("{} {what}: {FEWEST} have a 95 % interval", values.len());
        return Value::Number { value, lo: None, hi: None, n: values.len(), exact: false, why };
    }
    Value::Number { value, lo: Some(found.lo), hi: Some(found.hi), n: values.len(), exact: false, why: told }
}

/// Watts of a phase. Net: less the idle baseline of the same launch, which `energy_net_j` has taken off; it is absent where the baseline is too
/// uncertain (rule R15).
fn power(phase: Option<Phase>, net: bool, cell: &Cell) -> Value {
    let name = match phase {
        Some(Phase::Prefill) => "prefill_power_w",
        Some(Phase::Decode) => "decode_power_w",
        _ => "power_avg_w",
    };
    let own = cell.values(name);
    if !net {
        return of_launches(name, &own, cell, String::new());
    }
    let by_launch =
        |name: &str| -> BTreeMap<i64, f64> { cell.metrics.get(name).into_iter().flatten().map(|l| (l.launch, l.value)).collect() };
    let [watts, mean, gross, less] = [name, "power_avg_w", "energy_gross_j", "energy_net_j"].map(by_launch);
    let values: Vec<f64> = watts
        .iter()
        .filter_map(|(launch, watts)| {
            let baseline = mean.get(launch)? * (1.0 - less.get(launch)? / gross.get(launch).filter(|gross| **gross > 0.0)?);
            Some(watts - baseline)
        })
        .collect();
    if values.is_empty() && !own.is_empty() {
        return none(absent(cell, "absent", "energy_net_j"));
    }
    of_launches(name, &values, cell, "derived: less the idle baseline".to_owned())
}

/// Throughput at the end of a minute of the soak: the windows of that minute, or the last six up to it where they are longer.
fn soak(minute: Option<u32>, first: Option<f64>, key: &Key, cell: &Cell, evidence: &Evidence) -> Value {
    if cell.field("soak_check_tokens") == "contradicted" {
        return none("not measured: the check of the soak's answers contradicts it");
    }
    let (windows, until) = (evidence.windows(key), f64::from(minute.unwrap_or(1)) * 60.0);
    let Some(last) = windows.last() else { return none(absent(cell, "soak_absent", "soak_tok_s")) };
    // Windows end a little after the full minute or before it.
    if last.end_s < until - last.length_s / 2.0 {
        return none(format!("not measured: the soak has ended after {:.0} s", last.end_s));
    }
    let up_to: Vec<_> = windows.iter().filter(|w| w.end_s <= until + w.length_s / 2.0).collect();
    let of_minute = up_to.iter().filter(|w| w.end_s > until - 60.0 + w.length_s / 2.0).count();
    let taken = &up_to[up_to.len() - of_minute.max(FEWEST).min(up_to.len())..];
    let values: Vec<f64> = taken.iter().map(|w| w.rate / first.unwrap_or(1.0)).collect();
    if values.iter().any(|value| !value.is_finite() || *value < 0.0) {
        return damaged("the soak has windows whose throughput is no number from 0 on");
    }
    let (Some(value), Some(found)) = (stats::median(&values), interval(&values, DEFAULT_SEED)) else {
        return none("not measured: no window ends by that minute");
    };
    let seconds: f64 = taken.iter().map(|w| w.length_s).sum();
    with_interval(value, &values, found, format!("the interval is of the windows of {seconds:.0} s of one soak"), "windows of the soak")
}

/// Whether the cell's combination of model, quantisation, backend and unit is supported: `support.csv` says how all of its cells ended, and the
/// cell itself has to be ok. What only its surroundings broke, or nobody tried, is no evidence.
fn support(key: &Key, cell: &Cell, evidence: &Evidence) -> Value {
    let (status, reason) = (cell.field("status"), cell.field("reason"));
    let because = |words: &str| if reason.is_empty() { words.to_owned() } else { format!("{words}: {reason}") };
    let surroundings = FailureKind::parse(cell.field("failure_kind")).is_some_and(FailureKind::is_surroundings);
    if status == "skipped" || surroundings {
        return Value::None { tried: status != "skipped", why: because(&format!("not measured: the cell is {status}")) };
    }
    let Some(found) = evidence.support(key, cell) else {
        return none("not measured: support.csv has no row of this model, quantisation, backend and unit");
    };
    let of_op = |words: &str| {
        let op = if found.op.is_empty() { "an operation".to_owned() } else { found.op.clone() };
        let reason = if found.reason.is_empty() { String::new() } else { format!(": {}", found.reason) };
        format!("{op} {words}{reason}")
    };
    let (word, met, why) = match found.word.as_str() {
        "runs" if cell.is_ok() => ("runs", Met::Passed, String::new()),
        "runs" => ("fails", Met::Violated, because(&format!("other cells of it run, and this one is {status}"))),
        word @ "runs-with-fallback" => (word, Met::Violated, of_op("ran on another unit")),
        word @ "fails-at-op" => (word, Met::Violated, of_op("can't run on this unit")),
        word @ "fails" => (word, Met::Violated, found.reason.clone()),
        "not-tried" => return none(because(&format!("not measured: the cell is {status}"))),
        _ => return none(format!("not measured: support.csv says {}, which this bench does not know", visible(&found.word))),
    };
    Value::Word { found: word.to_owned(), met, why }
}

fn word(column: &str, limit: &Limit, cell: &Cell) -> Value {
    let found = cell.field(column).to_owned();
    let Limit::Is(wanted) = limit else { return none("a number as the limit of a word") };
    if found.is_empty() {
        return none(if column == "unit_found" { "not measured: there is no evidence of the unit that worked" } else { "not measured" });
    }
    let (met, why) = match (column, cell.field("check_unit")) {
        // Without evidence a runtime's own word is not proof.
        ("unit_found", "not-checkable" | "") => (Met::Undecided, "the runtime says so; nothing proves it"),
        ("stability", _) if found == "unknown" => (Met::Undecided, "too few launches to tell"),
        _ if found == *wanted => (Met::Passed, ""),
        _ => (Met::Violated, ""),
    };
    Value::Word { found, met, why: why.to_owned() }
}
