//! What the readers of a QNN profile share: executions, their operations, and the figures made of them.

use std::collections::BTreeMap;

use bench_backend_api::{
    Layer, ReadMeasurement, ValueMeans,
    text::{plausible_ms, to_ms},
};
use serde_json::{Number, Value};

/// One row of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// As printed, without ` (cycles)`.
    pub name: String,
    /// Type, when the tool printed one.
    pub op_type: Option<String>,
    /// `None` when the tool does not know.
    pub value: Option<f64>,
    /// `cycles` or `us`.
    pub unit: String,
    /// What else the tool says of it, see [`Layer::details`].
    pub details: BTreeMap<String, String>,
}
impl Op {
    /// An operation from a profile's identifier; the unit in its lower case.
    pub fn new(identifier: &str, value: Option<f64>, unit: &str) -> Self {
        let mut op = Self { name: String::new(), op_type: None, value: None, unit: String::new(), details: BTreeMap::new() };
        op.set(identifier, value, unit);
        op
    }

    /// Becomes another operation in the same memory: a profile has millions of rows.
    pub fn set(&mut self, identifier: &str, value: Option<f64>, unit: &str) {
        let name = identifier.trim();
        let name = name.strip_suffix("(cycles)").unwrap_or(name).trim_end();
        name.clone_into(&mut self.name);
        self.op_type = None;
        self.value = value;
        self.details.clear();
        if !self.unit.eq_ignore_ascii_case(unit) {
            self.unit = unit.to_ascii_lowercase();
        }
    }
}

/// The same operations of several executions, added up.
#[derive(Debug, Clone)]
pub struct Sums {
    /// Of the first execution; the value is the sum of what is known.
    ops: Vec<Op>,
    /// Executions in which the value of an operation is known.
    known: Vec<u32>,
    executions: u32,
}

impl Sums {
    /// One execution.
    pub fn new(ops: Vec<Op>) -> Self {
        Self { known: ops.iter().map(|op| u32::from(op.value.is_some())).collect(), ops, executions: 1 }
    }

    /// Adds the values of an execution of the same operations, in their order.
    pub fn add(&mut self, values: impl Iterator<Item = Option<f64>>) {
        for ((op, known), value) in self.ops.iter_mut().zip(&mut self.known).zip(values) {
            if let Some(value) = value {
                op.value = Some(op.value.unwrap_or(0.0) + value);
                *known += 1;
            }
            // Those of one execution are not those of all.
            op.details.clear();
        }
        self.executions += 1;
    }

    /// The operations as layers: the mean of the known values, and how many executions it is a mean of.
    pub fn layers(self, graph: &str, unit: Option<&str>, method: &str) -> Vec<Layer> {
        let executions = self.executions;
        let row = |(index, (op, known)): (usize, (Op, u32))| Layer {
            graph: graph.to_owned(),
            phase: phase_of(graph).to_owned(),
            index: index as u32,
            name: op.name,
            op_type: op.op_type,
            unit: unit.map(str::to_owned),
            value: op.value.map(|sum| sum / f64::from(known)),
            value_means: means(method, &op.unit),
            value_unit: op.unit,
            count: Some(if known == 0 { executions } else { known }),
            method: method.to_owned(),
            details: op.details,
            ..Layer::default()
        };
        self.ops.into_iter().zip(self.known).enumerate().map(row).collect()
    }
}

/// Executions of the same operations in the same order as layers; see [`Sums`].
pub fn layers(executions: &[&[Op]], graph: &str, unit: Option<&str>, method: &str) -> Vec<Layer> {
    let Some((first, others)) = executions.split_first() else { return Vec::new() };
    let mut sums = Sums::new(first.to_vec());
    for ops in others {
        sums.add(ops.iter().map(|op| op.value));
    }
    sums.layers(graph, unit, method)
}

/// Adds what the tool prints for the whole graph: the mean over its executions, nothing when one of them lacks it.
pub fn with_total(layers: &mut [Layer], totals: impl IntoIterator<Item = Option<f64>>) {
    let Some(totals) = totals.into_iter().collect::<Option<Vec<f64>>>().filter(|totals| !totals.is_empty()) else { return };
    let mean = totals.iter().sum::<f64>() / totals.len() as f64;
    layers.iter_mut().filter(|layer| layer.value_unit == "cycles").for_each(|layer| layer.graph_total = Some(mean));
}

/// The event that heads the operations of a profile: cycles of the whole graph.
pub fn is_total(event: &str, method: &str) -> bool {
    let head =
        if method == "qnn-linting" { "accelerator (critical path execute) time (cycles" } else { "accelerator (execute) time (cycles" };
    event.to_ascii_lowercase().starts_with(head)
}

