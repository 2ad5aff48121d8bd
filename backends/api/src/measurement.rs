//! What an adapter reads out of captured output: counts and durations, never a rate alone. Absent is `None`, never 0.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{cell::words, npu::NpuProfile, parts::PhasePart, phases::PhaseSpan, reader::ReadMeasurement};

words! {
    /// Who is to blame for a failure. Only runtime, model and verify failures say something about the cell.
    FailureKind { Usage = "usage", Infra = "infra", Device = "device", Runtime = "runtime", Model = "model", Thermal = "thermal", Verify = "verify" }
}

impl FailureKind {
    /// The surroundings failed: it says nothing about the cell, and `--resume` tries again.
    pub const fn is_surroundings(self) -> bool {
        matches!(self, Self::Infra | Self::Device | Self::Thermal)
    }
}

/// Why a launch gave no usable measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Who is to blame.
    pub kind: FailureKind,
    /// What happened, with the tool's own error code if it printed one.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}
impl Failure {
    /// A failure without a hint.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }
}
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// What to do about a failure, in one sentence.
pub type Hint = String;

/// Captured output that an adapter can't read as its tool's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct ParseError {
    /// The captured file.
    pub file: String,
    /// What is wrong, with the line where there is one.
    pub message: String,
}

/// One generated token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its id, when the runtime gives ids.
    pub id: Option<u32>,
    /// When it arrived: CLOCK_MONOTONIC of the device, in ns.
    pub t_ns: u64,
}

/// One query of a launch, as the runner saw it. Query 0 is the discarded one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Number within the launch.
    pub query: u32,
    /// Tokens submitted, a BOS that the runtime adds included.
    pub prompt_tokens: Option<u32>,
    /// Prompt tokens as the runtime itself reports them.
    pub prompt_tokens_reported: Option<u32>,
    /// Generated tokens as the runtime itself reports them.
    pub generated_reported: Option<u32>,
    /// Moment of submission (t0), CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    /// Tokens in order of arrival.
    pub tokens: Vec<Token>,
    /// The end of the query, CLOCK_MONOTONIC ns.
    pub end_ns: Option<u64>,
    /// `length`, `eos`, `error` or `context`.
    pub finish: Option<String>,
    /// Raw figures of the runtime's own profile, the unit in the key (`ttft_us`).
    pub reported: BTreeMap<String, f64>,
    /// Queries that `reported` is the mean of, for a tool that gives no time for each token: there are no `tokens` then, and no
    /// `start_ns`. `None` where tokens were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_n: Option<u32>,
}

impl Query {
    /// A query, or the mean of `n` of them, as a tool's own output tells it. A rate becomes the duration that it stands for: N tokens
    /// out are N - 1 steps, the first coming from the prefill (design 2b.7).
    pub fn reported(query: u32, n: u32, read: &ReadMeasurement) -> Self {
        let metric = |name: &str| read.metrics.get(name).and_then(Value::as_f64).filter(|v| v.is_finite() && *v > 0.0);
        let count = |name: &str| metric(name).filter(|n| n.fract() == 0.0 && *n <= f64::from(u32::MAX)).map(|n| n as u32);
        let (prompt, generated) = (count("prompt_tokens"), count("generated_tokens"));
        let steps = generated.map(|n| f64::from(n.saturating_sub(1))).filter(|n| *n > 0.0);
        let mut reported = BTreeMap::new();
        let mut put = |key: &str, value: Option<f64>| value.map(|v| reported.insert(key.to_owned(), v));
        put("ttft_us", metric("ttft_ms").map(|ms| ms * 1e3));
        put("prefill_us", metric("prefill_tok_s").zip(prompt).map(|(rate, n)| f64::from(n) * 1e6 / rate));
        put("decode_us", metric("decode_tok_s").zip(steps).map(|(rate, n)| n * 1e6 / rate));
        put("decode_steps", steps);
        put("e2e_us", metric("e2e_ms").map(|ms| ms * 1e3));
        put(TOKENS_PER_STEP, metric(TOKENS_PER_STEP));
        Self { query, prompt_tokens_reported: prompt, generated_reported: generated, reported, aggregate_n: Some(n), ..Self::default() }
    }
}

