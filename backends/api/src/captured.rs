//! What a launch left behind: files, how it ended, and the agent's evidence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How the command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// `exited`, `timeout`, `output-limit`, `cancelled`, `thermal-trip` or `spawn-failed`.
    pub reason: String,
    /// Exit status, when it exited.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// What the system said, when it could not be started.
    pub message: Option<String>,
    /// Start and end of the command, `CLOCK_MONOTONIC` ns of the device: nothing happened outside.
    #[serde(default)]
    pub window_ns: Option<(u64, u64)>,
}

/// What the agent saw of the process tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Executable files and libraries that were mapped.
    pub mapped: Vec<String>,
    /// Device nodes that were open.
    pub device_nodes: Vec<String>,
}

/// All that is known of one finished step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Captured {
    /// Files by logical name: `stdout.txt`, `stderr.txt`, `events.jsonl` and the declared outputs that exist.
    pub files: BTreeMap<String, Vec<u8>>,
    /// How it ended.
    pub ended: Ended,
    /// What was seen while it ran.
    pub evidence: Evidence,
}
impl Captured {
    /// A captured file as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self, name: &str) -> Option<String> {
        self.files.get(name).map(|b| String::from_utf8_lossy(b).into_owned())
    }

    /// The last non-empty lines of standard error and standard output, for an error message.
    pub fn last_words(&self, lines: usize) -> String {
        let mut words = Vec::new();
        for name in ["stderr.txt", "stdout.txt"] {
            let text = self.text(name).unwrap_or_default();
            let mut tail: Vec<String> = text
                .lines()
                .rev()
                .filter(|l| !l.trim().is_empty())
                .take(lines)
                .map(|l| l.chars().filter(|c| !c.is_control()).take(300).collect())
                .collect();
            tail.reverse();
            words.extend(tail);
        }
        words.join(" / ")
    }
}
