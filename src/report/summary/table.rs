//! `summary.csv`: a row for each figure of each cell, and one for each cell without figures.

use crate::report::load::{Cell, Run};
use crate::results::schema::METRICS;

/// The columns; units in one of their own, so that a spreadsheet can turn the table around.
const COLUMNS: [&str; 23] = [
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
    "metric",
    "unit",
    "better",
    "median",
    "lo",
    "hi",
    "mad",
    "n",
    "method",
    "scope",
    "reason",
];

/// Units by the end of a metric's name, the longer ends before those that they end with.
const UNITS: [(&str, &str); 16] = [
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
    let mut rows: Vec<Vec<String>> = metrics.map(|metric| figure(run, cell, metric.name, metric.higher_is_better)).collect();
    if rows.is_empty() {
        let reason = cell.text("reason").unwrap_or("no reason given");
        rows.push([about(run, cell), vec![String::new(); COLUMNS.len() - 13], vec![text(reason)]].concat());
    }
    rows
}

fn figure(run: &Run, cell: &Cell, metric: &str, higher_is_better: bool) -> Vec<String> {
    let estimate = cell.metrics.get(metric);
    let interval = estimate.and_then(|found| found.interval.filter(|_| found.n != Some(1)));
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let unit = UNITS.iter().find(|(end, _)| metric.ends_with(end)).map_or("", |(_, unit)| unit);
    let field = |column: &str| cell.text(column).unwrap_or_default();
    let told = [
        metric.to_owned(),
        unit.to_owned(),
        if higher_is_better { "higher" } else { "lower" }.to_owned(),
        number(estimate.map(|found| found.median)),
        number(interval.map(|(lo, _)| lo)),
        number(interval.map(|(_, hi)| hi)),
        number(estimate.and_then(|found| found.mad)),
        estimate.and_then(|found| found.n).map(|n| n.to_string()).unwrap_or_default(),
        text(if estimate.is_some() { method(cell, metric) } else { "" }),
        text(if metric == "ttft_ms" { field("ttft_scope") } else { "" }),
        text(cell.absent.get(metric).filter(|_| estimate.is_none()).map_or("", String::as_str)),
    ];
    [about(run, cell), told.to_vec()].concat()
}

fn about(run: &Run, cell: &Cell) -> Vec<String> {
    let manifest = |path: &str| run.manifest.pointer(path).and_then(|value| value.as_str()).map(str::to_owned);
    let id = manifest("/run").unwrap_or_else(|| run.folder.clone());
    [
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
    ]
    .to_vec()
}

/// How a figure was come by: the column `<stem>_method` whose stem its name begins with; measured where there is none.
fn method<'a>(cell: &'a Cell, metric: &str) -> &'a str {
    let stems = [("ttft", "ttft"), ("prefill_tok", "prefill"), ("decode_tok", "decode"), ("tpot", "decode"), ("peak_mem", "peak_mem")];
    let power = metric.contains("power") || metric.starts_with("energy");
    let stem = stems.iter().find(|(start, _)| metric.starts_with(start)).map(|(_, stem)| *stem).or(power.then_some("power"));
    stem.and_then(|stem| cell.text(&format!("{stem}_method"))).unwrap_or("measured")
}

/// A field that a spreadsheet takes for text: one that begins as a formula does gets an apostrophe before it.
fn text(field: &str) -> String {
    let shown = crate::safe::printable(field);
    if shown.starts_with(['=', '+', '-', '@']) { format!("'{shown}") } else { shown }
}
