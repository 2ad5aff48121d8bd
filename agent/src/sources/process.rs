//! The command's processes: RSS, CPU, threads. One `pread` of an open `/proc/PID/stat` and one reading of the process's CPU clock each.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::time::ClockId;
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::{Opened, Pace, Processes, Reader, Rows};
use crate::clock;
use crate::procfs;
use crate::tree::{Method, Tree};

/// The sums over the tree, a row each.
struct ProcessTree {
    processes: Arc<Processes>,
    generation: u64,
    known: HashMap<i32, Known>,
    page_kb: u64,
    last_t_ns: u64,
}

struct Known {
    /// Held open: a later process with the same pid can't be read by it.
    stat: File,
    clock: Option<ClockId>,
    cpu_ns: u64,
}

/// Opens it. Processes appear when the observer publishes them.
pub fn open(processes: &Arc<Processes>) -> Opened {
    if let Err(e) = fs::read("/proc/self/stat") {
        return Opened::missing(Some(&e));
    }
    let method = match Tree::below(std::process::id().cast_signed()).method() {
        Method::Children => "descendants by /proc/PID/task/TID/children",
        Method::Scan => "descendants by a scan of /proc",
    };
    let page_kb = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().map_or(4, |bytes| bytes.cast_unsigned() / 1024);
    let reader = ProcessTree { processes: Arc::clone(processes), generation: 0, known: HashMap::new(), page_kb, last_t_ns: 0 };
    Opened::available(method, vec![Box::new(reader)])
}

/// PSS is read at ends of phases only (rule R21), hence no reader.
pub fn open_pss(_: &Arc<Processes>) -> Opened {
    match fs::read("/proc/self/smaps_rollup") {
        Ok(_) => Opened::available("smaps_rollup, at ends of phases", Vec::new()),
        Err(e) => Opened::missing(Some(&e)),
    }
}

impl Known {
    fn open(pid: i32) -> Option<Self> {
        let stat = File::open(format!("/proc/{pid}/stat")).ok()?;
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).ok();
        // What it used before we knew of it did not happen in the coming interval.
        let cpu_ns = clock.and_then(|c| c.now().ok()).map_or(0, clock::nanoseconds);
        Some(Self { stat, clock, cpu_ns })
    }

    /// CPU ns since the last call. The process's clock has ns where `/proc/PID/stat` has 10 ms.
    fn used_ns(&mut self) -> Option<u64> {
        let now = clock::nanoseconds(self.clock?.now().ok()?);
        let used = now.saturating_sub(self.cpu_ns);
        self.cpu_ns = now;
        Some(used)
    }
}

impl Reader for ProcessTree {
    fn pace(&self) -> Pace {
        Pace::Fast
    }

    fn sample(&mut self, rows: &mut Rows) {
        if let Some(pids) = self.processes.changed(&mut self.generation) {
            self.known.retain(|pid, _| pids.contains(pid));
            for pid in pids {
                if let Some(known) = (!self.known.contains_key(&pid)).then(|| Known::open(pid)).flatten() {
                    self.known.insert(pid, known);
                }
            }
        }
        let (mut rss_pages, mut threads, mut count, mut cpu_ns, mut has_cpu) = (0, 0, 0_u64, 0, false);
        let mut buffer = [0; 1024];
        self.known.retain(|_, known| {
            let Ok(n) = known.stat.read_at(&mut buffer, 0) else { return false };
            let Some(stat) = procfs::parse_stat(&buffer[..n]) else { return true };
            if stat.state != b'Z' {
                rss_pages += stat.rss_pages;
                threads += stat.threads;
                count += 1;
            }
            if let Some(used) = known.used_ns() {
                cpu_ns += used;
                has_cpu = true;
            }
            true
        });
        let interval = rows.t_ns().saturating_sub(self.last_t_ns);
        let first = self.last_t_ns == 0;
        self.last_t_ns = rows.t_ns();
        if count == 0 {
            return;
        }
        let rss_kb = rss_pages * self.page_kb;
        self.processes.peak_rss_kb.fetch_max(rss_kb, Ordering::Relaxed);
        rows.push("process", "rss_kb", rss_kb, "kB");
        if has_cpu && !first && interval > 0 {
            rows.push("process", "cpu_pct", format_args!("{:.1}", cpu_ns as f64 / interval as f64 * 100.0), "pct");
        }
        rows.push("process", "threads", threads, "count");
        rows.push("process", "processes", count, "count");
    }
}
