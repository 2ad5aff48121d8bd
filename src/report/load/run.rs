//! One run folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    thread,
};

use bench_tables::Columns;
use serde_json::Value;

use super::large::{ByCell, Large, by_cell, large};
use super::phases::phases;
use super::places::places;
use super::soak::soaks;
use super::timeline::arrived;
use super::types::{Cell, CellKey, Estimate, Launches, Run, Status};
use crate::report::ReportError;
use crate::results::read::{Loaded, complaint, read};
use crate::results::schema::{CELLS, LAYERS, METRIC_ENDS, METRICS, SAMPLES, TELEMETRY, TOKENS};
use crate::stats;
use crate::words::count;

/// Reads a run folder. Only `cells.csv` must be there; what else is missing is told in [`Run::problems`].
pub fn load(dir: &Path) -> Result<Run, ReportError> {
    let mut run = Run { folder: dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned(), ..Run::default() };
    run.manifest = manifest(dir, &mut run.problems);
    let metric_columns: Vec<String> =
        METRICS.iter().flat_map(|metric| METRIC_ENDS.map(|suffix| format!("{}{suffix}", metric.name))).collect();
    let wanted: Vec<&str> = CELLS.columns.iter().map(|column| column.name).chain(metric_columns.iter().map(String::as_str)).collect();
    let (table, large) = thread::scope(|scope| {
        let large = scope.spawn(|| large(dir));
        let table = read(dir, &CELLS, &wanted, None);
        run.power_asked = power_asked(dir);
        (table, large.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let mut table = table?.ok_or_else(|| ReportError::NotARun(dir.to_owned()))?;
    run.cells = cells(&mut table);
    run.problems.extend(table.complaint());

    let Large { telemetry, tokens, samples, layers } = large?;
    let lost = "ratios without their intervals, no look for launches that stand apart";
    let queries = noted(&mut run.problems, lost, samples.as_ref(), SAMPLES.file).map(|table| launches(table, &mut run.launches));
    contradicted(&mut run);
    if let Some(table) = noted(&mut run.problems, "no distribution of token latencies", tokens.as_ref(), TOKENS.file) {
        run.gaps = gaps(table, queries.as_ref());
    }
    run.timelines = told(&mut run.problems, "nothing over time: memory, temperatures, clocks", telemetry, TELEMETRY.file);
    if let Some(tokens) = &tokens {
        arrived(tokens, samples.as_ref(), &mut run.timelines);
    }
    soaks(dir, &mut run)?;
    phases(dir, &mut run)?;
    places(dir, &mut run)?;
    run.layers = told(&mut run.problems, "no layers", layers, LAYERS.file);
    Ok(run)
}

/// What a large table tells of each cell, with what is to be said of the table; nothing where the folder lacks it.
fn told<T>(problems: &mut Vec<String>, lost: &str, table: Option<ByCell<T>>, file: &str) -> BTreeMap<CellKey, T> {
    let (told, complaint) = table.unwrap_or_else(|| (BTreeMap::new(), Some(missing(file, lost))));
    problems.extend(complaint);
    told
}

/// A large table, and what is to be said of it.
fn noted<'a>(problems: &mut Vec<String>, lost: &str, table: Option<&'a Columns>, file: &str) -> Option<&'a Columns> {
    match table {
        None => problems.push(missing(file, lost)),
        Some(table) => problems.extend(complaint(file, table.cut, table.not_numbers())),
    }
    table
}

fn missing(file: &str, lost: &str) -> String {
    format!("{file} is missing: {lost}")
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

/// Launch and query of those that count.
type Queries = BTreeMap<CellKey, BTreeSet<(i64, i64)>>;

/// The values of the warm queries that count, one a launch.
fn launches(table: &Columns, into: &mut BTreeMap<CellKey, Launches>) -> Queries {
    let [launch, query, aggregate, ttft, decode] =
        ["launch", "query", "aggregate_n", "ttft_ms", "decode_tok_s"].map(|name| table.numbers(name));
    let [status, kind] = ["status", "query_kind"].map(|name| table.words(name));
    let whole = |value: Option<f64>| value.map_or(0, |value| value as i64);
    let mut queries = Queries::new();
    for (key, rows) in by_cell(table) {
        let mut by_launch: BTreeMap<i64, [Vec<f64>; 2]> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| status.at(*row) == "ok" && kind.at(*row) == "warm_query") {
            let number = whole(launch.at(row));
            queries.entry(key.clone()).or_default().insert((number, whole(query.at(row))));
            into.entry(key.clone()).or_default().aggregate |= aggregate.at(row).is_some_and(|n| n > 1.0);
            let values = by_launch.entry(number).or_default();
            values[0].extend(ttft.at(row));
            values[1].extend(decode.at(row));
        }
        for [ttft, decode] in by_launch.into_values() {
            let launches = into.entry(key.clone()).or_default();
            launches.ttft_ms.extend(stats::median(&ttft));
            launches.decode_tok_s.extend(stats::median(&decode));
        }
    }
    queries
}

/// Where `samples.csv` has more or fewer launches of a metric than `cells.csv` counts its own are not used, and it is said: one of the two tables is
/// not as the run wrote it.
fn contradicted(run: &mut Run) {
    let mut said: Vec<String> = Vec::new();
    for cell in run.cells.iter().filter(|cell| cell.counts() && !cell.is_composed()) {
        let Some(launches) = run.launches.get_mut(&cell.key) else { continue };
        for (metric, values) in [("ttft_ms", &mut launches.ttft_ms), ("decode_tok_s", &mut launches.decode_tok_s)] {
            let counted = cell.metrics.get(metric).and_then(|estimate| estimate.n);
            if let Some(n) = counted.filter(|n| *n != values.len()) {
                said.push(format!("{} has {} of {metric}, cells.csv counts {n}", cell.key.cell, count(values.len(), "launch")));
                values.clear();
            }
        }
    }
    if let Some(first) = said.first() {
        let more = if said.len() > 1 { format!(", and {} more", said.len() - 1) } else { String::new() };
        run.problems.push(format!("samples.csv and cells.csv contradict each other, so that these launches make no ratio: {first}{more}"));
    }
}

/// Without `samples.csv` nobody says which queries count; the first of a launch never does.
fn gaps(table: &Columns, counted: Option<&Queries>) -> BTreeMap<CellKey, Vec<f64>> {
    let [launch, query, gap] = ["launch", "query", "itl_ms"].map(|name| table.numbers(name));
    let mut found: BTreeMap<CellKey, Vec<f64>> = BTreeMap::new();
    for (key, rows) in by_cell(table) {
        let of_cell = counted.map(|queries| queries.get(&key));
        let counts = |row: u32| {
            let whole = |value: Option<f64>| value.map_or(0, |value| value as i64);
            let (launch, query) = (whole(launch.at(row)), whole(query.at(row)));
            of_cell.map_or(query > 0, |queries| queries.is_some_and(|queries| queries.contains(&(launch, query))))
        };
        let gaps: Vec<f64> = rows.into_iter().filter_map(|row| gap.at(row).filter(|gap| *gap >= 0.0 && counts(row))).collect();
        if !gaps.is_empty() {
            found.entry(key).or_default().extend(gaps);
        }
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
