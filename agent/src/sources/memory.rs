//! Memory of the tree as rule R22 counts it ([`Footprint::total_kb`]), put together from three readings of different pace: `/proc/PID/status`
//! (microseconds: at the sampling rate, and at 50 Hz while the program loads), dma-bufs (hundreds of descriptors: once a second and at ends of
//! phases, rule R21), the GPU driver's figures (as the dma-bufs). Between its readings a slow figure stands as it was.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, PipeReader};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::dmabuf::{self, Buffers, Unread};
use super::kgsl::{self, Gpu};
use super::{Opened, Pace, Processes, Reader, Rows};
use crate::clock;
use crate::done::{Footprint, Memory, MemoryPoint, SourceReport, SourceState};
use crate::procfs::{self, Status};

/// Between two readings while the program loads (rule R22 asks for 5 to 20 ms; 20 because a wake costs up to 80 us on a busy machine).
const LOADING_NS: u64 = 20_000_000;
/// A program without events has loaded by then, as far as anybody can say.
const LOADING_WITHOUT_EVENTS_NS: u64 = 2_000_000_000;
/// A program with events whose `load_end` does not come by then is read at the sampling rate.
const LOADING_MOST_NS: u64 = 120_000_000_000;
/// Ends of phases that are kept.
const MOST_POINTS: usize = 64;

/// Sums over the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// `VmRSS`, KiB.
    pub rss_kb: u64,
    /// `RssAnon`, `RssShmem`, `RssFile`, KiB; `None` where the kernel does not split.
    pub split: Option<[u64; 3]>,
    /// `VmSwap`, KiB.
    pub swap_kb: u64,
    /// The largest `VmHWM` of one process, KiB.
    pub hwm_kb: u64,
    /// Threads.
    pub threads: u64,
    /// Processes that are no zombies.
    pub processes: u64,
}

impl Resident {
    fn add(&mut self, status: &Status) {
        if status.zombie {
            return;
        }
        // A process on its way out has no memory lines any more, and that is no reason to believe that the kernel does not split.
        if status.rss_kb > 0 {
            let split = status.anon_kb.map(|anon| [anon, status.shmem_kb, status.file_kb]);
            self.split = match (self.split, split) {
                (None, split) if self.rss_kb == 0 => split,
                (Some(sum), Some(more)) => Some([sum[0] + more[0], sum[1] + more[1], sum[2] + more[2]]),
                _ => None,
            };
        }
        self.rss_kb += status.rss_kb;
        self.swap_kb += status.swap_kb;
        self.hwm_kb = self.hwm_kb.max(status.hwm_kb);
        self.threads += status.threads;
        self.processes += 1;
    }
}

/// `/proc/PID/status` of the tree, held open: a later process with the same pid can't be read by it.
#[derive(Default)]
pub struct Statuses {
    generation: u64,
    known: HashMap<i32, File>,
}

impl Statuses {
    /// Reads all. Who vanished is forgotten.
    pub fn read(&mut self, processes: &Processes) -> Resident {
        if let Some(pids) = processes.changed(&mut self.generation) {
            self.known.retain(|pid, _| pids.contains(pid));
            for pid in pids {
                if let Some(file) = (!self.known.contains_key(&pid)).then(|| File::open(format!("/proc/{pid}/status")).ok()).flatten() {
                    self.known.insert(pid, file);
                }
            }
        }
        let mut resident = Resident::default();
        let mut buffer = [0; 4096];
        self.known.retain(|_, file| {
            let Ok(n) = file.read_at(&mut buffer, 0) else { return false };
            if let Some(status) = procfs::parse_status(&buffer[..n]) {
                resident.add(&status);
            }
            true
        });
        resident
    }
}

/// What is known, shared by all who read a part of it.
#[derive(Default)]
pub struct Shared {
    inner: Mutex<Inner>,
    /// The runner said `load_end`.
    loaded: AtomicBool,
}

#[derive(Default)]
struct Inner {
    now: Footprint,
    /// The peak of the sum without dma-bufs, should one of these turn out to be unreadable later.
    plain: Footprint,
    memory: Memory,
    peak_rss_kb: u64,
    hwm_kb: u64,
    /// The kernel does not split RSS for a process of the tree.
    whole: bool,
    unread: Option<Unread>,
    gpu_unread: Option<Unread>,
}

