//! The table of qnn-throughput-net-run: one `[thread:]model:graphExecute` row a model, times in the unit of the table's head.

use bench_backend_api::{
    ReadMeasurement, Reading,
    text::{number, plausible_count, plausible_rate},
};

use super::ops::{report, time};

/// A row with its four figures.
struct Row<'a> {
    line: usize,
    labels: Vec<&'a str>,
    /// Repeat, average, min, max.
    figures: Option<[f64; 4]>,
}

/// Reads the table; `None` without a row of it.
pub fn reading(text: &str) -> Option<Reading> {
    let executes = rows(text, "graphExecute");
    let threads = rows(text, "threadExecute");
    if executes.is_empty() && threads.is_empty() && !text.contains("PerformanceMonitor") {
        return None;
    }
    let mut reading = Reading::default();
    let unit = unit(text).unwrap_or_else(|| {
        reading.warnings.push("the table does not name its unit: read as us, which is what the tool prints".to_owned());
        "us".to_owned()
    });
    let single = executes.len() == 1;
    for row in &executes {
        let Some([repeat, average, min, max]) = row.figures else {
            reading.warnings.push(format!("line {}: the row's figures are not four plain numbers, skipped", row.line));
            continue;
        };
        let (thread, model) = match row.labels.as_slice() {
            [thread, .., model] => (Some(*thread), Some(*model)),
            [thread] => (Some(*thread), None),
            [] => (None, None),
        };
        let mut label = match (model, thread) {
            (Some(model), _) => model.to_owned(),
            (None, Some(thread)) if !single => thread.to_owned(),
            _ => "inference".to_owned(),
        };
        if reading.measurements.iter().any(|known| known.label == label) {
            label = format!("{label} ({})", thread.unwrap_or("?"));
        }
        let mut measurement = ReadMeasurement::new(label);
        for (name, value) in [("latency_ms", average), ("latency_min_ms", min)] {
            match time("graphExecute", value, &unit) {
                Ok(ms) => {
                    measurement.metric(name, ms);
                }
                Err(warning) => reading.warnings.push(format!("line {}: {warning}", row.line)),
            }
        }
        // The repetitions of a thread over the thread's own wall time.
        let wall = threads.iter().find(|other| other.labels.first() == row.labels.first()).and_then(|other| other.figures);
        if let Some([times, wall, ..]) = wall
            && let Ok(ms) = time("threadExecute", wall * times, &unit)
            && plausible_count(repeat)
            && plausible_rate(repeat / ms * 1e3)
        {
            measurement.metric("throughput_inf_s", repeat / ms * 1e3);
        }
        for (name, value) in [
            ("repeat".to_owned(), repeat),
            (format!("average ({unit})"), average),
            (format!("min ({unit})"), min),
            (format!("max ({unit})"), max),
        ] {
            report(&mut measurement, &name, value);
        }
        if !(min <= average && average <= max) {
            reading.warnings.push(format!("line {}: the average is not between min and max", row.line));
        }
        reading.measurements.push(measurement);
    }
    if executes.is_empty() {
        reading.warnings.push("the table has no graphExecute row: no graph was executed".to_owned());
    }
    Some(reading)
}

fn rows<'a>(text: &'a str, kind: &str) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(at) = line.find(kind) else { continue };
        let Some(rest) = line[at + kind.len()..].trim_start().strip_prefix(':') else { continue };
        let words: Vec<Option<f64>> = rest.split_whitespace().take(4).map(number).collect();
        let figures = match words.as_slice() {
            [Some(a), Some(b), Some(c), Some(d)] => Some([*a, *b, *c, *d]),
            _ => None,
        };
        let labels = line[..at].split(':').map(str::trim).filter(|label| !label.is_empty()).collect();
        rows.push(Row { line: index + 1, labels, figures });
    }
    rows
}

/// The unit in `Name: Time(us)`.
fn unit(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains("Time("))?;
    let rest = &line[line.find("Time(")? + "Time(".len()..];
    Some(rest.split_once(')')?.0.trim().to_owned())
}
