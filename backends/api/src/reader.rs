//! `bench parse`: reading output that a user already has from the framework's own tool.

use std::io::BufRead;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    measurement::{DramTraffic, Failure, Layer},
    npu::NpuProfile,
};

/// One file handed to `bench parse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The name given by the user: for messages, and as a hint to the format.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}
impl SourceFile {
    /// The content as text; bytes that are not UTF-8 are replaced, a byte-order mark is dropped.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim_start_matches('\u{feff}').to_owned()
    }
}

/// One test of a tool's output.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadMeasurement {
    /// `pp512`, `tg128`, `query 1`, or the graph's name.
    pub label: String,
    /// Figures under the design's metric names, in the units that the names say.
    pub metrics: Map<String, Value>,
    /// What the tool printed beside them, under the tool's own names.
    pub reported: Map<String, Value>,
}
impl ReadMeasurement {
    /// An empty measurement.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Adds a metric unless it is not a finite number, which is never a measurement.
    pub fn metric(&mut self, name: &str, value: f64) -> &mut Self {
        if let Some(number) = serde_json::Number::from_f64(value) {
            self.metrics.insert(name.to_owned(), Value::Number(number));
        }
        self
    }

    /// Adds what the tool printed, under its own name, unless it is not a finite number. A whole number stays one.
    pub fn report(&mut self, name: impl Into<String>, value: f64) -> &mut Self {
        let number =
            if value.fract() == 0.0 && value.abs() < 9e15 { Some((value as i64).into()) } else { serde_json::Number::from_f64(value) };
        self.reported.extend(number.map(|number| (name.into(), Value::Number(number))));
        self
    }
}

/// What a tool's output says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// One for each test of the output.
    pub measurements: Vec<ReadMeasurement>,
    /// Operations, when the output has them.
    pub layers: Vec<Layer>,
    /// What a profile says of the NPU, all graphs together. For adapters: `bench parse` has every figure under `reported`.
    #[serde(skip)]
    pub npu: Option<NpuProfile>,
    /// Traffic of the memory. For adapters: `bench parse` has it among the metrics.
    #[serde(skip)]
    pub dram: Vec<DramTraffic>,
    /// What was odd.
    pub warnings: Vec<String>,
    /// The failed run that the output shows, whatever the tool's exit status was.
    pub failure: Option<Failure>,
}

/// A file that is not the output of the named tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct Unreadable {
    /// The file.
    pub file: String,
    /// What was expected, and the line where reading failed when there is one.
    pub message: String,
}

/// Reads the outputs of a framework's own tools.
pub trait Reader: Sync {
    /// The backend id, as given to `bench parse`.
    fn id(&self) -> &'static str;
    /// Reads several files of ONE run. Never panics, whatever the bytes.
    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable>;
    /// Reads a profile that is too large to be held, in memory that does not grow with it. `head` is how it begins, `from` gives all of it.
    /// `None`: nothing that this reader can take in pieces.
    fn stream(&self, name: &str, head: &str, from: &mut dyn BufRead) -> Option<Result<Reading, Unreadable>> {
        let _ = (name, head, from);
        None
    }
}
