//! What comes out: `done.json`, the evidence of one finished run. Re-exported by [`crate::spec`].

use serde::{Deserialize, Serialize};

/// The evidence, written last and by rename: where it exists, the run is over and everything beside it is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Always [`crate::spec::VERSION`].
    pub v: u32,
    /// The version of the agent that wrote this.
    pub agent_version: String,
    /// `CLOCK_MONOTONIC` nanoseconds just before the spawn.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC` nanoseconds when the command itself was reaped (or given up).
    pub end_ns: u64,
    /// Wall time of the spawn, RFC 3339 with `Z`.
    pub utc_start: String,
    /// The kernel's boot id; times of different boots must not be compared.
    pub boot_id: Option<String>,
    /// `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC` in ns, at start and at end: a growth is a suspend (rule R17).
    pub boottime_minus_monotonic_ns: [i64; 2],
    /// How it ended.
    pub ended: Ended,
    /// Of every process of the tree that was waited for, by its parent or by the agent.
    pub rusage: ResourceUsage,
    /// The largest sum of the tree's RSS that a sample saw, in KiB: a lower bound. Absent without sampling.
    pub peak_rss_kb: Option<u64>,
    /// The largest `VmHWM` seen of any ONE process, in KiB. Not a sum: peaks of several processes need not coincide.
    pub vm_hwm_kb: Option<u64>,
    /// The tree's PSS at ends of phases.
    pub pss: Vec<PssSample>,
    /// Executables and shared libraries seen mapped in the tree, sorted.
    pub mapped: Vec<String>,
    /// Nodes under `/dev` seen open in the tree, sorted; without null, zero, random, terminals and `/dev/shm`.
    pub device_nodes: Vec<String>,
    /// Bytes that the tree wrote to standard output, kept or not.
    pub stdout_bytes: u64,
    /// Bytes that the tree wrote to standard error, kept or not.
    pub stderr_bytes: u64,
    /// A stream was longer than the spec allows, its middle is missing.
    pub truncated: bool,
    /// Sampling rounds of the fast sources.
    pub samples: u64,
    /// Periods of the fast sources that were missed because an earlier round took too long.
    pub overruns: u64,
    /// CPU seconds that the agent itself used, all threads, and those of its watcher of the thermal service.
    pub agent_cpu_s: f64,
    /// Every source, sampled or not.
    pub sources: Vec<SourceReport>,
    /// Under which conditions the command was launched.
    pub launch_context: LaunchContext,
    /// Processes that outlived the command and were ended by the agent.
    #[serde(default)]
    pub leftovers: u32,
    /// Process ids that even KILL did not end (stuck in the kernel, say in a driver).
    #[serde(default)]
    pub survivors: Vec<i32>,
    /// What else a reader of this should know, in words.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The first error of writing output or telemetry (a full disk, say): the files beside this one are incomplete.
    #[serde(default)]
    pub write_error: Option<String>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The first cause.
    pub reason: Reason,
    /// The exit code, if the command exited; also after TERM.
    pub code: Option<i32>,
    /// The number of the signal that ended the command, the agent's own TERM (15) and KILL (9) included.
    pub signal: Option<i32>,
    /// What a human wants to know: the program and errno text of a failed spawn, the file that grew too large.
    pub message: Option<String>,
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// By itself, with an exit code or a signal.
    Exited,
    /// `timeout_ms` was over.
    Timeout,
    /// A watched file outgrew its limit.
    OutputLimit,
    /// The agent got TERM or INT.
    Cancelled,
    /// It never ran.
    SpawnFailed,
}

/// The kernel's account, `getrusage(RUSAGE_CHILDREN)`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// CPU seconds in user mode.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub sys_s: f64,
    /// The largest RSS of any one process, KiB, exact to its exit (the agent's own size is its floor).
    pub max_rss_kb: u64,
    /// Page faults served without the disk.
    pub minor_faults: u64,
    /// Page faults that needed the disk.
    pub major_faults: u64,
    /// Times it gave up the CPU.
    pub voluntary_switches: u64,
    /// Times the CPU was taken away.
    pub involuntary_switches: u64,
}

impl ResourceUsage {
    /// What was used after `before`. The largest RSS can't be told apart.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_s: (self.user_s - before.user_s).max(0.0),
            sys_s: (self.sys_s - before.sys_s).max(0.0),
            max_rss_kb: self.max_rss_kb,
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(before.involuntary_switches),
        }
    }
}

/// One reading of `smaps_rollup` over the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PssSample {
    /// `CLOCK_MONOTONIC` nanoseconds when the reading began.
    pub t_ns: u64,
    /// The event that caused it: `load_end` or `end`.
    pub at: String,
    /// The sum over the tree, KiB.
    pub kb: u64,
    /// How long the reading held on to the command's memory lock at most, in microseconds.
    #[serde(default)]
    pub took_us: u64,
}

/// One telemetry source and whether it could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// As in the column `source` of telemetry.csv.
    pub name: String,
    /// Readable or why not.
    pub state: SourceState,
    /// The errno of the first refusal.
    #[serde(default)]
    pub errno: Option<i32>,
    /// What was found, in words.
    #[serde(default)]
    pub detail: Option<String>,
    /// How long its first readings took together, microseconds.
    #[serde(default)]
    pub read_us: Option<u64>,
}

/// Whether a source can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceState {
    /// It was read.
    Available,
    /// It exists, this user may not read it.
    Denied,
    /// This device does not have it, or it gives no value.
    Absent,
}

/// What the command inherited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchContext {
    /// Effective user id.
    pub uid: Option<u32>,
    /// Nice value, -20 to 19.
    pub nice: Option<i32>,
    /// Allowed CPUs as the kernel lists them, e.g. `0-7`.
    pub affinity: Option<String>,
    /// The lines of `/proc/self/cgroup`.
    pub cgroup: Option<String>,
    /// -1000 to 1000.
    pub oom_score_adj: Option<i32>,
    /// The SELinux context.
    #[serde(default)]
    pub selinux: Option<String>,
}
