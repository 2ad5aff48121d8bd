//! The command's processes: memory, CPU, threads. One `pread` of an open `/proc/PID/status` and one reading of the process's CPU clock each.
//!
//! `status` and not `statm`: it tells `RssShmem` from `RssFile` (statm has their sum), which the peak needs, and has swap, threads and the state as
//! well. Measured on x86_64 for a process of 1 GB with 16 threads: statm 1.3 us, stat 3.6 us, status 8.3 us; at 10 Hz that is nothing.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use nix::time::ClockId;
use nix::unistd::Pid;

use super::memory::Statuses;
use super::{Opened, Pace, Processes, Reader, Rows};
use crate::clock;
use crate::tree::{Method, Tree};

/// The sums over the tree, a row each.
struct ProcessTree {
    processes: Arc<Processes>,
    statuses: Statuses,
    generation: u64,
    clocks: HashMap<i32, CpuClock>,
    last_t_ns: u64,
}

struct CpuClock {
    clock: ClockId,
    used_ns: u64,
}

/// Opens it. Processes appear when the observer publishes them.
pub fn open(processes: &Arc<Processes>) -> Opened {
    if let Err(e) = fs::read("/proc/self/status") {
        return Opened::missing(Some(&e));
    }
    let method = match Tree::below(std::process::id().cast_signed()).method() {
        Method::Children => "descendants by /proc/PID/task/TID/children",
        Method::Scan => "descendants by a scan of /proc",
    };
    let reader = ProcessTree {
        processes: Arc::clone(processes),
        statuses: Statuses::default(),
        generation: 0,
        clocks: HashMap::new(),
        last_t_ns: 0,
    };
    Opened::available(method, vec![Box::new(reader)])
}

/// PSS is read at ends of phases only (rule R21), hence no reader.
pub fn open_pss(_: &Arc<Processes>) -> Opened {
    match fs::read("/proc/self/smaps_rollup") {
        Ok(_) => Opened::available("smaps_rollup, at ends of phases", Vec::new()),
        Err(e) => Opened::missing(Some(&e)),
    }
}

impl CpuClock {
    fn of(pid: i32) -> Option<Self> {
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).ok()?;
        // What it used before we knew of it did not happen in the coming interval.
        let used_ns = clock.now().map_or(0, clock::nanoseconds);
        Some(Self { clock, used_ns })
    }

    /// CPU ns since the last call. The process's clock has ns where `/proc/PID/stat` has 10 ms.
    fn spent_ns(&mut self) -> Option<u64> {
        let now = clock::nanoseconds(self.clock.now().ok()?);
        let spent = now.saturating_sub(self.used_ns);
        self.used_ns = now;
        Some(spent)
    }
}

impl Reader for ProcessTree {
    fn pace(&self) -> Pace {
        Pace::Fast
    }

    fn sample(&mut self, rows: &mut Rows) {
        if let Some(pids) = self.processes.changed(&mut self.generation) {
            self.clocks.retain(|pid, _| pids.contains(pid));
            for pid in pids {
                if let Some(clock) = (!self.clocks.contains_key(&pid)).then(|| CpuClock::of(pid)).flatten() {
                    self.clocks.insert(pid, clock);
                }
            }
        }
        let resident = self.statuses.read(&self.processes);
        let (mut cpu_ns, mut has_cpu) = (0, false);
        self.clocks.retain(|_, clock| {
            let spent = clock.spent_ns();
            cpu_ns += spent.unwrap_or(0);
            has_cpu |= spent.is_some();
            spent.is_some()
        });
        let interval = rows.t_ns().saturating_sub(self.last_t_ns);
        let first = self.last_t_ns == 0;
        self.last_t_ns = rows.t_ns();
        if resident.processes == 0 {
            return;
        }
        self.processes.memory.resident(rows.t_ns(), &resident);
        rows.push("process", "rss_kb", resident.rss_kb, "kB");
        if let Some([anon, shmem, file]) = resident.split {
            for (name, kb) in [("anon_kb", anon), ("shmem_kb", shmem), ("file_kb", file), ("swap_kb", resident.swap_kb)] {
                rows.push("process", name, kb, "kB");
            }
        }
        if has_cpu && !first && interval > 0 {
            rows.push("process", "cpu_pct", format_args!("{:.1}", cpu_ns as f64 / interval as f64 * 100.0), "pct");
        }
        rows.push("process", "threads", resident.threads, "count");
        rows.push("process", "processes", resident.processes, "count");
    }
}
