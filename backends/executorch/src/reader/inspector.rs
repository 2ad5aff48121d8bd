//! The table of ExecuTorch's Inspector: `event_block_name, event_name, p10 (ms), ..., avg (ms), ..., op_types, is_delegated_op,
//! delegate_backend_name`, separated by tabs (`save_data_to_tsv`), commas (a data frame's `to_csv`) or bars (`print_data_tabular`).

use bench_backend_api::{
    ReadMeasurement, Reading,
    text::{number, plausible_ms, to_ms},
};

use super::operation;

/// The mean over the executions of the profile, in the unit of the head.
const METHOD: &str = "executorch-inspector";

/// Reads the table; `None` without its head.
pub(super) fn reading(content: &str) -> Option<Reading> {
    let is_head = |line: &str| line.contains("event_block_name") && line.contains("event_name");
    let start = content.lines().position(is_head)?;
    let delimiter = match content.lines().nth(start)? {
        head if head.contains('\t') => b'\t',
        head if head.contains('|') => b'|',
        head if head.contains('│') => return Some(refused("a table with drawn lines")),
        _ => b',',
    };
    let body: Vec<&str> = content.lines().skip(start).collect();
    let body = body.join("\n");
    let mut rows = csv::ReaderBuilder::new().flexible(true).delimiter(delimiter).trim(csv::Trim::All).from_reader(body.as_bytes());
    let head = rows.headers().ok()?.clone();
    let column = |wanted: &str| head.iter().position(|name| name == wanted);
    let average = head.iter().enumerate().find_map(|(at, name)| Some((at, name.strip_prefix("avg (")?.strip_suffix(')')?.to_owned())));
    let (Some(name), Some((average, unit)), Some(block)) = (column("event_name"), average, column("event_block_name")) else {
        return Some(refused("a table without the columns `event_name` and `avg (ms)`"));
    };
    let (types, backend) = (column("op_types"), column("delegate_backend_name"));
    let mut reading = Reading::default();
    let mut measurement = ReadMeasurement::new("inference");
    let mut cycles = 0;
    for row in rows.records().map_while(Result::ok) {
        let cell = |at: usize| row.get(at).unwrap_or("");
        let event = cell(name);
        let Some(value) = number(cell(average)).and_then(|value| to_ms(value, &unit)).filter(|ms| *ms >= 0.0) else { continue };
        match event {
            "Method::execute" if plausible_ms(value) => {
                measurement.metric("latency_ms", value);
            }
            "Program::load_method" if plausible_ms(value) => {
                measurement.metric("load_ms", value);
            }
            _ => {}
        }
        // A delegate's own events are scaled like all others, although their numbers may be cycles.
        let known = !event.contains("(cycles)");
        cycles += usize::from(!known);
        // Away with the binary noise of 0.958706 * 1000.
        let us = known.then_some((value * 1e9).round() / 1e6);
        let Some(mut layer) = operation(cell(block), event, us, METHOD) else { continue };
        layer.index = reading.layers.len() as u32;
        if let Some(kind) = types.map(cell).map(|kind| kind.trim_matches(['[', ']', '\'', '"'])).filter(|kind| !kind.is_empty()) {
            layer.op_type = Some(kind.to_owned());
        }
        if let Some(backend) = backend.map(cell).filter(|name| !name.is_empty()) {
            layer.unit = if backend.contains("Qnn") { Some("npu".to_owned()) } else { layer.unit };
        }
        reading.layers.push(layer);
    }
    if cycles > 0 {
        let words = format!("{cycles} rows are cycles under a head of {unit}: their values are left out; give the ETDump itself for them");
        reading.warnings.push(words);
    }
    if reading.layers.is_empty() {
        reading.warnings.push("the table has no row of an operation".to_owned());
    }
    if !measurement.metrics.is_empty() {
        reading.measurements.push(measurement);
    }
    Some(reading)
}

fn refused(what: &str) -> Reading {
    let words = format!("{what} is not read: write it with `Inspector(...).save_data_to_tsv(FILE)`");
    Reading { warnings: vec![words], ..Reading::default() }
}
