//! The tables under a comparison: what was compared (unfolded), every metric and the runtime's own figures (folded).

use super::charts::largest;
use super::device;
use super::figures::{DASH, median, number, whole};
use super::groups::{BEHIND, Group, artifact_short, listed, workload};
use super::view::Grid;
use crate::report::load::{Cell, Run};
use crate::results::schema::METRICS;

/// What stands beside a quantisation's class (rule R29) and a workload (R7): facts of the artifact.
const ARTIFACT: [(&str, &str); 11] = [
    ("quant_native", "native name"),
    ("weight_bits", "weight bits"),
    ("act_bits", "act. bits"),
    ("kv_bits", "KV bits"),
    ("group", "group size"),
    ("lm_head_bits", "LM head bits"),
    ("embedding_bits", "embedding bits"),
    ("bits_per_weight", "bits per weight, measured"),
    ("context", "context"),
    ("compiled_context", "compiled for context"),
    ("chunk", "chunk (AR)"),
];

/// How a backend ran, beside what it ran.
const RUNNING: [(&str, &str); 14] = [
    ("runtime_version", "runtime, as it says"),
    ("engine", "engine"),
    ("tool", "program"),
    ("launch_context", "launched from"),
    ("template", "prompts"),
    ("sampling", "sampling"),
    ("decoding", "decoding"),
    ("graphs", "graphs"),
    ("votes", "votes asked"),
    ("perf_profile", "perf. profile"),
    ("threads", "threads"),
    ("kv", "KV axis"),
    ("batch", "batch"),
    ("variant", "variant"),
];

/// The tables under a comparison.
pub fn details(run: &Run, group: &Group) -> Vec<Grid> {
    let cells = group.counted();
    if cells.is_empty() {
        return Vec::new();
    }
    let mut all = vec![artifacts(&cells), running(&cells)];
    // A row a cell: of many only those that are drawn.
    let some = if cells.len() > BEHIND { largest(&cells) } else { None };
    let (rows, only) = match some {
        Some((of, rows)) => (rows, format!(" (largest workload, {}: cells.csv has all {} cells)", workload(of), cells.len())),
        None => (cells, String::new()),
    };
    let mut long = device::tables(group, &rows, run.power_asked);
    long.extend([metrics(group, &rows), reported(group, &rows)]);
    for grid in &mut long {
        grid.title.push_str(&only);
    }
    all.extend(long);
    all
}

pub fn name(group: &Group, cell: &Cell) -> String {
    format!("{} · {}", workload((cell.prompt, cell.generate)), group.label(cell))
}

pub fn field(cell: &Cell, column: &str) -> String {
    match (column, cell.number(column)) {
        ("group", Some(0.0)) if cell.number("weight_bits").is_some_and(|bits| bits < 16.0) => "per channel or tensor".to_owned(),
        ("group", Some(0.0)) => DASH.to_owned(),
        ("bits_per_weight", Some(bits)) => number(bits),
        ("votes", _) => cell.text(column).unwrap_or(DASH).replace(';', ", "),
        _ => cell.text(column).unwrap_or(DASH).to_owned(),
    }
}

/// Rows that are equal become one, in whose first column all names stand.
pub fn merged(rows: Vec<(String, Vec<String>)>) -> Vec<Vec<String>> {
    let mut found: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for (name, values) in rows {
        match found.iter_mut().find(|(_, known)| *known == values) {
            Some((names, _)) if names.contains(&name) => {}
            Some((names, _)) => names.push(name),
            None => found.push((vec![name], values)),
        }
    }
    found.into_iter().map(|(names, values)| std::iter::once(listed(&names)).chain(values).collect()).collect()
}

/// The native name of its quantisation is the scenario's word, which nothing checks.
pub fn is_stated(cell: &Cell) -> bool {
    cell.text("quant_native_from") == Some("scenario")
}

/// All columns always stand there, since a class alone says too little; who names a quantisation where that is not always a file of the artifact.
fn artifacts(cells: &[&Cell]) -> Grid {
    let stated = cells.iter().any(|cell| is_stated(cell));
    let mut columns = vec!["Run by".to_owned(), "quant class".to_owned()];
    columns.extend(ARTIFACT.iter().map(|(_, word)| (*word).to_owned()));
    columns.push("artifact".to_owned());
    columns.extend(stated.then(|| "native name from".to_owned()));
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for cell in cells {
        let mut values = vec![cell.quant.clone()];
        values.extend(ARTIFACT.iter().map(|(column, _)| field(cell, column)));
        values.push(cell.text("artifact").map_or_else(|| DASH.to_owned(), artifact_short));
        let from = cell.text("quant_native_from").map_or(DASH, |from| match from {
            "scenario" => "the scenario",
            "files" => "its files",
            other => other,
        });
        values.extend(stated.then(|| from.to_owned()));
        rows.push((cell.backend.clone(), values));
    }
    Grid {
        title: "What was compared: what each artifact holds (a dash: it doesn't say)".into(),
        rows: merged(rows),
        columns,
        text: true,
        open: true,
    }
}

/// Columns that no cell fills are left out.
fn running(cells: &[&Cell]) -> Grid {
    let filled = |column: &str| cells.iter().any(|cell| cell.text(column).is_some());
    let used: Vec<(&str, &str)> = RUNNING.into_iter().filter(|(column, _)| filled(column)).collect();
    let mut columns = vec!["Backend".to_owned()];
    columns.extend(used.iter().map(|(_, word)| (*word).to_owned()));
    let rows = cells.iter().map(|cell| (cell.backend.clone(), used.iter().map(|(column, _)| field(cell, column)).collect())).collect();
    Grid { title: "How it was run".into(), rows: merged(rows), columns, text: true, open: true }
}

fn metrics(group: &Group, cells: &[&Cell]) -> Grid {
    let used: Vec<_> = METRICS.iter().filter(|metric| cells.iter().any(|cell| cell.metrics.contains_key(metric.name))).collect();
    let mut columns = vec!["Cell".to_owned()];
    columns.extend(used.iter().map(|metric| metric.name.to_owned()));
    let rows = cells.iter().map(|cell| {
        let mut row = vec![name(group, cell)];
        row.extend(used.iter().map(|metric| match cell.metrics.get(metric.name) {
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
        title: "All metrics: median [interval], raw median absolute deviation, number of launches".into(),
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
        title: "The runtime's own figures beside the measured ones, and what the first query and the first load cost (other metrics, kept apart)"
            .into(),
        rows: rows.collect(),
        columns: names.map(str::to_owned).to_vec(),
        ..Grid::default()
    }
}

#[cfg(test)]
mod tests {
    use super::merged;

    #[test]
    fn backends_on_one_artifact_share_its_row() {
        let row = |name: &str, bits: &str| (name.to_owned(), vec![bits.to_owned()]);
        let rows = merged(vec![row("genie", "8"), row("ort-qnn", "8"), row("genie", "4"), row("genie", "8")]);
        assert_eq!(rows, [vec!["genie and ort-qnn", "8"], vec!["genie", "4"]]);
    }
}
