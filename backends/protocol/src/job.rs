//! What a runner is asked to do: `JOB.json`.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt, fs, io,
    path::{Component, Path},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{Event, EventWriter, VERSION, monotonic_ns};

/// One process's work: load a model, then answer the queries in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// [`VERSION`].
    pub v: u32,
    /// The model and its files.
    pub model: Model,
    /// Libraries and configurations of the framework: absolute paths, or paths relative to the working folder.
    #[serde(default)]
    pub runtime: BTreeMap<String, String>,
    /// The queries, each starting from an empty KV cache.
    pub queries: Vec<Query>,
    /// CPU threads, where the framework lets them be set.
    #[serde(default)]
    pub threads: Option<u32>,
    /// The unit asked for; what worked is in the event `load_end`.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// The performance profile by the vendor's name (`burst`, `balanced`, ...).
    #[serde(default)]
    pub perf_profile: Option<String>,
    /// How much the framework records about itself.
    #[serde(default)]
    pub profile: Profile,
    /// The framework's own options; a runner refuses those that it does not know.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// A soak: after the listed queries they are repeated in their order, with rising numbers, until this many milliseconds after the first
    /// one began. A query that has begun is answered to its end. Left out in every other job, so that a runner that knows no soak needs not
    /// know the word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak_ms: Option<u64>,
    /// Milliseconds for which the process does nothing between `load_end` and its first query, so that what an idle device with the model in
    /// memory draws can be told from what the queries do. Left out in most jobs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle_ms: u64,
}

/// Serde hands over a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Shape and files of the model. Counts are those that the artifacts were built with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Tokens that prompt and output may have together.
    pub context: u32,
    /// Tokens of one call of the prefill graph (its AR).
    pub chunk: u32,
    /// Tokens in the vocabulary.
    pub vocab: u32,
    /// Decoder layers. This and the three after it are `None` where nobody told: only a runner that keeps the KV cache itself needs them.
    #[serde(default)]
    pub layers: Option<u32>,
    /// Heads of the KV cache.
    #[serde(default)]
    pub kv_heads: Option<u32>,
    /// Elements of one head.
    #[serde(default)]
    pub head_dim: Option<u32>,
    /// The base of the rotary embedding.
    #[serde(default)]
    pub rope_theta: Option<f64>,
    /// The token that starts every prompt; `None` for a model without one.
    #[serde(default)]
    pub bos: Option<u32>,
    /// The token that fills a chunk; nothing attends to it. 0 if the model has none.
    #[serde(default)]
    pub pad: Option<u32>,
    /// Logical name -> path relative to the working folder.
    pub files: BTreeMap<String, String>,
}

/// One prompt and the number of tokens to make from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The number that the events of this query carry.
    pub query: u32,
    /// The prompt with its BOS. A framework that adds BOS itself is given the rest.
    pub ids: Vec<u32>,
    /// Tokens out, the first from the prefill's logits: N tokens are N - 1 decode steps.
    pub gen_tokens: u32,
}

/// A processing unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// The Hexagon tensor processor, or its emulator on a PC.
    Npu,
    /// The processor's cores.
    Cpu,
    /// The graphics processor.
    Gpu,
}

/// How much the framework records about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Nothing.
    #[default]
    Off,
    /// Totals only, if they cost next to nothing.
    Summary,
    /// Times of single operations; the run's own times are then worth nothing.
    Layers,
}

/// Why a job cannot be carried out: always the caller's mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError(String);

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for JobError {}

impl JobError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Job {
    /// Reads and checks a job file.
    ///
    /// # Errors
    /// The file cannot be read, is not a job, or fails [`Job::check`].
    pub fn read(path: &Path) -> Result<Self, JobError> {
        let text = fs::read(path).map_err(|e| JobError::new(format!("{}: {e}", path.display())))?;
        Self::from_json(&text).map_err(|e| JobError::new(format!("{}: {e}", path.display())))
    }

    /// Parses and checks a job.
    ///
    /// # Errors
    /// See [`Job::read`].
    pub fn from_json(json: &[u8]) -> Result<Self, JobError> {
        let job: Self = serde_json::from_slice(json).map_err(|e| JobError::new(e.to_string()))?;
        job.check()?;
        Ok(job)
    }

