//! What a runner says: the lines of the events file.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{Unit, monotonic_ns};

/// Raw numbers from the runtime's own profile, their unit in the name (`ttft_us`, `decode_us`). A number that was not given is
/// absent.
pub type Reported = BTreeMap<String, f64>;

/// One line of the events file. `t_ns` is [`monotonic_ns`] at the moment of the event, not of the writing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A fact about the run: `runtime_version`, `effective_options`, ...
    Note {
        /// Time.
        t_ns: u64,
        /// What the fact is about.
        key: String,
        /// The fact.
        value: String,
    },
    /// The framework's library and the model begin to load.
    LoadBegin {
        /// Time.
        t_ns: u64,
    },
    /// The model is ready for a query.
    LoadEnd {
        /// Time.
        t_ns: u64,
        /// The unit that the runtime can prove to have the model; never the one asked for.
        #[serde(default)]
        unit: Option<Unit>,
        /// Names of the loaded graphs, if they are known.
        #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
        graphs: Vec<String>,
    },
    /// The process begins to do nothing with the model in memory, as the job's `idle_ms` asks.
    IdleBegin {
        /// Time.
        t_ns: u64,
    },
    /// It has done nothing since [`Event::IdleBegin`]; the first query follows.
    IdleEnd {
        /// Time.
        t_ns: u64,
    },
    /// A query is submitted: its time zero.
    Prompt {
        /// Time.
        t_ns: u64,
        /// Number of the query.
        query: u32,
        /// Tokens submitted, with the BOS that the runtime adds.
        tokens: u32,
    },
    /// A token has come out.
    Token {
        /// Number of the query.
        query: u32,
        /// Place in the output, from 0.
        i: u32,
        /// The token, if the runtime shows it.
        #[serde(default)]
        id: Option<u32>,
        /// Time.
        t_ns: u64,
    },
    /// Several tokens in one line: what a runner may write of a query of a soak once it is over, since hours of single lines fill a disk.
    /// [`crate::parse_events`] gives it as that many [`Event::Token`].
    Tokens {
        /// Number of the query.
        query: u32,
        /// Place of the first of them in the output.
        i: u32,
        /// Time of the first of them.
        t_ns: u64,
        /// Time of each further one since the one before, in ns.
        gaps_ns: Vec<u64>,
        /// All of their ids, or none.
        #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
        ids: Vec<u32>,
    },
    /// A part of the load or of a query begins. Parts follow each other: one inside another is not counted.
    PhaseBegin {
        /// Time.
        t_ns: u64,
        /// One of [`crate::Phase`], or a short name of one's own.
        phase: String,
        /// Number of the query; none for a part of the load.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<u32>,
        /// The token that comes of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        i: Option<u32>,
    },
    /// The part that began last is over.
    PhaseEnd {
        /// Time.
        t_ns: u64,
        /// Its name.
        phase: String,
        /// Number of the query; none for a part of the load.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<u32>,
    },
    /// A query is over, well or not.
    QueryEnd {
        /// Number of the query.
        query: u32,
        /// Time.
        t_ns: u64,
        /// Prompt tokens as the runtime counts them.
        #[serde(default)]
        prompt_tokens: Option<u32>,
        /// Output tokens as the runtime counts them.
        #[serde(default)]
        generated_tokens: Option<u32>,
        /// Why it ended.
        finish: Finish,
        /// The runtime's own figures.
        #[serde(default, deserialize_with = "without_nulls")]
        reported: Reported,
    },
    /// Memory in use.
    Memory {
        /// Time.
        t_ns: u64,
        /// What was measured.
        name: String,
        /// Bytes.
        bytes: u64,
    },
    /// Time of one operation, in the order of its graph.
    Layer {
        /// Time at which it was known.
        t_ns: u64,
        /// Name of the operation.
        name: String,
        /// Its graph.
        #[serde(default)]
        graph: Option<String>,
        /// `prefill` or `decode`, where the graph has both.
        #[serde(default)]
        phase: Option<String>,
        /// Its type.
        #[serde(default)]
        op: Option<String>,
        /// Where it ran.
        #[serde(default)]
        unit: Option<Unit>,
        /// Duration in microseconds.
        #[serde(default)]
        duration_us: Option<f64>,
        /// Cycles of the unit.
        #[serde(default)]
        cycles: Option<u64>,
        /// Executions that the duration or the cycles are the mean of.
        #[serde(default)]
        count: Option<u32>,
        /// How it was found out; `runner` where nothing is said.
        #[serde(default)]
        method: Option<String>,
    },
    /// The run failed; the process exits with a status that is not 0.
    Error {
        /// Time.
        t_ns: u64,
        /// Whose fault it is.
        kind: ErrorKind,
        /// What happened.
        message: String,
    },
    /// The last line of a run that did all it was asked.
    End {
        /// Time.
        t_ns: u64,
    },
}

/// Why a query ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finish {
    /// All tokens that were asked for.
    Length,
    /// The model ended its text.
    Eos,
    /// It failed.
    Error,
    /// The context was full.
    Context,
    /// A reason that this version does not know.
    #[serde(other)]
    Other,
}

/// Whose fault an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorKind {
    /// The job asks for something impossible.
    Usage,
    /// The model's files are missing, damaged or made for something else.
    Model,
    /// The framework or the device.
    Runtime,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}

impl Event {
    /// A fact, now.
    pub fn note(key: &str, value: impl Into<String>) -> Self {
        Self::Note { t_ns: monotonic_ns(), key: key.into(), value: value.into() }
    }

    /// An error, now.
    pub fn error(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Error { t_ns: monotonic_ns(), kind, message: message.into() }
    }

    /// The value of the tag `event` for every kind of event that this version knows.
    pub(crate) const NAMES: [&str; 15] = [
        "note",
        "load_begin",
        "load_end",
        "idle_begin",
        "idle_end",
        "prompt",
        "token",
        "tokens",
        "phase_begin",
        "phase_end",
        "query_end",
        "memory",
        "layer",
        "error",
        "end",
    ];

    /// The single tokens of [`Event::Tokens`]; every other event is itself.
    ///
    /// # Errors
    /// Ids that are not as many as the tokens, or a time that no clock shows.
    pub(crate) fn single(self) -> Result<Vec<Self>, String> {
        let Self::Tokens { query, i, t_ns, gaps_ns, ids } = self else { return Ok(vec![self]) };
        if !ids.is_empty() && ids.len() != gaps_ns.len() + 1 {
            return Err(format!("{} ids for {} tokens", ids.len(), gaps_ns.len() + 1));
        }
        let (mut all, mut t_ns, mut place) = (Vec::with_capacity(gaps_ns.len() + 1), t_ns, i);
        all.push(Self::Token { query, i: place, id: ids.first().copied(), t_ns });
        for (gap, n) in gaps_ns.iter().zip(1..) {
            t_ns = t_ns.checked_add(*gap).ok_or("its gaps are longer than any clock runs")?;
            place = place.checked_add(1).ok_or("its places are no numbers of tokens")?;
            all.push(Self::Token { query, i: place, id: ids.get(n).copied(), t_ns });
        }
        Ok(all)
    }
}

/// A field that was left out may also come as `null`, which is what most languages write for a value that they do not have.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(d).map(Option::unwrap_or_default)
}

/// A runtime's missing numbers may come as `null`, one or all of them.
fn without_nulls<'de, D: Deserializer<'de>>(d: D) -> Result<Reported, D::Error> {
    let all: BTreeMap<String, Option<f64>> = or_default(d)?;
    Ok(all.into_iter().filter_map(|(name, n)| Some((name, n?))).collect())
}
