//! One run folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use polars::prelude::{col, lit};
use serde_json::Value;

use super::phases::phases;
use super::places::{places, words};
use super::soak::soaks;
use super::timeline::timelines;
use super::types::{Cell, CellKey, Estimate, Launches, Layer, Run, Status};
use crate::report::ReportError;
use crate::results::read::{Loaded, read};
use crate::results::schema::{CELLS, LAYERS, METRIC_ENDS, METRICS, SAMPLES, TOKENS};
use crate::stats;

/// Reads a run folder. Only `cells.csv` must be there; what else is missing is told in [`Run::problems`].
pub fn load(dir: &Path) -> Result<Run, ReportError> {
    let mut run = Run { folder: dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned(), ..Run::default() };
    run.manifest = manifest(dir, &mut run.problems);
    run.power_asked = power_asked(dir);
    let metric_columns: Vec<String> =
        METRICS.iter().flat_map(|metric| METRIC_ENDS.map(|suffix| format!("{}{suffix}", metric.name))).collect();
    let wanted: Vec<&str> = CELLS.columns.iter().map(|column| column.name).chain(metric_columns.iter().map(String::as_str)).collect();
    let mut table = read(dir, &CELLS, &wanted, None)?.ok_or_else(|| ReportError::NotARun(dir.to_owned()))?;
    run.cells = cells(&mut table);
    run.problems.extend(table.complaint());

    // The profile pass feeds `layers.csv` and nothing else: profiling slows what it looks at.
    let measured = || col("pass").eq(lit("measure"));
    let wanted = ["device", "cell", "launch", "query", "aggregate_n", "ttft_ms", "decode_tok_s"];
    let counted = measured().and(col("status").eq(lit("ok"))).and(col("query_kind").eq(lit("warm_query")));
    let mut queries = None;
    if let Some(mut table) = optional(
        &mut run.problems,
        "ratios without their intervals, no look for launches that stand apart",
        read(dir, &SAMPLES, &wanted, Some(counted))?,
        SAMPLES.file,
    ) {
        queries = Some(samples(&mut table, &mut run.launches));
        run.problems.extend(table.complaint());
    }
    let wanted = ["device", "cell", "launch", "query", "itl_ms"];
    if let Some(mut table) =
        optional(&mut run.problems, "no distribution of token latencies", read(dir, &TOKENS, &wanted, Some(measured()))?, TOKENS.file)
    {
        gaps(&mut table, queries.as_ref(), &mut run.gaps);
        run.problems.extend(table.complaint());
    }
    timelines(dir, &mut run)?;
    soaks(dir, &mut run)?;
    phases(dir, &mut run)?;
    places(dir, &mut run)?;
    let wanted = [
        ["device", "cell", "graph", "phase", "name", "op_type", "part", "op_kind"],
        ["op_class", "unit", "value", "value_unit", "value_means", "folded", "count", "method"],
    ]
    .concat();
    if let Some(mut table) = optional(&mut run.problems, "no layers", read(dir, &LAYERS, &wanted, None)?, LAYERS.file) {
        run.layers = layers(&mut table);
        run.problems.extend(table.complaint());
    }
    Ok(run)
}

pub(super) fn optional(problems: &mut Vec<String>, lost: &str, table: Option<Loaded>, file: &str) -> Option<Loaded> {
    if table.is_none() {
        problems.push(format!("{file} is missing: {lost}"));
    }
    table
}

fn manifest(dir: &Path, problems: &mut Vec<String>) -> Value {
    let read = fs::read_to_string(dir.join("manifest.json")).map_err(|error| error.to_string());
    read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string())).unwrap_or_else(|error| {
        problems.push(format!("manifest.json can't be read, so device, runtimes and environment are unknown: {error}"));
        Value::Null
    })
}

/// Whether the stored plan asks for power. Only this is wanted of it, so that a plan of any version will do; without one nothing is promised.
fn power_asked(dir: &Path) -> bool {
    let plan = fs::read_to_string(dir.join("plan.toml")).ok().and_then(|text| text.parse::<toml::Table>().ok());
    plan.is_some_and(|plan| plan.contains_key("power"))
}

pub(super) fn keys(table: &Loaded) -> Vec<CellKey> {
    let (devices, cells) = (table.text("device"), table.text("cell"));
    devices
        .into_iter()
        .zip(cells)
        .map(|(device, cell)| CellKey { device: device.unwrap_or_default(), cell: cell.unwrap_or_default() })
        .collect()
}

