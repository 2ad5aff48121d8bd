//! What goes in: `SPEC.json`, the description of the one command to supervise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use crate::done::{
    Done, Ended, Footprint, LaunchContext, Memory, MemoryPoint, PageCache, PssSample, Reason, ResourceUsage, SourceReport, SourceState,
};

/// The version of [`Spec`] and [`Done`] that this crate reads and writes.
pub const VERSION: u32 = 1;

/// One command and everything the agent needs to supervise it without a connection.
///
/// `argv[0]` with a slash is resolved after the change to `cwd`, one without a slash is looked up in the `PATH` of `env`.
/// `stdin`, `watch` and `phase_file` are relative to `cwd`; `cwd` and `out_dir` are relative to the agent's own directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Always [`VERSION`].
    pub v: u32,
    /// Program and arguments; no shell is involved.
    pub argv: Vec<String>,
    /// The complete environment: the command gets exactly these variables.
    pub env: BTreeMap<String, String>,
    /// The working directory of the command.
    pub cwd: String,
    /// A file to read standard input from; `/dev/null` when absent.
    #[serde(default)]
    pub stdin: Option<String>,
    /// Where `stdout.txt`, `stderr.txt`, `telemetry.csv`, `agent.pid`, `child.pid` and `done.json` go; made if missing.
    pub out_dir: String,
    /// Milliseconds from the spawn after which the command is ended.
    pub timeout_ms: u64,
    /// Milliseconds between TERM and KILL.
    pub grace_ms: u64,
    /// Samples a second of the fast sources; 0 samples nothing. At most [`MAX_RATE_HZ`].
    pub rate_hz: f64,
    /// Bytes kept of each output stream, half of them (at most 1 MiB) from its end.
    pub max_output_bytes: u64,
    /// Files that the command writes itself and that must not outgrow a limit.
    #[serde(default)]
    pub watch: Vec<Watch>,
    /// The runner's event file (JSON lines), followed to take one PSS sample at the ends of phases.
    #[serde(default)]
    pub phase_file: Option<String>,
    /// For long runs: telemetry.csv holds changes alone, and a row of one name at most every so many milliseconds; every window of
    /// `window_ms` begins with one. 0 keeps every sample.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compact_ms: u64,
    /// Milliseconds of the windows, from the spawn on, of which `windows.csv` holds the smallest, largest and mean value of every name; 0 = no such file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub window_ms: u64,
    /// Temperatures that end the command with [`Reason::ThermalTrip`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trip: Vec<Trip>,
    /// The files that the command will load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
}

/// Files of which is said, just before the spawn, how much of them the page cache holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Their paths, relative to `cwd`.
    pub files: Vec<String>,
    /// What is done to them first.
    pub make: Make,
}

/// What is done to the page cache before a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Make {
    /// Nothing.
    #[default]
    Asis,
    /// The files are synchronised with the disk, and the kernel is asked to drop their pages.
    Cold,
    /// The files are read.
    Warm,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A zone that must not be hotter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trip {
    /// The name of its rows in telemetry.csv (source `thermal`).
    pub zone: String,
    /// Two readings in a row above this, in C, end the command.
    pub max_c: f64,
}

/// The fastest sampling that a spec may ask for, in samples a second.
pub const MAX_RATE_HZ: f64 = 1000.0;

/// A file with a limit on its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// The file; it may not exist yet.
    pub path: String,
    /// A larger file ends the command with [`Reason::OutputLimit`].
    pub max_bytes: u64,
}

impl Spec {
    /// Says what is wrong with the values, all of it, one problem a line.
    pub fn check(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        if self.v != VERSION {
            wrong.push(format!("v is {}, this agent reads {VERSION}: push the agent that belongs to this bench", self.v));
        }
        if self.argv.first().is_none_or(String::is_empty) {
            wrong.push("argv names no program".to_owned());
        }
        if self.cwd.is_empty() || self.out_dir.is_empty() {
            wrong.push("cwd and out_dir must not be empty".to_owned());
        }
        if !(0.0..=MAX_RATE_HZ).contains(&self.rate_hz) {
            wrong.push(format!("rate_hz is {}, allowed are 0 to {MAX_RATE_HZ}", self.rate_hz));
        }
        if !self.trip.is_empty() && self.rate_hz <= 0.0 {
            wrong.push("trip without sampling: rate_hz is 0, so no temperature would be read".to_owned());
        }
        if let Some(limit) = self.trip.iter().find(|limit| !limit.max_c.is_finite()) {
            wrong.push(format!("trip: {} C is no limit for {}", limit.max_c, limit.zone));
        }
        if self.timeout_ms == 0 {
            wrong.push("timeout_ms is 0: every run needs an end".to_owned());
        }
        let nul = |s: &String| s.contains('\0');
        if self.argv.iter().any(nul) || self.env.iter().any(|(k, v)| nul(k) || nul(v)) {
            wrong.push("argv or env holds a NUL byte".to_owned());
        }
        if let Some(name) = self.env.keys().find(|k| k.is_empty() || k.contains('=')) {
            wrong.push(format!("env has a variable named {name:?}"));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// A path of the spec as seen from the command's working directory.
    pub fn in_cwd(&self, path: &str) -> PathBuf {
        Path::new(&self.cwd).join(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        r#"{"v":1,"argv":["true"],"env":{},"cwd":"/","out_dir":"/tmp/x","timeout_ms":1,"grace_ms":1,"rate_hz":10,"max_output_bytes":1}"#;

    #[test]
    fn optional_fields_may_be_left_out_and_unknown_ones_are_errors() {
        let spec: Spec = serde_json::from_str(TEXT).unwrap();
        assert_eq!(spec.check(), Ok(()));
        assert!(spec.watch.is_empty() && spec.stdin.is_none() && spec.trip.is_empty() && spec.compact_ms == 0);
        let back: Spec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(back, spec);
        let odd = TEXT.replace("\"v\":1", "\"v\":1,\"nice\":3");
        assert!(serde_json::from_str::<Spec>(&odd).unwrap_err().to_string().contains("unknown field `nice`"));
    }

    #[test]
    fn every_problem_is_named() {
        let mut spec: Spec = serde_json::from_str(TEXT).unwrap();
        spec.v = 9;
        spec.argv.clear();
        spec.trip.push(Trip { zone: "skin".to_owned(), max_c: f64::INFINITY });
        spec.rate_hz = f64::NAN;
        spec.env.insert("A=B".to_owned(), String::new());
        let text = spec.check().unwrap_err();
        for part in ["v is 9", "no program", "rate_hz", "A=B", "trip: inf C"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn relative_paths_belong_to_the_command() {
        let spec: Spec = serde_json::from_str(TEXT).unwrap();
        assert_eq!(spec.in_cwd("events.jsonl"), Path::new("/events.jsonl"));
        assert_eq!(spec.in_cwd("/a/b"), Path::new("/a/b"));
    }
}
