//! Where telemetry comes from. A source is one entry of [`SOURCES`]: a function that looks what is there, says so, and hands out readers.
//! A reader has a pace of its own. What can't be read is reported and never sampled, above all not as 0.

mod battery;
mod clock;
mod cooling;
mod cpu;
mod cpufreq;
mod dcvs;
mod devfreq;
mod disk;
mod dmabuf;
mod gauge;
mod gpu;
mod kgsl;
mod look;
mod meminfo;
pub mod memory;
mod npu;
mod power;
mod process;
mod psi;
mod rows;
mod thermal;
mod thermalservice;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use rows::{HEADER, Rows};

use crate::done::{SourceReport, SourceState};
use crate::watcher::{Heard, Watcher};
use look::Look;

/// Looks what is there.
type Open = fn(&Arc<Processes>) -> Opened;

/// Every source but Android's thermal service, which is asked in two ways, in the order of the reports.
const SOURCES: [(&str, Open); 18] = [
    ("process", process::open),
    ("pss", process::open_pss),
    ("dmabuf", memory::open_dmabuf),
    ("kgsl_memory", memory::open_kgsl),
    ("cpufreq", |_| cpufreq::open("/sys/devices/system/cpu")),
    ("thermal", |_| thermal::open("/sys/class/thermal", "/sys/class/hwmon")),
    ("cooling", |_| cooling::open("/sys/class/thermal")),
    ("gpu", |_| gpu::open("/sys/class/kgsl/kgsl-3d0")),
    ("ddr", |_| dcvs::open("/sys/devices/system/cpu/bus_dcvs")),
    ("devfreq", |_| devfreq::open("/sys/class/devfreq")),
    ("npu", |_| npu::open("/")),
    ("battery", |_| battery::open("/sys/class/power_supply")),
    ("power", |_| power::open("/sys/class/hwmon")),
    ("psi", |_| psi::open("/proc/pressure")),
    ("disk", |_| disk::open("/proc/diskstats")),
    ("meminfo", |_| meminfo::open("/proc/meminfo")),
    ("cpu", |_| cpu::open("/proc/stat")),
    ("clock", |_| clock::open()),
];

/// What opening a source gave.
pub struct Opened {
    state: SourceState,
    errno: Option<i32>,
    detail: Option<String>,
    /// Microseconds that the first readings took together.
    read_us: Option<u64>,
    readers: Vec<Box<dyn Reader>>,
}

impl Opened {
    fn available(detail: impl Into<String>, readers: Vec<Box<dyn Reader>>) -> Self {
        Self { state: SourceState::Available, errno: None, detail: Some(detail.into()), read_us: None, readers }
    }

    /// What a look found: available if there are readers. Nodes that did not answer are named.
    fn found(look: &Look, detail: impl Into<String>, readers: Vec<Box<dyn Reader>>) -> Self {
        let mut opened = if readers.is_empty() { Self::missing(look.refused.as_ref()) } else { Self::available(detail, readers) };
        opened.read_us = Some(u64::try_from(look.took.as_micros()).unwrap_or(u64::MAX));
        let silence = look.silence();
        if !silence.is_empty() {
            opened.detail = Some(opened.detail.map_or_else(|| silence.clone(), |detail| format!("{detail}; {silence}")));
        }
        opened
    }

    /// Says why, where the errno does not.
    fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Denied if the kernel refused permission, else absent: what exists but gives no value is of no use either.
    fn missing(error: Option<&io::Error>) -> Self {
        let denied = error.is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
        let state = if denied { SourceState::Denied } else { SourceState::Absent };
        Self { state, errno: error.and_then(io::Error::raw_os_error), detail: None, read_us: None, readers: Vec::new() }
    }
}

/// How often a reader is asked, and by which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At the rate of the spec: reads that take microseconds.
    Fast,
    /// Once a second at most, in a thread of its own: reads that may block, that walk much, or whose value changes slowly.
    Slow,
    /// With a period of its own (ms), and at the rate of the spec at most, in a thread that only readers of the same name and period share:
    /// reads of which it is known that they wait for something (a bus, a remote processor).
    Apart(&'static str, u32),
}

