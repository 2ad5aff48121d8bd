//! ONNX Runtime's trace (`-p`, `enable_profiling`): a JSON array of Chrome trace events, one a line, times in us. It has no end after a crash.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, BufRead},
};

use bench_backend_api::{
    Layer, ReadMeasurement, Reading, ValueMeans,
    text::{each_line, plausible_ms},
};
use bench_backend_qnn::ops::{add_latencies, report};
use serde::Deserialize;
use serde_json::Value;

/// Whether the text begins like a trace.
pub fn is_trace(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('[') && text.contains("\"ph\"") && text.contains("\"cat\"")
        || (text.starts_with('{') && text.contains("\"traceEvents\"") && !text.contains("GENIE"))
}

/// The provider of this backend.
pub(super) const QNN: &str = "QNNExecutionProvider";

/// Where a node ran, by its provider.
pub(super) fn unit(provider: &str) -> Option<&'static str> {
    match provider {
        "CPUExecutionProvider" | "XnnpackExecutionProvider" => Some("cpu"),
        QNN => Some("npu"),
        "CUDAExecutionProvider" | "DmlExecutionProvider" | "WebGpuExecutionProvider" => Some("gpu"),
        _ => None,
    }
}

/// Reads the trace. With `generative`, the first run is a prompt's and the others are a token's: they are no executions of the same thing, so that
/// there is no latency, and operations are told apart by phase.
///
/// # Errors
/// No whole event in it.
pub fn reading(text: &str, generative: bool) -> Result<Reading, String> {
    let mut trace = Trace { generative, ..Trace::default() };
    let events = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(events)) => events,
        Ok(Value::Object(mut object)) => match object.remove("traceEvents") {
            Some(Value::Array(events)) => events,
            _ => return Err("JSON without an array of trace events".to_owned()),
        },
        Ok(_) => return Err("JSON, but no trace".to_owned()),
        Err(_) => {
            text.lines().for_each(|line| trace.line(line));
            trace.cut = true;
            return trace.finish();
        }
    };
    for event in &events {
        trace.event(&Event::of(event));
    }
    trace.events = events.len();
    trace.finish()
}

/// Reads one trace of any size with one event a line, as ONNX Runtime writes it.
///
/// # Errors
/// As [`each_line`], and no whole event in it.
pub fn stream(from: &mut dyn BufRead) -> io::Result<Reading> {
    let mut trace = Trace::default();
    let mut last = String::new();
    each_line(from, |line| {
        trace.line(line);
        line.clone_into(&mut last);
    })?;
    trace.cut = !last.trim_end().trim_end_matches('}').ends_with(']');
    trace.finish().map_err(|words| io::Error::new(io::ErrorKind::InvalidData, words))
}

/// What is read of an event.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    cat: Cow<'a, str>,
    /// us.
    dur: Option<f64>,
    #[serde(borrow)]
    args: Args<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Args<'a> {
    #[serde(borrow)]
    provider: Cow<'a, str>,
    #[serde(borrow)]
    op_name: Cow<'a, str>,
}

impl<'a> Event<'a> {
    fn of(value: &'a Value) -> Self {
        let text = |value: &'a Value| Cow::Borrowed(value.as_str().unwrap_or_default());
        let args = Args { provider: text(&value["args"]["provider"]), op_name: text(&value["args"]["op_name"]) };
        Self { name: text(&value["name"]), cat: text(&value["cat"]), dur: value["dur"].as_f64(), args }
    }
}

/// What is read of a trace so far.
#[derive(Default)]
struct Trace {
    generative: bool,
    /// It has no end.
    cut: bool,
    lines: usize,
    /// Whole events.
    events: usize,
    /// The first line that is none, and why.
    bad: Option<String>,
    unread: usize,
    /// ms.
    load: f64,
    /// Sums of what is told beside the nodes, us, by [`TOLD`].
    told: [f64; TOLD.len()],
    /// ms of each run, the first [`MOST_RUNS`].
    runs: Vec<f64>,
    ran: usize,
    nodes: Vec<Node>,
    /// Where they are, those before and those after the first run apart.
    places: [HashMap<String, usize>; 2],
    /// Nodes that did not fit.
    beyond: usize,
    on_cpu: u64,
}

struct Node {
    layer: Layer,
    us: f64,
    runs: u32,
}

/// What nests around the nodes: loading, each run, and in it the executor, whose nodes are its kernels and, in old versions, waits at fences.
const TOLD: [&str; 6] = [
    "model_loading (ms)",
    "session_initialization (ms)",
    "model_run (ms)",
    "SequentialExecutor::Execute (ms)",
    "kernels (ms)",
    "fences (ms)",
];

/// Runs whose times are kept.
const MOST_RUNS: usize = 1 << 20;
/// Different nodes; the largest models have some ten thousand.
const MOST_NODES: usize = 1 << 18;

