//! Lines of the runners' log: `N inference took X ms, avg Y ms`, `init took N ms`, and QNN's events of a load
//! (`Init Event Name: RPC (load binary) time, Event Data: 16303 us`).

use bench_backend_api::{
    ReadMeasurement, Reading,
    text::{number, plausible_ms, to_ms},
};

/// Lines that a run prints which measured nothing.
const SIGNS: [&str; 6] =
    ["Model executed successfully", "Write etdump to", "Method loaded.", "Inputs prepared.", "Using method ", "[Qnn ExecuTorch]"];

/// Whether a line has the form of the runtime's own log, so that it is not a sentence of a model.
pub(super) fn is_log(line: &str) -> bool {
    let line = line.trim_start();
    line.contains("executorch:")
        || ["[ERROR]", "[WARNING]", "[INFO]", "[Qnn", "Aborted", "Segmentation"].iter().any(|s| line.starts_with(s))
}

/// Reads the lines; `None` when none of them is a runner's.
pub(super) fn reading(content: &str) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut measurement = ReadMeasurement::new("inference");
    let (mut known, mut load) = (false, None);
    for (at, line) in content.lines().enumerate() {
        known |= SIGNS.iter().any(|sign| line.contains(sign));
        if let Some((before, after)) = line.split_once(" inference took ").or_else(|| line.split_once(" inferences took ")) {
            known = true;
            let average = after.split_once("avg ").map(|(_, rest)| rest);
            let n = before.split_whitespace().last().and_then(number);
            match average.and_then(ms) {
                Some(ms) => {
                    // One line an input: the last one, with how many there were before it.
                    measurement.metric("latency_ms", ms);
                    n.map(|n| measurement.report("executions", n));
                }
                None if average.is_some() => reading.warnings.push(format!("line {}: the average is not a plain time", at + 1)),
                None => {}
            }
        } else if let Some((_, rest)) = line.split_once("init took ") {
            known = true;
            load = ms(rest).or(load);
        } else if let Some((name, data)) = line.split_once("Event Name: ").and_then(|(_, rest)| rest.split_once(", Event Data: ")) {
            known = true;
            let mut words = data.split_whitespace();
            if let (Some(value), Some(unit)) = (words.next().and_then(number), words.next()) {
                measurement.report(format!("{name} ({unit})"), value);
                if name == "QNN (load binary) time" {
                    load = to_ms(value, unit).or(load);
                }
            }
        }
    }
    if let Some(ms) = load.filter(|ms| plausible_ms(*ms)) {
        measurement.metric("load_ms", ms);
    }
    if !measurement.metrics.is_empty() || !measurement.reported.is_empty() {
        reading.measurements.push(measurement);
    } else if known && !content.contains(super::stats::MARK) {
        reading.warnings.push("the log has no time: the run measured nothing, or its end is missing".to_owned());
    }
    known.then_some(reading)
}

/// `10.966240 ms` at the beginning of a text.
fn ms(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let value = words.next().and_then(number)?;
    to_ms(value, words.next()?.trim_end_matches([',', '.'])).filter(|ms| plausible_ms(*ms))
}
