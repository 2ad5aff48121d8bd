//! `summary.csv`: a row for each figure of each cell, and one for each cell without figures.

use crate::{
    gate::history::method,
    report::load::{Cell, Run},
    results::schema::{METRICS, Metric},
    stats,
};

/// The columns; units in one of their own, so that a spreadsheet can turn the table around.
const COLUMNS: [&str; 36] = [
    "run",
    "scenario",
    "device_class",
    "device",
    "model",
    "backend",
    "quant",
    "prompt_tokens",
    "gen_tokens",
    "cell",
    "status",
    "failure_kind",
    "quant_native",
    "quant_native_from",
    "weight_bits",
    "act_bits",
    "kv_bits",
    "group",
    "lm_head_bits",
    "embedding_bits",
    "bits_per_weight",
    "check_unit",
    "check_tokens",
    "stability",
    "launch_context",
    "metric",
    "unit",
    "better",
    "median",
    "lo",
    "hi",
    "coverage",
    "mad",
    "n",
    "method",
    "reason",
];

/// Place of `metric`: the columns before it, from the thirteenth on, are those of cells.csv (rules R6, R29).
const METRIC: usize = 25;

/// Units by the end of a metric's name, the longer ends before those that they end with.
const UNITS: [(&str, &str); 18] = [
    ("tokens_per_battery_pct", "tokens/%"),
    ("_hours", "h"),
    ("_tok_s", "tokens/s"),
    ("_j_per_tok", "J/token"),
    ("_j_per_prompt_tok", "J/token"),
    ("_mb_per_h", "MB/h"),
    ("_c_per_min", "°C/min"),
    ("_gb_s", "GB/s"),
    ("_ms", "ms"),
    ("_us", "us"),
    ("_mb", "MB"),
    ("_pct", "%"),
    ("_mhz", "MHz"),
    ("_hz", "Hz"),
    ("_s", "s"),
    ("_w", "W"),
    ("_j", "J"),
    ("_c", "°C"),
];

/// The table of these runs.
pub fn table(runs: &[Run]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let rows = std::iter::once(COLUMNS.map(str::to_owned).to_vec())
        .chain(runs.iter().flat_map(|run| run.cells.iter().flat_map(|cell| of(run, cell))));
    for row in rows {
        // Writing to memory can't fail, and all rows are as long as the header.
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Rows of a cell: its figures, and those that are absent for a reason. A cell that does not count has one row, and no figure.
fn of(run: &Run, cell: &Cell) -> Vec<Vec<String>> {
    let metrics =
        METRICS.iter().filter(|metric| cell.counts() && (cell.metrics.contains_key(metric.name) || cell.absent.contains_key(metric.name)));
    let mut rows: Vec<Vec<String>> = metrics.map(|metric| figure(run, cell, metric)).collect();
    if rows.is_empty() {
        let reason = cell.text("reason").unwrap_or("no reason given");
        let about = about(run, cell);
        let none = vec![String::new(); COLUMNS.len() - about.len() - 1];
        rows.push([about, none, vec![text(reason)]].concat());
    }
    rows
}

/// The unit of a metric.
pub(super) fn unit(metric: &str) -> &'static str {
    UNITS.iter().find(|(end, _)| metric.ends_with(end)).map_or("", |(_, unit)| unit)
}

fn figure(run: &Run, cell: &Cell, metric: &Metric) -> Vec<String> {
    let name = metric.name;
    let estimate = cell.metrics.get(name);
    let interval = estimate.and_then(|found| found.interval.filter(|_| found.n != Some(1)));
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let told = [
        name.to_owned(),
        unit(name).to_owned(),
        if metric.higher_is_better { "higher" } else { "lower" }.to_owned(),
        number(estimate.map(|found| found.median)),
        number(interval.map(|(lo, _)| lo)),
        number(interval.map(|(_, hi)| hi)),
        number(interval.and(estimate).and_then(|found| coverage(cell, name, found.n?))),
        number(estimate.and_then(|found| found.mad)),
        estimate.and_then(|found| found.n).map(|n| n.to_string()).unwrap_or_default(),
        text(&if estimate.is_some() { had(cell, metric) } else { String::new() }),
        text(cell.absent.get(name).filter(|_| estimate.is_none()).map_or("", String::as_str)),
    ];
    [about(run, cell), told.to_vec()].concat()
}

fn about(run: &Run, cell: &Cell) -> Vec<String> {
    let manifest = |path: &str| run.manifest.pointer(path).and_then(|value| value.as_str()).map(str::to_owned);
    let id = manifest("/run").unwrap_or_else(|| run.folder.clone());
    let own = COLUMNS[12..METRIC].iter().map(|column| text(cell.text(column).unwrap_or_default()));
    let known = [
        text(&id),
        text(&manifest("/scenario/name").unwrap_or_default()),
        text(&cell.class),
        text(&cell.key.device),
        text(&cell.model),
        text(&cell.backend),
        text(&cell.quant),
        cell.prompt.to_string(),
        cell.generate.to_string(),
        text(&cell.key.cell),
        cell.status.word().to_owned(),
        text(cell.text("failure_kind").unwrap_or_default()),
    ];
    known.into_iter().chain(own).collect()
}

/// How a figure was come by, by what its cell says; measured where there is one way only.
fn had(cell: &Cell, metric: &Metric) -> String {
    let how = method(metric, |column| cell.text(column).unwrap_or_default());
    match (how.is_empty(), metric.name) {
        (false, "battery_hours" | "tokens_per_battery_pct") => format!("{how}, projected"),
        (true, "battery_hours" | "tokens_per_battery_pct") => "projected".to_owned(),
        (true, _) => "measured".to_owned(),
        (false, _) => how,
    }
}

/// How often an interval of so many launches holds the median: of few it is a range of theirs.
fn coverage(cell: &Cell, metric: &str, n: usize) -> Option<f64> {
    if metric.starts_with("energy_j_per") && cell.text("energy_phase_method") == Some("regression") {
        return Some(0.95);
    }
    let ramp: Vec<f64> = (0..n).map(|i| i as f64).collect();
    stats::interval(&ramp, 0).map(|found| found.coverage)
}

/// A field that a spreadsheet takes for text: one that begins as a formula does gets an apostrophe before it.
fn text(field: &str) -> String {
    let shown = crate::safe::printable(field);
    if shown.starts_with(['=', '+', '-', '@']) { format!("'{shown}") } else { shown }
}