impl Trace {
    /// A line with one event.
    fn line(&mut self, line: &str) {
        self.lines += 1;
        let line = line.trim().trim_start_matches('[').trim_end_matches(']').trim().trim_end_matches(',');
        if line.is_empty() {
            return;
        }
        // Typed, it costs a third of what a tree does; a tree takes every type.
        if let Ok(event) = serde_json::from_str::<Event<'_>>(line) {
            self.event(&event);
        } else {
            match serde_json::from_str::<Value>(line) {
                Ok(event) => self.event(&Event::of(&event)),
                Err(error) => {
                    let line = self.lines;
                    self.bad.get_or_insert_with(|| format!("line {line}: {error}"));
                    self.unread += 1;
                    return;
                }
            }
        }
        self.events += 1;
    }

    fn event(&mut self, event: &Event<'_>) {
        let Some(us) = event.dur.filter(|us| *us >= 0.0) else { return };
        let name = event.name.as_ref();
        let told = match event.cat.as_ref() {
            "Session" if name.starts_with("model_loading") => Some(0),
            "Session" => {
                ["session_initialization", "model_run", "SequentialExecutor::Execute"].iter().position(|n| *n == name).map(|at| at + 1)
            }
            "Node" if name.ends_with("_kernel_time") => Some(4),
            "Node" if name.ends_with("_fence_before") || name.ends_with("_fence_after") => Some(5),
            _ => None,
        };
        if let Some(told) = told {
            self.told[told] += us;
        }
        match event.cat.as_ref() {
            "Session" if name.starts_with("model_loading") || name == "session_initialization" => self.load += us / 1e3,
            "Session" if name == "model_run" => {
                self.ran += 1;
                if self.runs.len() < MOST_RUNS {
                    self.runs.push(us / 1e3);
                }
            }
            "Node" => {
                if let Some(node) = name.strip_suffix("_kernel_time") {
                    self.node(node, us, &event.args);
                }
            }
            _ => {}
        }
    }

    fn node(&mut self, name: &str, us: f64, args: &Args<'_>) {
        let unit = unit(&args.provider);
        self.on_cpu += u64::from(unit == Some("cpu"));
        // A run's own event stands behind those of its nodes.
        let after = self.generative && self.ran > 0;
        let places = &mut self.places[usize::from(after)];
        if let Some(node) = places.get(name).and_then(|place| self.nodes.get_mut(*place)) {
            (node.us, node.runs) = (node.us + us, node.runs.saturating_add(1));
            return;
        }
        if self.nodes.len() >= MOST_NODES {
            self.beyond += 1;
            return;
        }
        let layer = Layer {
            phase: if !self.generative {
                ""
            } else if after {
                "decode"
            } else {
                "prefill"
            }
            .to_owned(),
            index: places.len() as u32,
            name: name.to_owned(),
            op_type: (!args.op_name.is_empty()).then(|| args.op_name.clone().into_owned()),
            unit: unit.map(str::to_owned),
            value_unit: "us".to_owned(),
            method: "ort-trace".to_owned(),
            value_means: Some(ValueMeans::WallTime),
            ..Layer::default()
        };
        places.insert(name.to_owned(), self.nodes.len());
        self.nodes.push(Node { layer, us, runs: 1 });
    }

    fn finish(self) -> Result<Reading, String> {
        if self.events == 0 && (self.cut || self.bad.is_some()) {
            return Err(format!("the trace holds no whole event: {}", self.bad.unwrap_or_else(|| "it is cut".to_owned())));
        }
        let mut reading = Reading::default();
        if self.unread > 1 {
            // The last line of a cut trace is half an event.
            let first = self.bad.unwrap_or_default();
            reading.warnings.push(format!("{} lines are no whole event and are left out, the first: {first}", self.unread));
        }
        if self.cut {
            reading.warnings.push("the trace is not closed: the process ended before its end, what is whole is read".to_owned());
        }
        let total: u64 = self.nodes.iter().map(|node| u64::from(node.runs)).sum();
        if total > 0 && self.on_cpu == total {
            reading.warnings.push("every node of the trace ran on the CPU: the NPU did nothing".to_owned());
        } else if self.on_cpu > 0 {
            reading.warnings.push(format!("{} of {total} node runs were on the CPU", self.on_cpu));
        }
        if self.beyond > 0 {
            reading.warnings.push(format!("over {MOST_NODES} different nodes: {} runs of others are left out", self.beyond));
        }
        // The mean of a node's runs, like the operations of QNN's own profile.
        let mean = |node: Node| Layer { value: Some(node.us / f64::from(node.runs)), count: Some(node.runs), ..node.layer };
        reading.layers = self.nodes.into_iter().map(mean).collect();
        let mut measurement = ReadMeasurement::new("inference");
        if !self.generative {
            add_latencies(&mut measurement, &self.runs);
        }
        if self.ran > MOST_RUNS {
            reading.warnings.push(format!("{} runs: the latency is that of the first {MOST_RUNS}", self.ran));
        }
        if plausible_ms(self.load) {
            measurement.metric("load_ms", self.load);
        }
        if self.ran > 0 {
            report(&mut measurement, "model_run events", self.ran as f64);
        }
        for (name, us) in TOLD.iter().zip(self.told).filter(|(_, us)| *us > 0.0) {
            report(&mut measurement, name, us / 1e3);
        }
        if !measurement.metrics.is_empty() || !measurement.reported.is_empty() {
            reading.measurements.push(measurement);
        }
        Ok(reading)
    }
}
