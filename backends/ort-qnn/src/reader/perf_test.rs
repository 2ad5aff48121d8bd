//! onnxruntime_perf_test's terminal output from 2019 to today, and its result file.
//!
//! Every field is `name: value unit`; the name's words, the space behind the colon and the unit have changed over the versions, so that all are read.

use bench_backend_api::{
    Failure, FailureKind, ReadMeasurement, Reading,
    text::{count, number, plausible_ms, plausible_rate, quantity, to_ms},
};
use bench_backend_qnn::{
    ops::{add_latencies, report},
    stem,
};

/// How a field is used.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Time(&'static str),
    Rate(&'static str),
    Report,
}

/// The field of a name without its case; the longer names first.
const FIELDS: [(&str, Use); 20] = [
    ("session creation time cost", Use::Time("load_ms")),
    ("first inference time cost", Use::Report),
    ("total inference time cost", Use::Report),
    ("total inference requests", Use::Report),
    ("total inference run time", Use::Report),
    ("average inference time cost total", Use::Time("latency_ms")),
    ("average inference time cost", Use::Time("latency_ms")),
    ("average time cost", Use::Time("latency_ms")),
    ("total time cost", Use::Report),
    ("total iterations", Use::Report),
    ("total run time", Use::Report),
    ("number of inferences per second", Use::Rate("throughput_inf_s")),
    ("min latency", Use::Time("latency_min_ms")),
    ("max latency", Use::Report),
    ("p50 latency", Use::Time("latency_p50_ms")),
    ("p90 latency", Use::Time("latency_p90_ms")),
    ("p95 latency", Use::Report),
    ("p99 latency", Use::Time("latency_p99_ms")),
    ("p999 latency", Use::Report),
    ("peak working set size", Use::Report),
];

/// A field in a line: its place in the table, its name as printed, and what follows.
fn field(line: &str) -> Option<(usize, &str, &str)> {
    let lower = line.to_ascii_lowercase();
    if lower.len() != line.len() {
        return None;
    }
    FIELDS.iter().enumerate().find_map(|(place, (name, _))| {
        let at = lower.find(name)?;
        let rest = &line[at + name.len()..];
        // `P50 Latency: X s`, `P50 Latency is X sec`, `Average inference time cost:X ms`.
        let value = rest.trim_start();
        let value = value.strip_prefix(':').or_else(|| value.strip_prefix("is ")).or_else(|| value.strip_prefix('='))?;
        // Not in the middle of a word: `P99 Latency` is no `P999 Latency`.
        let free = !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        free.then_some((place, line[at..at + name.len()].trim(), value.trim()))
    })
}

/// Whether the text is such an output.
pub fn is_output(text: &str) -> bool {
    let value = |value: &str| {
        value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
            || value.starts_with("nan")
            || value.starts_with("inf")
    };
    text.lines().any(|line| {
        let line = line.trim_start();
        let begins =
            ["Setting intra_op_num_threads", "Disabling intra-op thread spinning", "Setting inter_op_num_threads", "perf_test [options"];
        begins.iter().any(|begin| line.starts_with(begin))
            || field(line).is_some_and(|(place, _, text)| place != FIELDS.len() - 1 && value(text))
    })
}

/// Reads the output. Outputs of several runs behind each other give a measurement each.
pub fn reading(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut current: Option<Test> = None;
    let mut model: Option<String> = None;
    let mut iterations: Vec<f64> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.contains("perf_test")
            && let Some(name) = model_in(line)
        {
            model = Some(name);
        }
        if let Some(value) = iteration(line) {
            iterations.push(value * 1e3);
        }
        let Some((place, name, value)) = field(line) else { continue };
        let begins = matches!(place, 0)
            || (current.as_ref().is_some_and(|test| test.has("latency_ms")) && matches!(FIELDS[place].1, Use::Time("latency_ms")));
        if begins && let Some(test) = current.take() {
            test.finish(&mut reading, &std::mem::take(&mut iterations));
        }
        let test = current.get_or_insert_with(|| Test::new(model.clone()));
        if let Err(warning) = test.add(FIELDS[place].1, name, value) {
            reading.warnings.push(format!("line {}: {warning}", index + 1));
        }
    }
    if let Some(test) = current.take() {
        test.finish(&mut reading, &iterations);
    } else if !iterations.is_empty() {
        Test::new(model).finish(&mut reading, &iterations);
    }
    let mut labels: Vec<String> = Vec::new();
    for measurement in &mut reading.measurements {
        let same = labels.iter().filter(|label| **label == measurement.label).count();
        labels.push(measurement.label.clone());
        if same > 0 {
            measurement.label = format!("{} {}", measurement.label, same + 1);
        }
    }
    reading
}

/// The model in a command line that was recorded with the output.
fn model_in(line: &str) -> Option<String> {
    let word = line
        .split_whitespace()
        .map(|word| word.trim_matches(['"', '\'']))
        .rfind(|word| word.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("onnx") || end.eq_ignore_ascii_case("ort")))?;
    Some(stem(word).to_owned())
}