    /// Everything that can be said about a job without its model. That a prompt is longer than the context is not looked at:
    /// how the framework takes it is a result.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self) -> Result<(), JobError> {
        let fail = |message: String| Err(JobError(message));
        if self.v != VERSION {
            return fail(format!("version {} of the job: this runner speaks {VERSION}", self.v));
        }
        let m = &self.model;
        for (name, n) in [
            ("context", Some(m.context)),
            ("chunk", Some(m.chunk)),
            ("vocab", Some(m.vocab)),
            ("layers", m.layers),
            ("kv_heads", m.kv_heads),
            ("head_dim", m.head_dim),
        ] {
            if n == Some(0) {
                return fail(format!("model.{name} is 0"));
            }
        }
        for (name, path) in &m.files {
            if path.is_empty() || !Path::new(path).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
                return fail(format!("model.files.{name} = {path:?}: not a path inside the working folder"));
            }
        }
        if self.threads == Some(0) {
            return fail("threads is 0".into());
        }
        if self.queries.is_empty() {
            return fail("no queries".into());
        }
        if self.soak_ms.is_some() && self.queries.iter().zip(0..).any(|(q, place)| q.query != place) {
            return fail(
                "soak_ms: the listed queries are numbered 0, 1, 2 ..., so that query n repeats the listed one n mod their count".into(),
            );
        }
        for q in &self.queries {
            if q.gen_tokens == 0 {
                return fail(format!("query {}: gen_tokens is 0", q.query));
            }
            if q.ids.is_empty() {
                return fail(format!("query {}: no prompt", q.query));
            }
            if let Some(id) = q.ids.iter().find(|id| **id >= m.vocab) {
                return fail(format!("query {}: token {id} is outside the vocabulary of {}", q.query, m.vocab));
            }
        }
        Ok(())
    }

    /// Does nothing for as long as the job asks, between `load_end` and the first query, and says when that was.
    ///
    /// # Errors
    /// The events can't be written.
    pub fn idle<W: io::Write>(&self, events: &mut EventWriter<W>) -> io::Result<()> {
        if self.idle_ms == 0 {
            return Ok(());
        }
        events.now(&Event::IdleBegin { t_ns: monotonic_ns() })?;
        thread::sleep(Duration::from_millis(self.idle_ms));
        events.now(&Event::IdleEnd { t_ns: monotonic_ns() })
    }

    /// Has every query answered in order, in a soak again and again until its time is over.
    ///
    /// # Errors
    /// The first error of `answer`.
    pub fn each_query<E>(&self, mut answer: impl FnMut(&Query) -> Result<(), E>) -> Result<(), E> {
        let begun = monotonic_ns();
        self.queries.iter().try_for_each(&mut answer)?;
        let Some(ms) = self.soak_ms else { return Ok(()) };
        let end = begun.saturating_add(ms.saturating_mul(1_000_000));
        let mut repeated = self.queries.clone();
        let count = u32::try_from(repeated.len()).unwrap_or(u32::MAX);
        loop {
            for query in &mut repeated {
                if monotonic_ns() >= end {
                    return Ok(());
                }
                query.query = query.query.saturating_add(count);
                answer(query)?;
            }
        }
    }

    /// The model's file of this logical name.
    ///
    /// # Errors
    /// The job does not name it.
    pub fn file(&self, name: &str) -> Result<&str, JobError> {
        self.model.files.get(name).map(String::as_str).ok_or_else(|| JobError(format!("model.files.{name} is missing")))
    }

    /// The framework's library or configuration of this name.
    ///
    /// # Errors
    /// The job does not name it.
    pub fn runtime(&self, key: &str) -> Result<&str, JobError> {
        self.runtime.get(key).map(String::as_str).ok_or_else(|| JobError(format!("runtime.{key} is missing")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = r#"{"v":1,"model":{"context":128,"chunk":32,"vocab":512,"layers":2,"kv_heads":2,"head_dim":32,"rope_theta":10000.0,
        "bos":0,"pad":2,"files":{"prefill":"prefill.onnx"}},"runtime":{"genie":"/x/libGenie.so"},
        "queries":[{"query":0,"ids":[0,5,6],"gen_tokens":16}],"threads":null,"unit":"npu","perf_profile":"burst","profile":"layers","options":{"a":"b"}}"#;

    fn error_of(from: &str, to: &str) -> String {
        assert!(JOB.contains(from), "{from}");
        Job::from_json(JOB.replace(from, to).as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn reads_what_it_writes() {
        let job = Job::from_json(JOB.as_bytes()).unwrap();
        assert_eq!((job.unit, job.profile, job.model.bos), (Some(Unit::Npu), Profile::Layers, Some(0)));
        assert_eq!((job.file("prefill"), job.runtime("genie")), (Ok("prefill.onnx"), Ok("/x/libGenie.so")));
        assert_eq!(job.file("decode").unwrap_err().to_string(), "model.files.decode is missing");
        assert_eq!(Job::from_json(&serde_json::to_vec(&job).unwrap()).unwrap(), job);
    }

    #[test]
    fn refuses_what_it_cannot_do() {
        assert!(error_of("\"threads\"", "\"thread\"").contains("unknown field `thread`"));
        assert!(error_of("\"v\":1", "\"v\":2").contains("speaks 1"));
        assert!(error_of("prefill.onnx", "../prefill.onnx").contains("working folder"));
        assert!(error_of("prefill.onnx", "/prefill.onnx").contains("working folder"));
        assert!(error_of("[0,5,6]", "[]").contains("no prompt"));
        assert!(error_of("[0,5,6]", "[0,512]").contains("outside the vocabulary"));
        assert!(error_of("\"gen_tokens\":16", "\"gen_tokens\":0").contains("gen_tokens is 0"));
        assert!(error_of("\"threads\":null", "\"threads\":0").contains("threads is 0"));
        assert!(error_of("\"chunk\":32", "\"chunk\":0").contains("model.chunk is 0"));
    }

    #[test]
    fn a_soak_repeats_the_list_with_rising_numbers() {
        let two = JOB.replace(
            "[{\"query\":0,\"ids\":[0,5,6],\"gen_tokens\":16}]",
            r#"[{"query":0,"ids":[5],"gen_tokens":1},{"query":1,"ids":[6],"gen_tokens":1}]"#,
        );
        let mut job = Job::from_json(two.as_bytes()).unwrap();
        let answered = |job: &Job, most: usize| {
            let mut seen = Vec::new();
            let result = job.each_query(|q| {
                seen.push((q.query, q.ids[0]));
                if seen.len() < most { Ok(()) } else { Err("enough") }
            });
            (seen, result)
        };
        assert_eq!(answered(&job, 9), (vec![(0, 5), (1, 6)], Ok(())));
        job.soak_ms = Some(3_600_000);
        assert_eq!(answered(&job, 5), (vec![(0, 5), (1, 6), (2, 5), (3, 6), (4, 5)], Err("enough")));
        // However short it is, every listed query is answered once.
        job.soak_ms = Some(0);
        assert_eq!(answered(&job, 9), (vec![(0, 5), (1, 6)], Ok(())));
        assert!(!serde_json::to_string(&Job { soak_ms: None, ..job.clone() }).unwrap().contains("soak"));
        job.queries[1].query = 7;
        assert!(job.check().unwrap_err().to_string().starts_with("soak_ms: "));
    }

    #[test]
    fn idles_for_as_long_as_it_is_asked_to_and_says_when() {
        let silent = Job::from_json(JOB.as_bytes()).unwrap();
        // A runner that knows no idle time needs not know the word.
        assert!(!serde_json::to_string(&silent).unwrap().contains("idle"));
        let asked = Job::from_json(JOB.replace("\"unit\"", "\"idle_ms\":20,\"unit\"").as_bytes()).unwrap();
        assert!(serde_json::to_string(&asked).unwrap().contains("\"idle_ms\":20"));
        let events = |job: &Job| {
            let path = std::env::temp_dir().join(format!("bench-idle-{}-{}", std::process::id(), job.idle_ms));
            let mut writer = EventWriter::create(&path).unwrap();
            let before = monotonic_ns();
            job.idle(&mut writer).unwrap();
            drop(writer);
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            (before, crate::parse_events(&bytes), monotonic_ns())
        };
        assert_eq!(events(&silent).1, (Vec::new(), Vec::new()));
        let (before, (seen, warnings), after) = events(&asked);
        assert!(warnings.is_empty(), "{warnings:?}");
        let [Event::IdleBegin { t_ns: from }, Event::IdleEnd { t_ns: to }] = seen[..] else { panic!("{seen:?}") };
        assert!(before <= from && to <= after && to - from >= 20_000_000, "{before} {from} {to} {after}");
    }

    #[test]
    fn truncated_anywhere_is_an_error_and_no_panic() {
        for end in 0..JOB.len() {
            assert!(Job::from_json(&JOB.as_bytes()[..end]).is_err());
        }
    }
}
