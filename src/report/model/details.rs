//! The tables under a comparison: what was compared (unfolded), every metric and the runtime's own figures (folded).

use super::figures::{DASH, median, number, whole};
use super::groups::{Group, workload};
use super::view::Grid;
use crate::report::load::Cell;
use crate::results::schema::METRICS;

/// What stands beside a quantisation's class (rule R29) and a workload (R7).
const IDENTITY: [(&str, &str); 19] = [
    ("weight_bits", "weight bits"),
    ("act_bits", "act. bits"),
    ("kv_bits", "KV bits"),
    ("group", "group size"),
    ("lm_head_bits", "LM head bits"),
    ("embedding_bits", "embedding bits"),
    ("bits_per_weight", "bits/weight, measured"),
    ("context", "context"),
    ("chunk", "chunk (AR)"),
    ("padded_prompt_tokens", "padded prompt"),
    ("kv", "KV axis"),
    ("batch", "batch"),
    ("threads", "threads"),
    ("perf_profile", "perf. profile"),
    ("variant", "variant"),
    ("engine", "engine"),
    ("runtime_version", "runtime"),
    ("launch_context", "launched from"),
    ("artifact", "artifact"),
];

/// How many of [`IDENTITY`] are about precision.
const PRECISION: usize = 7;

/// The tables under a comparison.
pub fn details(group: &Group) -> Vec<Grid> {
    let cells: Vec<&Cell> = group.cells.iter().copied().filter(|cell| cell.counts()).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    vec![identity(group, &cells), metrics(group, &cells), reported(group, &cells)]
}

fn name(group: &Group, cell: &Cell) -> String {
    let axes = group.axes(cell);
    let comma = if axes.is_empty() { "" } else { ", " };
    format!("{} {}{comma}{axes}", cell.backend, workload(cell))
}

/// The precision columns always stand there, since a class alone says too little. Of the others those that no cell fills are left out.
fn identity(group: &Group, cells: &[&Cell]) -> Grid {
    let filled = |column: &str| cells.iter().any(|cell| cell.text(column).is_some());
    let used: Vec<(&str, &str)> =
        IDENTITY.into_iter().enumerate().filter(|(at, (column, _))| *at < PRECISION || filled(column)).map(|(_, column)| column).collect();
    let mut columns = vec!["Cell".to_owned(), "quant class".to_owned()];
    columns.extend(used.iter().map(|(_, word)| (*word).to_owned()));
    let rows = cells.iter().map(|cell| {
        let mut row = vec![name(group, cell), cell.quant.clone()];
        row.extend(used.iter().map(|(column, _)| match (*column, cell.text(column)) {
            (_, None) => DASH.to_owned(),
            ("artifact", Some(hash)) => hash.chars().take(12).collect(),
            ("bits_per_weight", Some(_)) => cell.number(column).map_or_else(|| DASH.to_owned(), number),
            (_, Some(value)) => value.to_owned(),
        }));
        row
    });
    Grid {
        title: "What was compared: precision, shapes, artifact (a dash: the artifact doesn't state it)".into(),
        rows: rows.collect(),
        columns,
        text: true,
        open: true,
    }
}

fn metrics(group: &Group, cells: &[&Cell]) -> Grid {
    let mut columns = vec!["Cell".to_owned()];
    columns.extend(METRICS.iter().map(|metric| metric.name.to_owned()));
    let rows = cells.iter().map(|cell| {
        let mut row = vec![name(group, cell)];
        row.extend(METRICS.iter().map(|metric| match cell.metrics.get(metric.name) {
            None => DASH.to_owned(),
            Some(estimate) => {
                let mad = estimate.mad.map_or_else(String::new, |mad| format!(", MAD {}", number(mad)));
                let n = estimate.n.map_or_else(String::new, |n| format!(", n {n}"));
                format!("{}{mad}{n}", whole(estimate))
            }
        }));
        row
    });
    Grid {
        title: "All metrics: median [interval], raw median absolute deviation, number of values".into(),
        rows: rows.collect(),
        columns,
        ..Grid::default()
    }
}

fn reported(group: &Group, cells: &[&Cell]) -> Grid {
    let names = [
        "Cell",
        "TTFT, own, ms",
        "measured",
        "prefill, own, tok/s",
        "measured",
        "decode, own, tok/s",
        "measured",
        "first query's TTFT, ms",
        "very first load, ms",
    ];
    let rows = cells.iter().map(|cell| {
        let own = |column: &str| cell.number(column).map_or_else(|| DASH.to_owned(), number);
        let measured = |metric: &str| cell.metrics.get(metric).map_or_else(|| DASH.to_owned(), median);
        vec![
            name(group, cell),
            own("reported_ttft_ms"),
            measured("ttft_ms"),
            own("reported_prefill_tok_s"),
            measured("prefill_tok_s"),
            own("reported_decode_tok_s"),
            measured("decode_tok_s"),
            own("first_query_ttft_ms"),
            own("first_launch_load_ms"),
        ]
    });
    Grid {
        title: "The runtime's own figures beside the measured ones, and what the first query and the first load cost (other metrics, kept apart)".into(),
        rows: rows.collect(),
        columns: names.map(str::to_owned).to_vec(),
        ..Grid::default()
    }
}