/// `iteration:N,time_cost:X` and `iteration:N,time_cost_submission:X,time_cost_total:Y`, in s.
fn iteration(line: &str) -> Option<f64> {
    let rest = line.trim().strip_prefix("iteration:")?;
    let last = rest.split(',').rfind(|part| part.trim().starts_with("time_cost"))?;
    number(last.split_once(':')?.1)
}

struct Test {
    measurement: ReadMeasurement,
}
impl Test {
    fn new(model: Option<String>) -> Self {
        Self { measurement: ReadMeasurement::new(model.unwrap_or_else(|| "inference".to_owned())) }
    }

    fn has(&self, metric: &str) -> bool {
        self.measurement.metrics.contains_key(metric)
    }

    fn add(&mut self, how: Use, name: &str, text: &str) -> Result<(), String> {
        let Some((value, unit)) = quantity(text) else {
            return Err(format!("{name}: `{text}` is not a plain number, it is left out"));
        };
        match how {
            Use::Time(metric) => match to_ms(value, unit) {
                Some(ms) if plausible_ms(ms) => {
                    self.measurement.metric(metric, ms);
                }
                Some(_) => return Err(format!("{name}: {value} {unit} can not be a measurement, it is left out")),
                None => return Err(format!("{name}: `{unit}` is not a unit of time, {value} is left out")),
            },
            Use::Rate(metric) if plausible_rate(value) => {
                self.measurement.metric(metric, value);
            }
            Use::Rate(_) => return Err(format!("{name}: {value} can not be a measurement, it is left out")),
            Use::Report => {
                let key = if unit.is_empty() || !is_word(unit) { name.to_owned() } else { format!("{name} ({unit})") };
                // The block behind the first repeats figures without their units.
                let known = self.measurement.reported.keys().any(|known| known.starts_with(name));
                if !known {
                    report(&mut self.measurement, &key, value);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, reading: &mut Reading, iterations: &[f64]) {
        let printed = self.has("latency_ms");
        if !printed && !iterations.is_empty() {
            add_latencies(&mut self.measurement, iterations);
            reading.warnings.push("the output has no average: the figures are computed from its iterations".to_owned());
        }
        let metric = |name: &str| self.measurement.metrics.get(name).and_then(serde_json::Value::as_f64);
        let max = self
            .measurement
            .reported
            .iter()
            .find(|(key, _)| key.to_ascii_lowercase().starts_with("max latency"))
            .and_then(|(_, value)| value.as_f64());
        if let (Some(mean), Some(least)) = (metric("latency_ms"), metric("latency_min_ms"))
            && (mean < least * 0.99 || max.is_some_and(|max| mean > max * 1e3 * 1.01))
        {
            reading
                .warnings
                .push(format!("the average of {mean} ms is not between min and max: they are of different times (submission and total)"));
        }
        if !self.measurement.metrics.keys().any(|metric| metric.starts_with("latency")) {
            reading.failure = Some(Failure {
                kind: FailureKind::Runtime,
                message: "the output ends before the average inference time: the run did not finish".to_owned(),
                hint: Some("look at stderr, logcat and the exit status".to_owned()),
            });
        }
        reading.measurements.push(self.measurement);
    }
}

fn is_word(unit: &str) -> bool {
    unit.len() <= 8 && unit.chars().all(|c| c.is_ascii_alphabetic() || c == '%' || c == '/')
}

/// The rows of a result file: `model,seconds,bytes,cpu,run`, or with two times (submission and total) since 2025.
fn result_rows(text: &str) -> Option<Vec<(String, f64)>> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let fields: Vec<&str> = line.rsplitn(6, ',').collect();
            let numbers: Vec<f64> = fields.iter().map_while(|field| number(field)).collect();
            // From the right: run, cpu, bytes, time[, submission].
            let whole = count(fields.first()?).is_some()
                && count(fields.get(1)?).is_some()
                && number(fields.get(2)?).is_some_and(|bytes| bytes.fract() == 0.0);
            let time = *numbers.get(3)?;
            let model = fields.iter().skip(numbers.len().min(5)).rev().copied().collect::<Vec<_>>().join(",");
            (whole && numbers.len() >= 4 && time > 0.0 && time < 1e5).then_some((model, time * 1e3))
        })
        .collect()
}

/// Whether the text is a result file.
pub fn is_result_file(text: &str) -> bool {
    result_rows(text).is_some_and(|rows| !rows.is_empty())
}

/// Reads a result file, a measurement a model.
pub fn result_file(text: &str) -> Reading {
    let mut reading = Reading::default();
    let rows = result_rows(text).unwrap_or_default();
    let mut models: Vec<&str> = Vec::new();
    for (model, _) in &rows {
        if !models.contains(&model.as_str()) {
            models.push(model);
        }
    }
    for model in models {
        let times: Vec<f64> = rows.iter().filter(|(of, _)| of == model).map(|(_, ms)| *ms).collect();
        let mut measurement = ReadMeasurement::new(if model.is_empty() { "inference" } else { model });
        add_latencies(&mut measurement, &times);
        report(&mut measurement, "runs", times.len() as f64);
        reading.measurements.push(measurement);
    }
    reading.warnings.push("a result file is appended to: its rows may be of several runs".to_owned());
    reading
}
