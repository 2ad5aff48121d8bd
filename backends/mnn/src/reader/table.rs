//! The markdown table of `llm_bench`, on stdout or in the file of `-fp`.

use bench_backend_api::{
    Failure, FailureKind, Unreadable,
    knowledge::{Mark, Weight},
};

use super::{
    failures,
    row::{Place, Row, checked, number_value},
    value,
};

/// The tables of a file.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Their rows.
    pub(super) rows: Vec<Row>,
    /// How many headers there were: `-fp` appends, so that a file can hold several runs.
    pub(super) headers: usize,
    /// What was odd.
    pub(super) warnings: Vec<String>,
    /// Whether there is a llama-bench table.
    pub(super) foreign: bool,
}

struct Header {
    columns: Vec<String>,
    test: usize,
    speed: usize,
    /// The table of `--load-time` prints a further column.
    loading: Option<usize>,
}

/// Cells of a row; `None` if the line is none. A log prefix before the first bar is dropped.
fn cells(line: &str) -> Option<Vec<&str>> {
    let start = line.find('|')?;
    let inner = line[start + 1..].trim_end().strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn header(cells: &[&str]) -> Option<Header> {
    let find = |accept: &dyn Fn(&str) -> bool| cells.iter().position(|cell| accept(&cell.to_ascii_lowercase()));
    find(&|cell| cell == "model")?;
    let test = find(&|cell| cell == "test" || cell == "llm_demo")?;
    let speed = find(&|cell| {
        let unit = cell.trim_start_matches("speed").trim().trim_matches(['(', ')']);
        matches!(unit, "t/s" | "tok/s" | "tokens/s" | "token/s")
    })?;
    let loading = find(&|cell| cell.replace(' ', "").starts_with("loadingtime"));
    Some(Header { columns: cells.iter().map(|cell| (*cell).to_owned()).collect(), test, speed, loading })
}

/// llama-bench prints a table of the same shape, with other columns.
fn is_llama(cells: &[&str]) -> bool {
    let has = |name: &str| cells.iter().any(|cell| cell.eq_ignore_ascii_case(name));
    has("params") && has("size") && !has("modelSize")
}

/// Reads every table of a file. Errors of the log that stand before a row void that row.
pub(super) fn read(file: &str, lines: &[&str]) -> Result<Tables, Unreadable> {
    let mut tables = Tables::default();
    let mut current: Option<Header> = None;
    let mut pending: Option<Mark> = None;
    // (model, backend) pairs that the log said to have fallen back: the log line may come once, the rows many times.
    let mut fallen: Vec<(String, String, Failure)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let place = Place { file, line: at + 1 };
        let Some(row) = cells(line) else {
            if let Some(mark) = failures::mark(line).filter(|mark| mark.weight != Weight::Soft)
                && pending.as_ref().is_none_or(|known| mark.rank < known.rank)
            {
                pending = Some(mark);
            }
            if current.is_some() && line.trim_start().starts_with('|') {
                tables.warnings.push(format!("{file} line {}: a row of the table is cut", at + 1));
            }
            continue;
        };
        if row.iter().all(|cell| !cell.is_empty() && cell.bytes().all(|byte| matches!(byte, b'-' | b':' | b' '))) {
            continue;
        }
        if is_llama(&row) {
            tables.foreign = true;
            current = None;
            continue;
        }
        if let Some(found) = header(&row) {
            current = Some(found);
            tables.headers += 1;
            continue;
        }
        let Some(header) = &current else { continue };
        if row.len() != header.columns.len() {
            tables.warnings.push(format!("{file} line {}: {} cells under {} columns", at + 1, row.len(), header.columns.len()));
            continue;
        }
        let mut read = self::row(header, &row, place, &mut tables.warnings)?;
        let text = |name: &str| read.measurement.reported.get(name).map(ToString::to_string).unwrap_or_default();
        let (model, backend) = (text("model"), text("backend"));
        if let Some(mark) = pending.take() {
            let fell_back = mark.weight == Weight::Elsewhere;
            if fell_back {
                fallen.push((model, backend, mark.failure.clone()));
            }
            void(&mut read, mark.failure, fell_back);
        } else if let Some((.., failure)) = fallen.iter().find(|(m, b, _)| *m == model && *b == backend) {
            void(&mut read, failure.clone(), true);
        }
        tables.rows.push(read);
    }
    Ok(tables)
}

fn void(row: &mut Row, failure: Failure, fell_back: bool) {
    row.void(failure);
    if fell_back {
        row.report("backend_used", "CPU");
    }
}

fn row(header: &Header, cells: &[&str], place: Place<'_>, warnings: &mut Vec<String>) -> Result<Row, Unreadable> {
    let test = cells[header.test];
    let (prompt, generate) = value::test(test).unwrap_or_default();
    let known = prompt.is_some() || generate.is_some();
    let mut row = Row::new(if known { value::label(prompt, generate) } else { test.to_owned() });
    let mut void_size = None;
    for (name, cell) in header.columns.iter().zip(cells).enumerate().filter(|(at, _)| *at != header.test).map(|(_, pair)| pair) {
        row.report_cell(name, cell);
        if name.eq_ignore_ascii_case("modelSize") && !value::real_size(cell) {
            void_size = Some(missing_weights(cell));
        }
    }
    let mut speeds = Vec::new();
    let spread = cells[header.speed].replace("<br/>", "<br>").replace("<BR>", "<br>");
    for part in spread.split("<br>") {
        speeds.push(checked(value::mean_std(part), part, place, warnings)?);
    }
    let names: &[(&str, &str)] = match (prompt, generate, speeds.len()) {
        (Some(_), None, 1) => &[("prefill_tok_s", "stddev")],
        (None, Some(_), 1) => &[("decode_tok_s", "stddev")],
        (Some(_), Some(_), 2) => &[("prefill_tok_s", "prefill_stddev"), ("decode_tok_s", "decode_stddev")],
        _ => {
            warnings.push(format!("{} line {}: unknown kind of test `{test}` with {} speed(s)", place.file, place.line, speeds.len()));
            &[]
        }
    };
    for ((name, std_name), speed) in names.iter().zip(&speeds) {
        let Some((mean, std)) = speed else {
            row.speed(name, f64::NAN);
            continue;
        };
        row.speed(name, *mean);
        if let Some(std) = std.and_then(number_value) {
            row.report(std_name, std);
        }
    }
    tokens(&mut row, prompt, generate);
    if let Some(at) = header.loading
        && let Some((seconds, _)) = checked(value::mean_std(cells[at]), cells[at], place, warnings)?
        && seconds > 0.0
    {
        row.measurement.metric("load_ms", seconds * 1e3);
    }
    if let Some(failure) = void_size {
        row.void(failure);
    }
    row.settle();
    Ok(row)
}

/// Adds the token counts of a test.
pub(super) fn tokens(row: &mut Row, prompt: Option<u32>, generate: Option<u32>) {
    for (name, count) in [("prompt_tokens", prompt), ("generated_tokens", generate)] {
        if let Some(count) = count {
            row.measurement.metrics.insert(name.to_owned(), count.into());
        }
    }
}

/// The failure behind an impossible size of the model.
pub(super) fn missing_weights(size: &str) -> Failure {
    Failure {
        kind: FailureKind::Model,
        message: format!("the model size is given as {size}: the weight file is missing"),
        hint: Some("push llm.mnn.weight beside llm.mnn; llm_bench goes on without it and prints speeds of nothing".to_owned()),
    }
}