words! {
    /// What the number of a [`Layer`] is. Only like is added up or compared.
    ValueMeans {
        /// Cycles of all threads of the accelerator (HVX, HMX, DMA) together: work, not a length of time.
        ThreadCycles = "thread-cycles",
        /// Cycles that the operation adds to the longest chain of the graph.
        CriticalPathCycles = "critical-path-cycles",
        /// Cycles from the operation's begin to its end, on the counter of one core.
        ElapsedCycles = "elapsed-cycles",
        /// From the operation's begin to its end, on the clock of the processor that ran it.
        WallTime = "wall-time",
        /// The row is a type of operation: the times of all of that type together.
        WallTimeOfType = "wall-time-of-type",
    }
}

/// One operation of a graph, from a profiling pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Name of the graph, or an empty text.
    pub graph: String,
    /// `prefill`, `decode`, or empty.
    pub phase: String,
    /// Place in the graph's order of the profile.
    pub index: u32,
    /// Name of the operation as printed.
    pub name: String,
    /// Type of the operation, when printed.
    pub op_type: Option<String>,
    /// `npu`, `gpu` or `cpu`, when known.
    pub unit: Option<String>,
    /// Time or cycles; `None` when the tool printed that it does not know.
    pub value: Option<f64>,
    /// `us` or `cycles`. Cycles are never turned into time.
    pub value_unit: String,
    /// Executions that the value is the mean of, when known.
    pub count: Option<u32>,
    /// Where the value comes from, for instance `qnn-detailed`.
    pub method: String,
    /// What the value is, when the tool's documentation says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_means: Option<ValueMeans>,
    /// What the tool itself prints for the whole graph, in the value's unit and as the mean of the same executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_total: Option<f64>,
    /// What else the tool says of the operation, under short names with their units: `wait_cycles`, `dram_read_bytes`, `resources`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// An operation that did not run on the unit that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallback {
    /// Its name; empty when the whole model fell back.
    pub op: String,
    /// Its type, when the tool says.
    pub op_type: Option<String>,
    /// Where it ran instead: `npu`, `gpu`, `cpu`; `None` when nothing ran it.
    pub unit: Option<String>,
    /// The tool's reason, when it gives one.
    pub reason: Option<String>,
    /// What said so, for instance `qnn-ep-log`.
    pub source: String,
}

/// What went between an accelerator and the memory in one traced execution of a graph, as the tool counted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DramTraffic {
    /// `prefill`, `decode`, or empty.
    pub phase: String,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub write_bytes: f64,
    /// Time of the execution, us: the accelerator's own, with tracing on.
    pub time_us: f64,
    /// What counted them, for instance `qnn-optrace`.
    pub source: String,
}

impl DramTraffic {
    /// Reads and writes over the time, in 10^9 bytes a second.
    pub fn gb_s(&self) -> f64 {
        (self.read_bytes + self.write_bytes) / self.time_us / 1e3
    }
}

/// Time of one graph under a tool that has no token loop (rule R11).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphTime {
    /// `prefill` or `decode`.
    pub phase: String,
    /// Tokens of one execution (AR).
    pub tokens: u32,
    /// Place among the binaries that the phase is split into, from 1.
    pub part: u32,
    /// Binaries that the phase is split into: its time is the sum over all of them.
    pub parts: u32,
    /// Executions behind the average.
    pub n: u32,
    /// Average time of one execution on the host, I/O included, in ms.
    pub latency_ms: f64,
}

