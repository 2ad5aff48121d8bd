//! One test of an output, on its way into a [`ReadMeasurement`].

use bench_backend_api::{Failure, FailureKind, ReadMeasurement, Unreadable, text};
use serde_json::{Map, Value};

use super::value::{Bad, Place, Test, metric, number, number_value, real_speed};

/// Rates that a row can have.
const RATES: [&str; 3] = ["prefill_tok_s", "decode_tok_s", "pg_tok_s"];

/// A measurement and how far it can be trusted.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What was read.
    pub(super) measurement: ReadMeasurement,
    /// Whether the figures are unrounded, so that they replace those of a table.
    pub(super) exact: bool,
    /// Why there is no figure.
    pub(super) trouble: Option<Failure>,
}

impl Row {
    /// A row without figures.
    pub(super) fn new(label: impl Into<String>) -> Self {
        Self { measurement: ReadMeasurement::new(label), exact: false, trouble: None }
    }

    /// Adds a printed value under the tool's own name.
    pub(super) fn report(&mut self, name: &str, value: impl Into<Value>) {
        self.measurement.reported.insert(name.to_owned(), value.into());
    }

    /// Adds the speed of a test if it can be one, and its token counts.
    pub(super) fn speed(&mut self, test: Test, tok_s: Option<f64>) {
        match tok_s {
            Some(tok_s) if real_speed(tok_s) => {
                self.measurement.metric(test.metric(), tok_s);
            }
            _ => {
                self.trouble = Some(Failure {
                    kind: FailureKind::Runtime,
                    message: format!("{} has no usable speed", self.measurement.label),
                    hint: Some(
                        "zero, infinite or impossible speeds come from runs that computed nothing: look at the log with -v".to_owned(),
                    ),
                });
                return;
            }
        }
        for (name, count) in [("prompt_tokens", test.prompt), ("generated_tokens", test.generate)] {
            if count > 0 {
                self.measurement.metrics.insert(name.to_owned(), count.into());
            }
        }
    }

    /// Whether anything was measured.
    pub(super) fn measured(&self) -> bool {
        RATES.iter().any(|name| self.measurement.metrics.contains_key(*name))
    }

    /// A reported value under any of several names: JSON and table name their columns differently.
    pub(super) fn reported(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.measurement.reported.get(*name))
    }

    /// Whether both are the same test of the same run, printed twice (`-o json -oe md`).
    pub(super) fn same(&self, other: &Self) -> bool {
        let agree = |names: &[&str]| match (self.reported(names), other.reported(names)) {
            (Some(x), Some(y)) => x == y,
            _ => true,
        };
        let close = |name: &&str| match (metric(&self.measurement, name), metric(&other.measurement, name)) {
            // A table prints two decimals.
            (Some(x), Some(y)) => (x - y).abs() <= 0.00501,
            (None, None) => true,
            _ => false,
        };
        self.measurement.label == other.measurement.label
            && agree(&["model_type", "model"])
            && agree(&["n_threads", "threads"])
            && RATES.iter().all(close)
    }

    /// Takes over what the other print of the same test knows better.
    pub(super) fn absorb(&mut self, other: Self) {
        let exact = other.exact && !self.exact;
        let (mut first, second) = (std::mem::take(&mut self.measurement), other.measurement);
        if exact {
            first.metrics.extend(second.metrics);
        } else {
            for (name, value) in second.metrics {
                first.metrics.entry(name).or_insert(value);
            }
        }
        for (name, value) in second.reported {
            first.reported.entry(name).or_insert(value);
        }
        self.measurement = first;
        self.exact |= other.exact;
        self.trouble = self.trouble.take().or(other.trouble);
    }
}

/// Whether an object or a line of CSV is a test of llama-bench.
pub(super) fn is_test(fields: &Map<String, Value>) -> bool {
    fields.contains_key("n_prompt") && fields.contains_key("n_gen")
}

/// A test from the fields of JSON, JSONL, CSV or SQL. Fields come and go between builds; only the counts and one time are needed.
pub(super) fn from_fields(fields: Map<String, Value>, place: Place<'_>, warnings: &mut Vec<String>) -> Result<Row, Unreadable> {
    let figure = |name: &str| -> Result<Option<f64>, Unreadable> {
        match fields.get(name) {
            Some(Value::String(text)) => match number(text) {
                Ok(value) => Ok(Some(value)),
                Err(Bad::Comma) => Err(place.comma(text)),
                Err(Bad::Text) => Ok(None),
            },
            other => Ok(other.and_then(Value::as_f64)),
        }
    };
    let count = |name: &str| -> Result<u32, Unreadable> {
        let value = figure(name)?.unwrap_or(0.0);
        if text::plausible_count(value) { Ok(value as u32) } else { Err(place.error(&format!("`{name}` is {value}"))) }
    };
    let test = Test { prompt: count("n_prompt")?, generate: count("n_gen")?, depth: count("n_depth")? };
    let mut row = Row::new(test.label());
    row.exact = true;
    let tok_s = match figure("avg_ts")? {
        Some(tok_s) => Some(tok_s),
        None if fields.contains_key("avg_ts") => None,
        None => figure("avg_ns")?.filter(|&ns| ns > 0.0).map(|ns| f64::from(test.prompt + test.generate) * 1e9 / ns),
    };
    row.speed(test, tok_s);
    if row.trouble.is_some() {
        warnings.push(format!("{} line {}: {} has no usable avg_ts", place.file, place.line, row.measurement.label));
    }
    if let Some(std) = figure("stddev_ts")?.and_then(number_value) {
        row.report("stddev", std);
    }
    for (name, value) in fields {
        let value = plain(&name, value);
        row.report(&name, value);
    }
    Ok(row)
}

/// Numbers of CSV and SQL come as text. Only fields known to be numbers are turned, because a commit can look like one.
fn plain(name: &str, value: Value) -> Value {
    const NUMBERS: &[&str] =
        &["build_number", "model_size", "model_n_params", "poll", "main_gpu", "flash_attn", "use_mmap", "fit_target", "fit_min_ctx"];
    let known = NUMBERS.contains(&name) || ["n_", "avg_", "stddev_"].iter().any(|start| name.starts_with(start));
    match &value {
        Value::String(text) if known => text::number(text).and_then(number_value).unwrap_or(value),
        _ => value,
    }
}
