//! `manifest.json`: what was run on what. Paths of this machine are written as `${RUN}`, `${CACHE}` and `${HOME}`.

use std::{collections::BTreeMap, path::Path};

use bench_backend_api::{Availability, DeviceClass, DeviceFacts};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    folder::{FolderError, write_whole},
    pinned::Pinned,
    schema::FORMAT_VERSION,
};
use crate::{
    device::DeviceClock,
    scenario::{Ab, Environment},
};

/// The manifest of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format.
    pub format_version: u32,
    /// Id of the run.
    pub run: String,
    /// The tool.
    pub tool: Tool,
    /// The scenario.
    pub scenario: ScenarioRef,
    /// Begin of the first segment, RFC 3339.
    pub started_utc: String,
    /// End of the last segment, if it came to an end.
    pub finished_utc: Option<String>,
    /// The device.
    pub device: DeviceFacts,
    /// What else the device says about itself and about the way to it; at the end of the last segment.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub device_says: serde_json::Value,
    /// What each backend's probe said.
    pub runtimes: BTreeMap<String, Availability>,
    /// What is known of each cell before it runs.
    pub cells: BTreeMap<String, CellFacts>,
    /// Identifies the lock of the Python environment.
    pub python_lock: String,
    /// Hashes of the programs in the measured path: our runners, the programs and scripts of the scenario, and, as `<set>:<name>`, the
    /// libraries that go onto a device.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    /// What is around the device, as the scenario says.
    #[serde(default)]
    pub environment: Environment,
    /// What was set on the device for the time of the last segment.
    #[serde(default)]
    pub pins: Vec<Pinned>,
    /// The device's clock against this machine's; absent where the agent did not tell.
    #[serde(default)]
    pub device_clock: Option<DeviceClock>,
    /// State of the host that could matter.
    pub host: BTreeMap<String, String>,
    /// Seed of the order.
    pub seed: u64,
    /// The other side, of an A/B run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ab: Option<Ab>,
    /// Begin of every segment, RFC 3339.
    pub segments: Vec<String>,
    /// What was odd.
    pub warnings: Vec<String>,
}

/// What is known of a cell before it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellFacts {
    /// What its numbers are about.
    pub device_class: DeviceClass,
    /// Cache key of its made artifact, or hash of the user's files.
    pub artifact: Option<String>,
    /// The name that its own world has for its quantisation, as its files tell it, else as the scenario does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quant_native: Option<String>,
    /// Who says so; runs of an older bench don't tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quant_native_from: Option<NamedBy>,
    /// What the artifact says of itself: bits, group, chunk.
    pub facts: BTreeMap<String, f64>,
}

/// Who names a quantisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamedBy {
    /// A file of the artifact.
    Files,
    /// The scenario, by `quant-native`.
    Scenario,
}
impl NamedBy {
    /// As it is written in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Scenario => "scenario",
        }
    }
}

/// The tool that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Version of bench.
    pub version: String,
}

/// The scenario that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioRef {
    /// Its name.
    pub name: String,
    /// SHA-256 of its file.
    pub sha256: String,
}

/// File name.
pub const FILE: &str = "manifest.json";

impl Manifest {
    /// Reads the manifest of a run folder.
    pub fn read(run: &Path) -> Result<Self, FolderError> {
        let path = run.join(FILE);
        let bytes = std::fs::read(&path).map_err(FolderError::io(&path))?;
        let value: serde_json::Value = parse(&path, &bytes)?;
        let version = value.get("format_version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if version > u64::from(FORMAT_VERSION) {
            let message = format!("format {version} is newer than this bench knows ({FORMAT_VERSION}): update bench");
            return Err(FolderError::Damaged { path, message });
        }
        parse(&path, &bytes)
    }

    /// Writes it.
    pub fn write(&self, run: &Path) -> Result<(), FolderError> {
        let path = run.join(FILE);
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|e| FolderError::Damaged { path: path.clone(), message: e.to_string() })?;
        bytes.push(b'\n');
        write_whole(&path, &bytes)
    }
}

fn parse<T: for<'de> Deserialize<'de>>(path: &Path, bytes: &[u8]) -> Result<T, FolderError> {
    let damaged = |e| format!("is damaged ({e}): start a new run; the tables beside it are not touched, and `bench report` reads them");
    serde_json::from_slice(bytes).map_err(|e: serde_json::Error| FolderError::Damaged { path: path.to_path_buf(), message: damaged(e) })
}

/// State of the host that could matter to a measurement; what can't be read is absent.
pub fn host_state() -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|t| t.trim().to_owned()).filter(|t| !t.is_empty());
    let mut state = BTreeMap::new();
    for (key, path) in [
        ("cpu_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("cpu_max_khz", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"),
        ("load", "/proc/loadavg"),
        ("swappiness", "/proc/sys/vm/swappiness"),
        ("boot_id", "/proc/sys/kernel/random/boot_id"),
    ] {
        if let Some(value) = read(path) {
            state.insert(key.to_owned(), value);
        }
    }
    state
}

/// Whether two manifests are of the sides of one A/B run: each names the other, by the ids in them, since a folder can be renamed.
pub fn are_sides(a: &Value, b: &Value) -> bool {
    let names = |one: &Value, other: &Value| one["ab"]["partner"].as_str().is_some_and(|partner| other["run"].as_str() == Some(partner));
    names(a, b) && names(b, a)
}