fn cells(table: &mut Loaded) -> Vec<Cell> {
    let keys = keys(table);
    let text: BTreeMap<&'static str, Vec<Option<String>>> =
        CELLS.columns.iter().map(|column| (column.name, table.text(column.name))).collect();
    let mut metrics = vec![BTreeMap::new(); keys.len()];
    for metric in METRICS {
        let [median, lo, hi, mad] = ["", "_lo", "_hi", "_mad"].map(|suffix| table.float(&format!("{}{suffix}", metric.name)));
        let n = table.int(&format!("{}_n", metric.name));
        for (row, found) in metrics.iter_mut().enumerate() {
            if let Some(median) = median[row] {
                let interval = lo[row].zip(hi[row]).filter(|(lo, hi)| lo <= hi);
                found.insert(metric.name, Estimate { median, interval, mad: mad[row], n: n[row].and_then(|n| usize::try_from(n).ok()) });
            }
        }
    }
    let mut rows = Vec::with_capacity(keys.len());
    for (row, (key, metrics)) in keys.into_iter().zip(metrics).enumerate() {
        let field = |name: &str| text.get(name).and_then(|values| values[row].clone());
        let whole = |name: &str| field(name).and_then(|value| value.parse().ok()).unwrap_or(0);
        let word = |name: &str| field(name).unwrap_or_default();
        rows.push(Cell {
            class: word("device_class"),
            backend: word("backend"),
            model: word("model"),
            quant: word("quant"),
            prompt: whole("prompt_tokens"),
            generate: whole("gen_tokens"),
            status: Status::of(&word("status")),
            absent: reasons(&word("absent")),
            fields: text.iter().filter_map(|(name, values)| Some((*name, values[row].clone()?))).collect(),
            key,
            metrics,
        });
    }
    rows
}

/// `metric=reason;metric=reason`. A reason may hold an equals sign; a piece without one belongs to the reason before it.
fn reasons(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut last: Option<String> = None;
    for piece in text.split(';') {
        let named =
            piece.split_once('=').filter(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        if let Some((name, reason)) = named {
            found.insert(name.to_owned(), reason.trim().to_owned());
            last = Some(name.to_owned());
        } else if let Some(reason) = last.as_ref().and_then(|name| found.get_mut(name)) {
            reason.push(';');
            reason.push_str(piece);
        }
    }
    found
}

type Query = (CellKey, i64, i64);

fn samples(table: &mut Loaded, into: &mut BTreeMap<CellKey, Launches>) -> BTreeSet<Query> {
    let (keys, launch, query, aggregate) = (keys(table), table.int("launch"), table.int("query"), table.int("aggregate_n"));
    let (ttft, decode) = (table.float("ttft_ms"), table.float("decode_tok_s"));
    let mut queries = BTreeSet::new();
    let mut by_launch: BTreeMap<(CellKey, i64), [Vec<f64>; 2]> = BTreeMap::new();
    for (row, key) in keys.into_iter().enumerate() {
        let launch = launch[row].unwrap_or(0);
        queries.insert((key.clone(), launch, query[row].unwrap_or(0)));
        into.entry(key.clone()).or_default().aggregate |= aggregate[row].is_some_and(|n| n > 1);
        let values = by_launch.entry((key, launch)).or_default();
        values[0].extend(ttft[row]);
        values[1].extend(decode[row]);
    }
    for ((key, _), [ttft, decode]) in by_launch {
        let launches = into.entry(key).or_default();
        launches.ttft_ms.extend(stats::median(&ttft));
        launches.decode_tok_s.extend(stats::median(&decode));
    }
    queries
}

/// Without `samples.csv` nobody says which queries count; the first of a launch never does.
fn gaps(table: &mut Loaded, counted: Option<&BTreeSet<Query>>, into: &mut BTreeMap<CellKey, Vec<f64>>) {
    let (keys, launch, query, gap) = (keys(table), table.int("launch"), table.int("query"), table.float("itl_ms"));
    for (row, key) in keys.into_iter().enumerate() {
        let (Some(gap), launch, query) = (gap[row], launch[row].unwrap_or(0), query[row].unwrap_or(0)) else { continue };
        let counts = counted.map_or(query > 0, |queries| queries.contains(&(key.clone(), launch, query)));
        if counts && gap >= 0.0 {
            into.entry(key).or_default().push(gap);
        }
    }
}

fn layers(table: &mut Loaded) -> BTreeMap<CellKey, Vec<Layer>> {
    let keys = keys(table);
    let op_type = table.text("op_type");
    let [graph, phase, name, part, kind, class, unit, value_unit, means, method] =
        ["graph", "phase", "name", "part", "op_kind", "op_class", "unit", "value_unit", "value_means", "method"]
            .map(|column| words(table, column));
    let (value, count, folded) = (table.float("value"), table.int("count"), table.int("folded"));
    let mut found: BTreeMap<CellKey, Vec<Layer>> = BTreeMap::new();
    for (row, key) in keys.into_iter().enumerate() {
        let Some(value) = value[row].filter(|value| *value >= 0.0) else { continue };
        let named = [phase[row].as_str(), graph[row].as_str()].into_iter().filter(|word| !word.is_empty());
        let word = |column: &[String]| column[row].clone();
        found.entry(key).or_default().push(Layer {
            graph: named.collect::<Vec<_>>().join(" · "),
            name: word(&name),
            op_type: op_type[row].clone(),
            phase: word(&phase),
            part: word(&part),
            kind: word(&kind),
            class: word(&class),
            unit: word(&unit),
            folded: folded[row] == Some(1),
            value,
            value_unit: word(&value_unit),
            means: word(&means),
            count: count[row],
            method: word(&method),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::reasons;

    #[test]
    fn reasons_may_hold_the_separators() {
        let found = reasons("itl_p50_ms=text callback; merges pieces;load_ms=a=b;;=x");
        assert_eq!(found["itl_p50_ms"], "text callback; merges pieces");
        assert!(found["load_ms"].starts_with("a=b"));
        assert!(reasons("").is_empty());
    }
}