/// Everything that one launch's captured output says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parsed {
    /// Begin and end of loading, CLOCK_MONOTONIC ns.
    pub load_ns: Option<(u64, u64)>,
    /// Begin and end of the time in which the process did nothing, the model in memory, CLOCK_MONOTONIC ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<(u64, u64)>,
    /// The unit that the runtime itself reports.
    pub unit_reported: Option<String>,
    /// Queries in order.
    pub queries: Vec<Query>,
    /// Parts of the load and of queries, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSpan>,
    /// Parts of phases, from the runtime's own profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PhasePart>,
    /// Times of whole graphs, where the tool has no token loop.
    #[serde(default)]
    pub graphs: Vec<GraphTime>,
    /// Operations, from the profile pass.
    pub layers: Vec<Layer>,
    /// Operations that fell back to another unit, as the runtime's log or trace says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Fallback>,
    /// Traffic of the memory, from a trace of the accelerator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dram: Vec<DramTraffic>,
    /// What the runtime's own profile says of the NPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npu: Option<NpuProfile>,
    /// Facts that the runner or the adapter noted: versions, effective options, and what [`note`] names.
    pub notes: BTreeMap<String, String>,
    /// What was odd but not fatal.
    pub warnings: Vec<String>,
    /// The failure that the output itself shows, whatever the exit status.
    pub failure: Option<Failure>,
    /// The runner said that it had done everything: the event `end`.
    #[serde(default)]
    pub ended: bool,
}

/// Keys of [`Parsed::notes`] from which the tables have columns of their own.
pub mod note {
    /// How the next token is chosen: `greedy`, or the sampler in effect. Without it nobody knows.
    pub const SAMPLING: &str = "sampling";
    /// How tokens are guessed ahead (`ssd-q1`, `lade`, ...); `false`, or no such note, where each step gives one token.
    pub const SPECULATIVE: &str = "speculative";
    /// The tool makes prompts of its own instead of taking bench's: how, in words.
    pub const OWN_PROMPT: &str = "prompt";
    /// Names of the graphs that ran, joined by `, `.
    pub const GRAPHS: &str = "graphs";
    /// AR of the prefill graph, in tokens: of static graphs only.
    pub const CHUNK: &str = "chunk";
    /// Context length that static graphs were compiled for, in tokens.
    pub const CONTEXT: &str = "context";
}

/// Key of [`Query::reported`]: tokens that one step of the model gave on average, as the runtime counts them (speculative decoding).
pub const TOKENS_PER_STEP: &str = "tokens_per_step";

impl Parsed {
    /// How tokens are guessed ahead (rule R5): the note's word, `unknown` where it is a bare yes; `None` for plain decoding.
    pub fn speculative(&self) -> Option<&str> {
        match self.notes.get(note::SPECULATIVE).map(String::as_str) {
            None | Some("" | "false" | "0" | "no") => None,
            Some("true" | "1" | "yes") => Some("unknown"),
            Some(kind) => Some(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_query_has_durations_for_rates() {
        let mut read = ReadMeasurement::new("query 1");
        // 823 tokens in 531.665 ms; 199 steps in 5191.579 ms are 38.3313 tokens a second.
        for (name, value) in
            [("ttft_ms", 531.665), ("prompt_tokens", 823.0), ("generated_tokens", 200.0), ("decode_tok_s", 199.0 / 5.191_579)]
        {
            read.metric(name, value);
        }
        let q = Query::reported(1, 5, &read);
        assert_eq!((q.prompt_tokens_reported, q.generated_reported, q.aggregate_n), (Some(823), Some(200), Some(5)));
        assert!((q.reported["ttft_us"] - 531_665.0).abs() < 1e-6 && (q.reported["decode_us"] - 5_191_579.0).abs() < 1e-3, "{q:?}");
        assert_eq!((q.reported["decode_steps"], q.reported.get("prefill_us"), q.tokens.len()), (199.0, None, 0));
        let one = Query::reported(0, 1, ReadMeasurement::new("x").metric("generated_tokens", 1.0).metric("decode_tok_s", 9.0));
        assert!(one.reported.is_empty(), "{one:?}");
    }
}
