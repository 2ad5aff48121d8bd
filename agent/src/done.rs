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
    /// The tree's memory by kind: its peak and what it was at ends of phases. Absent without sampling, on kernels before 4.5, and in files of
    /// older agents.
    #[serde(default)]
    pub memory: Option<Memory>,
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
    /// Of these, what the watcher of Android's thermal service and the processes that it runs used.
    #[serde(default)]
    pub watcher_cpu_s: f64,
    /// Every source, sampled or not.
    pub sources: Vec<SourceReport>,
    /// Under which conditions the command was launched.
    pub launch_context: LaunchContext,
    /// What the page cache held of the files to load; absent where the spec names none, and in files of older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCache>,
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

/// What the page cache held of some files just before the spawn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCache {
    /// What was done to them first.
    pub asked: crate::spec::Make,
    /// Bytes of the files that could be looked at.
    pub bytes: u64,
    /// Of them, bytes in the page cache, counted in whole pages.
    pub resident_bytes: u64,
    /// The files that could not be looked at, or of which the pages could not be dropped, in words.
    pub problem: Option<String>,
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
    /// A zone was over its limit; the message says which and by how much.
    ThermalTrip,
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

/// Memory of the tree at one moment, KiB. Sums over its processes: a page that two of them share counts twice in `anon_kb`, `file_kb` and
/// `shmem_kb` (a fork before it writes, one memfd mapped in both), a dma-buf never does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// `CLOCK_MONOTONIC` nanoseconds.
    pub t_ns: u64,
    /// `RssAnon`.
    pub anon_kb: u64,
    /// `RssShmem`. No dma-buf is in it: see [`Footprint::total_kb`].
    pub shmem_kb: u64,
    /// `RssFile`.
    pub file_kb: u64,
    /// `VmSwap`.
    pub swap_kb: u64,
    /// Distinct dma-bufs that the tree holds open, as they were last read (once a second, and at ends of phases); absent where they could not be
    /// read.
    #[serde(default)]
    pub dmabuf_kb: Option<u64>,
    /// Memory of the GPU's driver (kgsl) for the tree, as it was last read; absent without kgsl or where it may not be read.
    #[serde(default)]
    pub gpu_kb: Option<u64>,
    /// The part of it that surely stands in no other figure.
    #[serde(default)]
    pub gpu_apart_kb: Option<u64>,
}

impl Footprint {
    /// The sum of rule R22: distinct dma-bufs + `RssAnon` + `RssShmem` (+ what the GPU's driver has beside these), KiB. Resident pages of mapped
    /// files are not in it: weights that are mapped and then copied into a dma-buf would count twice, and clean ones can be dropped.
    ///
    /// `RssShmem` needs no part taken off: a mapped dma-buf is never in it. The kernel's system heap (drivers/dma-buf/heaps/system_heap.c) and ION
    /// before it map by `remap_pfn_range`, whose `VM_PFNMAP` pages no RSS counter and no PSS sees ("dma-buf: heaps: Map system heap pages as managed
    /// by linux vm", linux-media, 2 February 2021, which describes it and proposes `vm_insert_page`). Where a kernel does insert pages, they
    /// count as `RssFile`, as they are not swap-backed (`mm_counter_file` in include/linux/mm.h), and `RssFile` is not in the sum. The exception
    /// is udmabuf, made of a memfd's own pages, which no framework of these devices uses.
    pub fn total_kb(&self) -> u64 {
        self.anon_kb + self.shmem_kb + self.dmabuf_kb.unwrap_or(0) + self.gpu_apart_kb.unwrap_or(0)
    }
}

/// The tree's memory over the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Where the sum of [`Footprint::total_kb`] was highest: a lower bound, at 50 Hz while the program loads and at the sampling rate from then on.
    pub peak: Footprint,
    /// At ends of phases.
    #[serde(default)]
    pub points: Vec<MemoryPoint>,
    /// Readings behind the peak.
    #[serde(default)]
    pub readings: u64,
    /// The largest `RssFile`, KiB.
    #[serde(default)]
    pub file_max_kb: u64,
    /// The largest `VmSwap`, KiB.
    #[serde(default)]
    pub swap_max_kb: u64,
    /// The largest sum of distinct dma-bufs, KiB; absent where one could not be read.
    #[serde(default)]
    pub dmabuf_max_kb: Option<u64>,
    /// Why there is no sum of dma-bufs.
    #[serde(default)]
    pub dmabuf_absent: Option<String>,
    /// The largest sum of the GPU driver's memory, KiB.
    #[serde(default)]
    pub gpu_max_kb: Option<u64>,
    /// Why there is none.
    #[serde(default)]
    pub gpu_absent: Option<String>,
}

/// The tree's memory at an event of the runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// The event: `load_end` or `end`. What is read at `end` may be of a process that is already going.
    pub at: String,
    /// What was read, milliseconds after the event.
    pub now: Footprint,
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
    /// `/proc/self/cpuset`: `/foreground` or `/` for instance; absent on kernels without cpusets, and in files of older agents.
    #[serde(default)]
    pub cpuset: Option<String>,
    /// -1000 to 1000.
    pub oom_score_adj: Option<i32>,
    /// The SELinux context.
    #[serde(default)]
    pub selinux: Option<String>,
}