/// Something that gives rows.
pub trait Reader: Send {
    /// Decided when the source was opened, by what a read costs.
    fn pace(&self) -> Pace;
    /// Reads once. What can't be read now gives no row.
    fn sample(&mut self, rows: &mut Rows);
    /// What it reads, as a human should know it when it gets stuck.
    fn label(&self) -> String {
        "a source".to_owned()
    }
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

/// How Android's thermal service is asked.
pub enum Service {
    /// At once, by a process of the agent's own: where nothing is measured.
    Ask,
    /// By a watcher, if it was started.
    Watched(Option<Watcher>),
}

/// Every source that there is.
#[derive(Default)]
pub struct Sources {
    /// What was found.
    pub reports: Vec<SourceReport>,
    /// What can be sampled.
    pub readers: Vec<Box<dyn Reader>>,
    /// What the watcher said, for the end of the run.
    pub heard: Option<Arc<Heard>>,
}

/// Opens every source.
pub fn open_all(processes: &Arc<Processes>, service: Service) -> Sources {
    let mut readers = Vec::new();
    let mut reports = Vec::new();
    let mut add = |name: &str, open: &mut dyn FnMut() -> Opened| {
        let begun = Instant::now();
        let opened = open();
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        readers.extend(opened.readers);
        let read_us = Some(opened.read_us.unwrap_or(took));
        reports.push(SourceReport { name: name.to_owned(), state: opened.state, errno: opened.errno, detail: opened.detail, read_us });
    };
    for (name, open) in SOURCES {
        add(name, &mut || open(processes));
    }
    let mut heard = None;
    let mut service = Some(service);
    add("thermalservice", &mut || match service.take() {
        Some(Service::Watched(watcher)) => {
            let opened;
            (opened, heard) = thermalservice::listen(watcher);
            opened
        }
        _ => thermalservice::ask(),
    });
    Sources { reports, readers, heard }
}

/// Corrects the report of the thermal service by what was heard of it in the run.
pub fn heard_of(reports: &mut [SourceReport], heard: &Heard) {
    heard.dismiss();
    let trouble = heard.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(report) = reports.iter_mut().find(|report| report.name == "thermalservice") else { return };
    if let Some(trouble) = trouble
        && heard.answers.load(Ordering::Relaxed) == 0
    {
        report.state = thermalservice::state_of(&trouble);
        report.detail = Some(trouble);
    }
}

/// Looks which sources this device has and this user may read.
pub fn probe() -> Vec<SourceReport> {
    open_all(&Arc::new(Processes::default()), Service::Ask).reports
}

/// Between the two readings of a source that gives differences, in [`sample`]: twenty of the kernel's ticks.
const BETWEEN: Duration = Duration::from_millis(200);

/// How long one reader may take in [`sample`].
const PATIENCE: Duration = Duration::from_millis(2500);

/// One round of every reader, as telemetry.csv with its header. Takes 200 ms more where a source needs two readings. A reader that does not
/// come back gives no rows and is named on standard error.
pub fn sample() -> Vec<u8> {
    let mut readers = open_all(&Arc::new(Processes::default()), Service::Ask).readers;
    let (differences, others): (Vec<_>, Vec<_>) = readers.drain(..).partition(|reader| reader.is_difference());
    let mut text = HEADER.as_bytes().to_vec();
    let again: Vec<_> = differences.into_iter().filter_map(|reader| round(reader, &mut Vec::new())).collect();
    if !again.is_empty() {
        std::thread::sleep(BETWEEN);
    }
    for reader in again.into_iter().chain(others) {
        round(reader, &mut text);
    }
    text
}

/// Has a reader read once; it is given back if it came back.
fn round(mut reader: Box<dyn Reader>, text: &mut Vec<u8>) -> Option<Box<dyn Reader>> {
    let label = reader.label();
    let done = look::within(PATIENCE, move || {
        let mut rows = Rows::default();
        rows.begin(crate::clock::monotonic_ns());
        reader.sample(&mut rows);
        (reader, rows)
    });
    if let Ok((reader, rows)) = done {
        text.extend_from_slice(rows.text());
        return Some(reader);
    }
    eprintln!("bench-agent: {label} does not answer");
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::ops::Deref;
    use std::path::{Path, PathBuf};

    use super::*;

    /// A folder in the place of sysfs, which goes away with it.
    pub struct Root(PathBuf);

    impl Root {
        pub fn path(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Deref for Root {
        type Target = Path;
        fn deref(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    pub fn tree(name: &str, files: &[(&str, &str)]) -> Root {
        let root = Root(std::env::temp_dir().join(format!("bench-agent-{name}-{}", std::process::id())));
        let _ = fs::remove_dir_all(&root.0);
        fs::create_dir_all(&root.0).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// One round at 1 ns.
    pub fn rows_of(opened: &mut Opened) -> String {
        let mut rows = Rows::default();
        rows.begin(1);
        opened.readers.iter_mut().for_each(|reader| reader.sample(&mut rows));
        String::from_utf8_lossy(rows.text()).into_owned()
    }

    #[test]
    fn every_source_is_listed_and_sampled_only_where_available() {
        let reports = probe();
        assert_eq!(reports.len(), SOURCES.len() + 1);
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
