//! Executions of one graph, added up as they come: what is kept does not grow with the operations of an execution times the executions.

use bench_backend_api::ReadMeasurement;

use super::{
    METHOD,
    row::{Row, is},
};
use crate::reader::ops::{Op, Sums, add_latencies, is_total, report, time, with_unit};

/// Executions whose latencies are kept.
const MOST_LATENCIES: usize = 1 << 20;
/// Kinds of events of an execution; the tools know about fifteen.
const MOST_EVENTS: usize = 256;
/// Warnings kept of one source.
const MOST_WARNINGS: usize = 100;

/// What is told of a whole execution.
#[derive(Debug, Clone)]
pub struct Event {
    pub message: String,
    pub source: String,
    pub identifier: String,
    pub unit: String,
    pub value: Option<f64>,
    /// Line of the file, from 1.
    pub line: usize,
}

impl Event {
    pub fn of(row: &Row<'_>, line: usize) -> Self {
        let own = str::to_owned;
        Self {
            message: own(row.message),
            source: own(row.source),
            identifier: own(row.identifier),
            unit: own(row.unit),
            value: row.time(),
            line,
        }
    }

    pub fn is(&self, row: &Row<'_>) -> bool {
        (self.message.as_str(), self.source.as_str(), self.identifier.as_str()) == (row.message, row.source, row.identifier)
    }

    /// Which of the [`LATENCIES`] it is.
    fn latency(&self) -> Option<usize> {
        let row = Row { message: &self.message, source: &self.source, unit: &self.unit, identifier: "", value: "", level: "" };
        let identifier = self.identifier.to_ascii_lowercase();
        if is(&self.message, "EXECUTE") && row.is_netrun(&identifier) {
            return Some(0);
        }
        let named = LATENCIES.iter().skip(1).position(|(_, begin)| identifier.starts_with(begin));
        named.filter(|_| !is(&self.unit, "CYCLES")).map(|place| place + 1)
    }
}

/// Latency: NetRun, else QNN's own execution time on the host, else the deepest of what is left. Each with how its identifier begins.
const LATENCIES: [(&str, &str); 5] = [
    ("NetRun", ""),
    ("QNN (execute) time", "qnn (execute)"),
    ("RPC (execute) time", "rpc (execute)"),
    ("QNN accelerator (execute) time", "qnn accelerator (execute)"),
    ("Accelerator (execute) time", "accelerator (execute)"),
];

#[derive(Debug, Default)]
struct Latency {
    ms: Vec<f64>,
    warnings: Vec<String>,
    /// Executions that told it.
    seen: usize,
}

/// The mean of an event of the whole execution.
#[derive(Debug)]
struct Mean {
    identifier: String,
    unit: String,
    sum: f64,
    n: usize,
}

/// One graph.
#[derive(Debug)]
pub struct Graph {
    /// Names of its operations: executions with the same ones are executions of the same graph.
    names: Vec<String>,
    pub ops: Sums,
    executions: usize,
    latencies: [Latency; LATENCIES.len()],
    means: Vec<Mean>,
}

impl Graph {
    /// An execution that is none of the graphs before.
    pub fn new(ops: &[Op], events: &[Event]) -> Self {
        let mut graph = Self {
            names: ops.iter().map(|op| op.name.clone()).collect(),
            ops: Sums::new(ops.to_vec()),
            executions: 0,
            latencies: Default::default(),
            means: Vec::new(),
        };
        graph.tell(events);
        graph
    }

    pub fn has(&self, ops: &[Op]) -> bool {
        self.names.len() == ops.len() && self.names.iter().zip(ops).all(|(name, op)| *name == op.name)
    }

    /// Adds an execution of the same operations.
    pub fn add(&mut self, ops: &[Op], events: &[Event]) {
        self.ops.add(ops.iter().map(|op| op.value));
        self.tell(events);
    }

    fn tell(&mut self, events: &[Event]) {
        self.executions += 1;
        let mut told = [false; LATENCIES.len()];
        for event in events {
            let Some(value) = event.value else { continue };
            if let Some(place) = event.latency().filter(|place| !std::mem::replace(&mut told[*place], true)) {
                let latency = &mut self.latencies[place];
                latency.seen += 1;
                match time(LATENCIES[place].0, value, &event.unit) {
                    Ok(ms) if latency.ms.len() < MOST_LATENCIES => latency.ms.push(ms),
                    Err(warning) if latency.warnings.len() < MOST_WARNINGS => {
                        latency.warnings.push(format!("line {}: {warning}", event.line));
                    }
                    Ok(_) | Err(_) => {}
                }
            }
            if is(&event.unit, "INF/SEC") || event.identifier.is_empty() {
                continue;
            }
            let room = self.means.len() < MOST_EVENTS;
            match self.means.iter_mut().find(|mean| mean.identifier == event.identifier && mean.unit == event.unit) {
                Some(mean) => (mean.sum, mean.n) = (mean.sum + value, mean.n + 1),
                None if room => {
                    self.means.push(Mean { identifier: event.identifier.clone(), unit: event.unit.clone(), sum: value, n: 1 });
                }
                None => {}
            }
        }
    }

    /// What is printed for the whole graph, in cycles: the mean over its executions, nothing when one of them lacks it.
    pub fn total(&self) -> Option<f64> {
        let total = self.means.iter().find(|mean| is_total(&mean.identifier, METHOD))?;
        (total.n == self.executions).then(|| total.sum / total.n as f64)
    }

    /// Latencies, and the means of the parts of an execution, as the tool names them.
    pub fn measure(&mut self, measurement: &mut ReadMeasurement, warnings: &mut Vec<String>) {
        let Some(place) = self.latencies.iter().position(|latency| latency.seen > 0) else { return };
        let (source, Latency { ms, warnings: own, seen }) = (LATENCIES[place].0, std::mem::take(&mut self.latencies[place]));
        warnings.extend(own);
        if seen > MOST_LATENCIES {
            warnings.push(format!("{seen} executions: the latency is that of the first {MOST_LATENCIES}"));
        }
        if place > 1 {
            warnings.push(format!("the latency is `{source}`: the profile has no time of the whole execution"));
        }
        if let [first, rest @ ..] = ms.as_slice()
            && rest.len() > 1
            && *first > 1.5 * rest.iter().sum::<f64>() / rest.len() as f64
        {
            warnings.push(format!("the first execution took {first:.3} ms, far more than the others (powering up); the mean includes it"));
        }
        add_latencies(measurement, &ms);
        for mean in &self.means {
            report(measurement, &with_unit(&mean.identifier, &mean.unit), mean.sum / mean.n as f64);
        }
        report(measurement, "executions", self.executions as f64);
    }
}
