//! Where telemetry comes from. A source is one entry of [`SOURCES`]: a function that looks what is there, says so, and hands out readers.
//! A reader has a pace of its own. What can't be read is reported and never sampled, above all not as 0.

mod clock;
mod cpu;
mod cpufreq;
mod gauge;
mod meminfo;
mod process;
mod rows;
mod thermal;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use rows::{HEADER, Rows};

use crate::done::{SourceReport, SourceState};

/// Looks what is there.
type Open = fn(&Arc<Processes>) -> Opened;

/// Every source, in the order of the reports.
const SOURCES: [(&str, Open); 7] = [
    ("process", process::open),
    ("pss", process::open_pss),
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
    /// Whether its values are differences of two readings, so that the first one gives none or one over an arbitrary time.
    fn is_difference(&self) -> bool {
        false
    }
}

/// The command's processes as the observer last saw them, shared with those who read them.
#[derive(Default)]
pub struct Processes {
    pids: Mutex<Vec<i32>>,
    generation: AtomicU64,
    peak_rss_kb: AtomicU64,
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

    /// The largest sum of RSS that a sample saw, KiB; `None` if there was no sample.
    pub fn peak_rss_kb(&self) -> Option<u64> {
        Some(self.peak_rss_kb.load(Ordering::Relaxed)).filter(|&kb| kb > 0)
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

/// Between the two readings of a source that gives differences, in [`sample`]: twenty of the kernel's ticks.
const BETWEEN: Duration = Duration::from_millis(200);

/// One round of every reader, as telemetry.csv with its header. Takes [`BETWEEN`] where a source needs two readings.
pub fn sample() -> Vec<u8> {
    let (_, mut readers) = open_all(&Arc::new(Processes::default()));
    let mut rows = Rows::default();
    rows.begin(crate::clock::monotonic_ns());
    let mut differences = false;
    for reader in readers.iter_mut().filter(|reader| reader.is_difference()) {
        reader.sample(&mut rows);
        differences = true;
    }
    if differences {
        std::thread::sleep(BETWEEN);
    }
    rows.begin(crate::clock::monotonic_ns());
    for reader in &mut readers {
        reader.sample(&mut rows);
    }
    [HEADER.as_bytes(), rows.text()].concat()
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