/// Cycles of a profile are those of all threads together; linting prints those of the critical path (formats/qnn.md, section 4).
fn means(method: &str, unit: &str) -> Option<ValueMeans> {
    match (method, unit) {
        (_, "us") => Some(ValueMeans::WallTime),
        ("qnn-linting", "cycles") => Some(ValueMeans::CriticalPathCycles),
        (_, "cycles") => Some(ValueMeans::ThreadCycles),
        _ => None,
    }
}

/// `prefill` or `decode` when a graph's name says so: `prompt_ar128_cl4096_1_of_3`, `token_ar1_cl4096_1_of_3`, `prefill`, `decode`.
pub fn phase_of(graph: &str) -> &'static str {
    let lower = graph.to_ascii_lowercase();
    let word = |wanted: &str| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == wanted);
    if lower.contains("prefill") || word("prompt") {
        "prefill"
    } else if lower.contains("decode") && !lower.contains("decoder") || word("token") || word("tokengen") || word("ar1") {
        "decode"
    } else {
        ""
    }
}

/// Adds the mean, the least and, where there are enough of them, the percentiles of single latencies in ms. The mean is of all of them.
pub fn add_latencies(measurement: &mut ReadMeasurement, latencies: &[f64]) {
    let mut sorted: Vec<f64> = latencies.iter().copied().filter(|&value| plausible_ms(value)).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(&least) = sorted.first() else { return };
    measurement.metric("latency_ms", sorted.iter().sum::<f64>() / sorted.len() as f64);
    if sorted.len() < 2 {
        return;
    }
    measurement.metric("latency_min_ms", least);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
    measurement.metric("latency_p50_ms", median);
    // The nearest rank; a percentile needs as many values as it splits.
    for (name, percent, needed) in [("latency_p90_ms", 90, 10), ("latency_p99_ms", 99, 100)] {
        if sorted.len() >= needed {
            measurement.metric(name, sorted[(sorted.len() * percent).div_ceil(100) - 1]);
        }
    }
}

/// A number as JSON: a whole one without a point, `null` for what is not finite.
pub fn json(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// A finite number under the tool's own name.
pub fn report(measurement: &mut ReadMeasurement, name: &str, value: f64) {
    if value.is_finite() {
        measurement.reported.insert(name.to_owned(), json(value));
    }
}

/// An event's name with its unit, unless the name has it.
pub fn with_unit(name: &str, unit: &str) -> String {
    let unit = format!("({})", unit.to_ascii_lowercase());
    if name.ends_with(&unit) { name.to_owned() } else { format!("{name} {unit}") }
}

/// A time that can be a measurement, in ms, or why it can't.
pub fn time(name: &str, value: f64, unit: &str) -> Result<f64, String> {
    let ms = to_ms(value, unit).ok_or_else(|| format!("{name}: `{unit}` is not a unit of time, the value is left out"))?;
    if plausible_ms(ms) { Ok(ms) } else { Err(format!("{name}: {value} {unit} can not be a measurement, the value is left out")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_come_from_names() {
        let cases = [
            ("prompt_ar128_cl4096_1_of_3", "prefill"),
            ("token_ar1_cl4096_2_of_3", "decode"),
            ("model_prefill", "prefill"),
            ("prof_decode_fp16", "decode"),
            ("vae_decoder", ""),
            ("mobilenet", ""),
        ];
        for (name, phase) in cases {
            assert_eq!(phase_of(name), phase, "{name}");
        }
    }

    #[test]
    fn percentiles_need_enough_values() {
        let mut few = ReadMeasurement::new("x");
        add_latencies(&mut few, &[3.0, 1.0, 2.0, f64::NAN]);
        // (3 + 1 + 2) / 3 = 2; the NaN is not a latency.
        assert_eq!(few.metrics["latency_ms"], 2.0);
        assert_eq!((few.metrics["latency_min_ms"].as_f64(), few.metrics["latency_p50_ms"].as_f64()), (Some(1.0), Some(2.0)));
        assert!(!few.metrics.contains_key("latency_p90_ms"));
        let mut ten = ReadMeasurement::new("x");
        add_latencies(&mut ten, &(1..=10).map(f64::from).collect::<Vec<_>>());
        // Rank 9 of 10 is 9; the median of 5 and 6 is 5.5.
        assert_eq!((ten.metrics["latency_p90_ms"].as_f64(), ten.metrics["latency_p50_ms"].as_f64()), (Some(9.0), Some(5.5)));
    }
}
