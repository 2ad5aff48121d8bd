//! Where telemetry comes from. A source is one entry of [`SOURCES`]: a function that looks what is there, says so, and hands out readers.
//! A reader has a pace of its own. What can't be read is reported and never sampled, above all not as 0.

mod clock;
mod cpu;
mod cpufreq;
mod dmabuf;
mod gauge;
mod kgsl;
mod meminfo;
pub mod memory;
mod process;
mod rows;
mod thermal;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use rows::{HEADER, Rows};

use crate::done::{SourceReport, SourceState};

/// Looks what is there.
type Open = fn(&Arc<Processes>) -> Opened;

/// Every source, in the order of the reports.
const SOURCES: [(&str, Open); 9] = [
    ("process", process::open),
    ("pss", process::open_pss),
    ("dmabuf", memory::open_dmabuf),
    ("kgsl_memory", memory::open_kgsl),
    ("cpufreq", |_| cpufreq::open("/sys/devices/system/cpu")),
    ("thermal", |_| thermal::open("/sys/class/thermal", "/sys/class/hwmon")),
    ("meminfo", |_| meminfo::open("/proc/meminfo")),
    ("cpu", |_| cpu::open("/proc/stat")),
    ("clock", |_| clock::open()),
];

/// What opening a source gave.
pub struct Opened {
    state: SourceState,
    errno: Option<i32>,
    detail: Option<String>,
    readers: Vec<Box<dyn Reader>>,
}

impl Opened {
    fn available(detail: impl Into<String>, readers: Vec<Box<dyn Reader>>) -> Self {
        Self { state: SourceState::Available, errno: None, detail: Some(detail.into()), readers }
    }

    /// Denied if the kernel refused permission, else absent: what exists but gives no value is of no use either.
    fn missing(error: Option<&io::Error>) -> Self {
        let denied = error.is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
        let state = if denied { SourceState::Denied } else { SourceState::Absent };
        Self { state, errno: error.and_then(io::Error::raw_os_error), detail: None, readers: Vec::new() }
    }
}

/// How often a reader is asked, and by which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At the rate of the spec: reads that take microseconds.
    Fast,
    /// Once a second at most, in a thread of its own: reads that may block, that walk much, or whose value changes slowly.
    Slow,
}

/// Something that gives rows.
pub trait Reader: Send {
    /// Decided when the source was opened, by what a read costs.
    fn pace(&self) -> Pace;
    /// Reads once. What can't be read now gives no row.
    fn sample(&mut self, rows: &mut Rows);
}

/// The command's processes as the observer last saw them, shared with those who read them.
#[derive(Default)]
pub struct Processes {
    pids: Mutex<Vec<i32>>,
    generation: AtomicU64,
    /// Their memory as its readers last saw it.
    pub memory: memory::Shared,
}

impl Processes {
    /// Replaces the list; readers notice by the generation.
    pub fn publish(&self, pids: &[i32]) {
        let mut mine = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
        if *mine != pids {
            pids.clone_into(&mut mine);
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// The list, if it changed since `seen`, which becomes the present generation.
    fn changed(&self, seen: &mut u64) -> Option<Vec<i32>> {
        let now = self.generation.load(Ordering::Acquire);
        (now != *seen).then(|| {
            *seen = now;
            self.pids.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }

    /// The list.
    fn list(&self) -> Vec<i32> {
        self.pids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Opens every source.
pub fn open_all(processes: &Arc<Processes>) -> (Vec<SourceReport>, Vec<Box<dyn Reader>>) {
    let mut readers = Vec::new();
    let reports = SOURCES
        .iter()
        .map(|(name, open)| {
            let opened = open(processes);
            readers.extend(opened.readers);
            SourceReport { name: (*name).to_owned(), state: opened.state, errno: opened.errno, detail: opened.detail }
        })
        .collect();
    (reports, readers)
}

/// Looks which sources this device has and this user may read.
pub fn probe() -> Vec<SourceReport> {
    open_all(&Arc::new(Processes::default())).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_listed_and_sampled_only_where_available() {
        let (reports, _) = open_all(&Arc::new(Processes::default()));
        assert_eq!(reports.len(), SOURCES.len());
        assert_eq!(reports[0].state, SourceState::Available, "{:?}", reports[0]);
    }

    #[test]
    fn denied_and_absent_are_told_apart() {
        let denied = Opened::missing(Some(&io::Error::from_raw_os_error(13)));
        assert_eq!((denied.state, denied.errno), (SourceState::Denied, Some(13)));
        let absent = Opened::missing(Some(&io::Error::from_raw_os_error(2)));
        assert_eq!((absent.state, absent.errno), (SourceState::Absent, Some(2)));
        assert_eq!(Opened::missing(None).state, SourceState::Absent);
    }

    #[test]
    fn a_list_is_handed_out_once() {
        let processes = Processes::default();
        let mut seen = 0;
        assert_eq!(processes.changed(&mut seen), None);
        processes.publish(&[1, 2]);
        assert_eq!(processes.changed(&mut seen), Some(vec![1, 2]));
        processes.publish(&[1, 2]);
        assert_eq!(processes.changed(&mut seen), None);
    }
}
