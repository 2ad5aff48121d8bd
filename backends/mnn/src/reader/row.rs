//! One test of an output, on its way into a [`ReadMeasurement`](bench_backend_api::ReadMeasurement).

use bench_backend_api::{Failure, FailureKind, ReadMeasurement, Unreadable};
use serde_json::Value;

use super::value::{self, Bad};

/// A measurement and how far it can be trusted.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What was read.
    pub(super) measurement: ReadMeasurement,
    /// Whether the figures are unrounded (JSON), so that they replace those of a table.
    pub(super) exact: bool,
    /// Why the figures are none.
    pub(super) trouble: Option<Failure>,
}

/// Where a figure stands: for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The file.
    pub(super) file: &'a str,
    /// The line, from 1.
    pub(super) line: usize,
}
impl Place<'_> {
    /// An error at this place.
    pub(super) fn error(self, message: &str) -> Unreadable {
        Unreadable { file: self.file.to_owned(), message: format!("line {}: {message}", self.line) }
    }

    /// The error for a comma inside a number.
    pub(super) fn comma(self, text: &str) -> Unreadable {
        self.error(&format!("`{}` has a comma inside a number, which is neither read as a decimal nor as a thousands sign", text.trim()))
    }
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

    /// Adds a cell under its column's name, as a number if it is one.
    pub(super) fn report_cell(&mut self, name: &str, cell: &str) {
        match bench_backend_api::text::number(cell).and_then(number_value) {
            Some(number) => self.report(name, number),
            None => self.report(name, cell),
        }
    }

    /// Adds a speed if it can be that of a run that computed something, else remembers why it is none.
    pub(super) fn speed(&mut self, name: &str, tok_s: f64) {
        if value::real_speed(tok_s) {
            self.measurement.metric(name, tok_s);
        } else if self.trouble.is_none() {
            let message = format!("{}: {tok_s} tok/s is not the speed of a run that computed something", self.measurement.label)
                .replace("NaN", "nan");
            let hint = "the model did not run; llm_bench prints such a speed, and returns 0, when the model failed to load or to generate";
            self.trouble = Some(Failure { kind: FailureKind::Runtime, message, hint: Some(hint.to_owned()) });
        }
    }

    /// Takes the figures away if the row has trouble and no speed: counts and a loading time alone are no measurement.
    pub(super) fn settle(&mut self) {
        if self.trouble.is_some() && !self.measured() {
            self.measurement.metrics.clear();
        }
    }

    /// Takes the figures away, because the log says that they are void. What was printed stays under `reported`.
    pub(super) fn void(&mut self, why: Failure) {
        self.measurement.metrics.clear();
        self.trouble = Some(why);
    }

    /// Whether anything was measured.
    pub(super) fn measured(&self) -> bool {
        self.measurement.metrics.keys().any(|name| name.ends_with("_tok_s") || name.starts_with("latency"))
    }

    /// Whether both are the same test of the same run, printed twice.
    pub(super) fn same(&self, other: &Self) -> bool {
        let (a, b) = (&self.measurement, &other.measurement);
        let agree = |name: &str| match (a.reported.get(name), b.reported.get(name)) {
            (Some(x), Some(y)) => x == y || x.as_f64().zip(y.as_f64()).is_some_and(|(x, y)| (x - y).abs() < 1e-9),
            _ => true,
        };
        let rates = ["prefill_tok_s", "decode_tok_s", "latency_ms"];
        let close = |name: &str| match (number(a, name), number(b, name)) {
            // A table prints two decimals.
            (Some(x), Some(y)) => (x - y).abs() <= 0.00501,
            (None, None) => true,
            _ => false,
        };
        a.label == b.label && agree("model") && agree("threads") && rates.iter().all(|name| close(name))
    }

    /// Takes over what the other print of the same test knows better.
    pub(super) fn absorb(&mut self, other: Self) {
        for (name, value) in other.measurement.metrics {
            if (other.exact && !self.exact) || !self.measurement.metrics.contains_key(&name) {
                self.measurement.metrics.insert(name, value);
            }
        }
        for (name, value) in other.measurement.reported {
            self.measurement.reported.entry(name).or_insert(value);
        }
        self.exact |= other.exact;
        self.trouble = self.trouble.take().or(other.trouble);
    }
}

/// A metric's value.
pub(super) fn number(measurement: &ReadMeasurement, name: &str) -> Option<f64> {
    measurement.metrics.get(name).and_then(Value::as_f64)
}

/// A JSON number, whole where it is whole, so that `4` threads are not written as `4.0`.
pub(super) fn number_value(value: f64) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Some(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}

/// A figure at a place: a comma stops the file, anything else that is no number becomes a warning.
pub(super) fn checked<T>(read: Result<T, Bad>, text: &str, place: Place<'_>, warnings: &mut Vec<String>) -> Result<Option<T>, Unreadable> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Bad::Comma) => Err(place.comma(text)),
        Err(Bad::NotFinite | Bad::Text) => {
            warnings.push(format!("{} line {}: `{}` is no number", place.file, place.line, text.trim()));
            Ok(None)
        }
    }
}