impl Inner {
    fn look_for_peak(&mut self) {
        if self.now.total_kb() > self.memory.peak.total_kb() {
            self.memory.peak = self.now;
        }
        let plain = Footprint { dmabuf_kb: None, ..self.now };
        if plain.total_kb() > self.plain.total_kb() {
            self.plain = plain;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reading of `/proc/PID/status` of the tree.
    pub fn resident(&self, t_ns: u64, resident: &Resident) {
        let mut inner = self.lock();
        inner.peak_rss_kb = inner.peak_rss_kb.max(resident.rss_kb);
        inner.hwm_kb = inner.hwm_kb.max(resident.hwm_kb);
        let Some([anon_kb, shmem_kb, file_kb]) = resident.split else {
            inner.whole |= resident.rss_kb > 0;
            return;
        };
        inner.now = Footprint { t_ns, anon_kb, shmem_kb, file_kb, swap_kb: resident.swap_kb, ..inner.now };
        inner.memory.readings += 1;
        inner.memory.file_max_kb = inner.memory.file_max_kb.max(file_kb);
        inner.memory.swap_max_kb = inner.memory.swap_max_kb.max(resident.swap_kb);
        inner.look_for_peak();
    }

    /// A reading of the tree's dma-bufs. Gives their sum if none was left out.
    fn buffers(&self, buffers: Buffers) -> Option<u64> {
        let mut inner = self.lock();
        if buffers.unread.is_some() {
            inner.unread = inner.unread.take().or(buffers.unread);
            inner.now.dmabuf_kb = None;
            return None;
        }
        let kb = buffers.bytes / 1024;
        inner.now.dmabuf_kb = Some(kb);
        inner.memory.dmabuf_max_kb = inner.memory.dmabuf_max_kb.max(Some(kb));
        inner.look_for_peak();
        Some(kb)
    }

    /// A reading of the GPU driver's figures. Gives all of it, and the part that stands in no other figure.
    fn gpu(&self, gpu: Result<Gpu, Unread>) -> Option<(u64, Option<u64>)> {
        let mut inner = self.lock();
        match gpu {
            Err(unread) => {
                inner.gpu_unread.get_or_insert(unread);
                (inner.now.gpu_kb, inner.now.gpu_apart_kb) = (None, None);
                None
            }
            Ok(gpu) => {
                inner.now.gpu_kb = Some(gpu.total_kb());
                inner.now.gpu_apart_kb = gpu.apart_kb(inner.now.shmem_kb);
                inner.memory.gpu_max_kb = inner.memory.gpu_max_kb.max(Some(gpu.total_kb()));
                inner.look_for_peak();
                Some((gpu.total_kb(), inner.now.gpu_apart_kb))
            }
        }
    }

    /// Keeps what is known now as the state at an event.
    fn point(&self, at: &str) {
        let mut inner = self.lock();
        if inner.memory.points.len() < MOST_POINTS && inner.now.t_ns > 0 {
            let now = inner.now;
            inner.memory.points.push(MemoryPoint { at: at.to_owned(), now });
        }
    }

    /// The largest sum of RSS that a reading saw, KiB; `None` if there was none.
    pub fn peak_rss_kb(&self) -> Option<u64> {
        Some(self.lock().peak_rss_kb).filter(|&kb| kb > 0)
    }

    /// The largest `VmHWM` of one process that a reading saw, KiB.
    pub fn hwm_kb(&self) -> Option<u64> {
        Some(self.lock().hwm_kb).filter(|&kb| kb > 0)
    }

    /// The evidence. What could not be read once is in no sum, and is said in the reports too: they were made before there was a process to read.
    pub fn evidence(&self, reports: &mut [SourceReport]) -> Option<Memory> {
        let inner = self.lock();
        let mut memory = inner.memory.clone();
        let words = |unread: &Unread| {
            let errno = unread.errno.map_or_else(String::new, |errno| format!(": {}", io::Error::from_raw_os_error(errno)));
            format!("{} of the program's processes can't be read{errno}", unread.what)
        };
        let mut amend = |name: &str, unread: &Unread| {
            if let Some(report) = reports.iter_mut().find(|report| report.name == name) {
                let denied =
                    unread.errno.is_some_and(|errno| io::Error::from_raw_os_error(errno).kind() == io::ErrorKind::PermissionDenied);
                report.state = if denied { SourceState::Denied } else { SourceState::Absent };
                report.errno = unread.errno;
                report.detail = Some(words(unread));
            }
        };
        if let Some(unread) = &inner.unread {
            amend("dmabuf", unread);
            memory.dmabuf_absent = Some(words(unread));
            memory.dmabuf_max_kb = None;
            memory.peak = inner.plain;
            memory.points.iter_mut().for_each(|point| point.now.dmabuf_kb = None);
        }
        if let Some(unread) = &inner.gpu_unread {
            amend("kgsl_memory", unread);
            memory.gpu_absent = Some(words(unread));
        }
        let reason = |name: &str| {
            let report = reports.iter().find(|report| report.name == name)?;
            let errno = report.errno.map_or_else(String::new, |errno| format!(": {}", io::Error::from_raw_os_error(errno)));
            (report.state != SourceState::Available).then(|| report.detail.clone().unwrap_or_else(|| format!("{name}{errno}")))
        };
        if memory.dmabuf_max_kb.is_none() && memory.dmabuf_absent.is_none() {
            memory.dmabuf_absent = reason("dmabuf");
        }
        if memory.gpu_max_kb.is_none() && memory.gpu_absent.is_none() {
            memory.gpu_absent = reason("kgsl_memory");
        }
        (memory.readings > 0 && !inner.whole).then_some(memory)
    }
}

/// What is read at ends of phases, besides what the samplers read: by the observer's thread.
#[derive(Default)]
pub struct AtPhases {
    statuses: Statuses,
}

impl AtPhases {
    /// Reads everything and keeps it as the state at these events.
    pub fn read(&mut self, processes: &Processes, events: &[&'static str]) {
        let memory = &processes.memory;
        let resident = self.statuses.read(processes);
        // Before the slow ones: what follows may be the next phase. A tree that is gone has no state.
        if resident.rss_kb > 0 {
            memory.resident(clock::monotonic_ns(), &resident);
            let pids = processes.list();
            memory.buffers(dmabuf::scan(&dmabuf::Proc(PathBuf::from("/proc")), &pids));
            if kgsl::is_here() {
                memory.gpu(kgsl::read(kgsl::ROOT.as_ref(), &pids));
            }
            for event in events {
                memory.point(event);
            }
        }
        if events.contains(&"load_end") {
            memory.loaded.store(true, Ordering::Relaxed);
        }
    }
}

/// Starts the thread that reads at 50 Hz while the program loads: from the spawn to `load_end`, or for two seconds where there are no events. A
/// load is where the peak stands (the file, its copy and the buffers at once) and lasts a second or two. It ends by itself, or with `stop`.
pub fn watch_loading(processes: Arc<Processes>, start_ns: u64, has_events: bool, stop: PipeReader, done: Sender<()>) -> io::Result<()> {
    let until = start_ns.saturating_add(if has_events { LOADING_MOST_NS } else { LOADING_WITHOUT_EVENTS_NS });
    thread::Builder::new().name("loading".to_owned()).stack_size(256 << 10).spawn(move || {
        let mut statuses = Statuses::default();
        let mut due = clock::monotonic_ns();
        while due < until && !processes.memory.loaded.load(Ordering::Relaxed) {
            let resident = statuses.read(&processes);
            if resident.processes > 0 {
                processes.memory.resident(clock::monotonic_ns(), &resident);
            }
            due = clock::monotonic_ns().max(due) + LOADING_NS;
            if !clock::wait(due, &stop) {
                break;
            }
        }
        drop(done);
    })?;
    Ok(())
}

/// The reader of dma-bufs.
struct DmaBufs {
    processes: Arc<Processes>,
}

/// Opens it; the agent's own descriptors tell whether the kernel lets them be listed.
pub fn open_dmabuf(processes: &Arc<Processes>) -> Opened {
    let me = std::process::id().cast_signed();
    match dmabuf::scan(&dmabuf::Proc(PathBuf::from("/proc")), &[me]).unread {
        None => {
            let reader = DmaBufs { processes: Arc::clone(processes) };
            Opened::available("distinct inodes of /proc/PID/fd and fdinfo, once a second and at ends of phases", vec![Box::new(reader)])
        }
        Some(unread) => Opened::missing(unread.errno.map(io::Error::from_raw_os_error).as_ref()),
    }
}

impl Reader for DmaBufs {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn sample(&mut self, rows: &mut Rows) {
        let pids = self.processes.list();
        if pids.is_empty() {
            return;
        }
        let buffers = dmabuf::scan(&dmabuf::Proc(PathBuf::from("/proc")), &pids);
        if let Some(kb) = self.processes.memory.buffers(buffers) {
            rows.push("process", "dmabuf_kb", kb, "kB");
        }
    }
}

/// The reader of the GPU driver's memory.
struct KgslMemory {
    processes: Arc<Processes>,
}

/// Opens it.
pub fn open_kgsl(processes: &Arc<Processes>) -> Opened {
    match std::fs::read_dir(kgsl::ROOT) {
        Ok(_) => Opened::available(
            "gpumem_mapped + gpumem_unmapped (older: kernel) of /sys/class/kgsl/kgsl/proc/PID",
            vec![Box::new(KgslMemory { processes: Arc::clone(processes) })],
        ),
        Err(e) => Opened::missing(Some(&e)),
    }
}

impl Reader for KgslMemory {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn sample(&mut self, rows: &mut Rows) {
        let pids = self.processes.list();
        if pids.is_empty() {
            return;
        }
        if let Some((kb, apart)) = self.processes.memory.gpu(kgsl::read(kgsl::ROOT.as_ref(), &pids)) {
            rows.push("process", "gpu_kb", kb, "kB");
            if let Some(apart) = apart {
                rows.push("process", "gpu_apart_kb", apart, "kB");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(anon: u64, shmem: u64, file: u64) -> Resident {
        Resident { rss_kb: anon + shmem + file, split: Some([anon, shmem, file]), processes: 1, ..Resident::default() }
    }

    fn buffers(kb: u64) -> Buffers {
        Buffers { bytes: kb * 1024, count: 1, unread: None }
    }

    #[test]
    fn the_peak_is_of_one_moment_and_has_no_mapped_files() {
        let shared = Shared::default();
        shared.resident(1, &split(100, 10, 5000));
        shared.buffers(buffers(50));
        // The heap shrinks before the buffers grow: 160 is the peak, not 100 + 10 + 60.
        shared.resident(2, &split(30, 10, 9000));
        shared.buffers(buffers(60));
        let memory = shared.evidence(&mut []).unwrap();
        assert_eq!((memory.peak.total_kb(), memory.peak.t_ns, memory.peak.dmabuf_kb), (160, 1, Some(50)));
        assert_eq!((memory.file_max_kb, memory.dmabuf_max_kb, shared.peak_rss_kb()), (9000, Some(60), Some(9040)));
    }

    #[test]
    fn a_refusal_takes_all_dma_bufs_out_of_the_peak_and_is_reported() {
        let shared = Shared::default();
        shared.resident(1, &split(100, 10, 0));
        shared.buffers(buffers(500));
        shared.point("load_end");
        shared.resident(2, &split(120, 10, 0));
        shared.buffers(Buffers { bytes: 0, count: 0, unread: Some(Unread { errno: Some(13), what: "/proc/PID/fdinfo" }) });
        let report =
            |name: &str| SourceReport { name: name.to_owned(), state: SourceState::Available, errno: None, detail: None, read_us: None };
        let mut reports = [report("process"), report("dmabuf")];
        let memory = shared.evidence(&mut reports).unwrap();
        assert_eq!((memory.peak.total_kb(), memory.peak.dmabuf_kb, memory.dmabuf_max_kb), (130, None, None));
        assert_eq!(memory.points[0].now.total_kb(), 110);
        assert_eq!((reports[1].state, reports[1].errno), (SourceState::Denied, Some(13)));
        assert_eq!(
            memory.dmabuf_absent.as_deref(),
            Some("/proc/PID/fdinfo of the program's processes can't be read: Permission denied (os error 13)")
        );
        assert_eq!(reports[0], report("process"));
    }

    #[test]
    fn a_kernel_that_does_not_split_gives_no_sum() {
        let shared = Shared::default();
        shared.resident(1, &Resident { rss_kb: 77, split: None, processes: 1, ..Resident::default() });
        assert_eq!((shared.evidence(&mut []), shared.peak_rss_kb()), (None, Some(77)));
        // But a process on its way out, which has no memory any more, does not count as one.
        let mut sum = Resident::default();
        let status = |anon_kb, rss_kb| Status { threads: 1, rss_kb, anon_kb, ..Status::default() };
        sum.add(&status(None, 0));
        sum.add(&status(Some(5), 5));
        sum.add(&status(None, 0));
        assert_eq!((sum.split, sum.processes), (Some([5, 0, 0]), 3));
    }
}
