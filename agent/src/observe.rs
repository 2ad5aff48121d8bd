//! The observer: one thread that knows the tree and looks into its processes. It publishes the tree for sampling, reads maps and open
//! files rarely, and PSS at ends of phases. A thread of its own, since such reads wait for the observed process's memory lock: a process
//! that is stuck in a driver must not keep the supervisor from ending it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::done::PssSample;
use crate::phase::PhaseFile;
use crate::procfs;
use crate::sources::{Processes, memory::AtPhases};
use crate::tree::{Method, Tree};

const MS: u64 = 1_000_000;
/// When maps and files are read, ms after the spawn. Early ones, since there are programs that take 10 ms; and in the first second
/// never far apart, since a short benchmark may have its libraries for a fifth of one.
const LOOKS_MS: [u64; 16] = [1, 5, 25, 100, 200, 300, 400, 550, 700, 850, 1000, 1500, 2000, 3000, 4000, 5000];
/// And from then on.
const LATER_LOOK_NS: u64 = 10_000 * MS;
/// How often the tree is walked. A scan of a whole phone costs more.
const WALK_NS: u64 = 250 * MS;
const SCAN_NS: u64 = 1000 * MS;
/// How often a phase file that doesn't exist yet, or that has no inotify, is looked at.
const PHASE_NS: u64 = 50 * MS;
/// Bounds on evidence, whatever the command does.
const MOST_NAMES: usize = 4096;
const MOST_PSS: usize = 4096;

/// What was seen so far.
#[derive(Default)]
pub struct Seen {
    /// Libraries and executables.
    pub mapped: BTreeSet<String>,
    /// Device nodes.
    pub nodes: BTreeSet<String>,
    /// PSS at ends of phases.
    pub pss: Vec<PssSample>,
    /// The largest `VmHWM` of one process, KiB.
    pub vm_hwm_kb: Option<u64>,
}

/// The handle of the thread.
pub struct Observer {
    /// What it saw.
    pub seen: Arc<Mutex<Seen>>,
    look: PipeWriter,
    looked: Receiver<()>,
}

impl Observer {
    /// Starts the thread. It ends when the writer of `stop` is gone and then drops `done`.
    pub fn start(
        start_ns: u64,
        processes: Option<Arc<Processes>>,
        phases: Option<PhaseFile>,
        stop: PipeReader,
        done: Sender<()>,
    ) -> io::Result<Self> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (look_now, look) = io::pipe()?;
        let (answer, looked) = mpsc::channel();
        let me = Watching {
            tree: Tree::below(std::process::id().cast_signed()),
            processes,
            phases,
            at_phases: AtPhases::default(),
            seen: Arc::clone(&seen),
            buffer: Vec::new(),
        };
        thread::Builder::new().name("observer".to_owned()).stack_size(256 << 10).spawn(move || {
            me.run(start_ns, &stop, look_now, &answer);
            drop(done);
        })?;
        Ok(Self { seen, look, looked })
    }

    /// A last look before the command is ended, if the thread manages it soon.
    pub fn last_look(&mut self) {
        if self.look.write_all(b"x").is_ok() {
            let _ = self.looked.recv_timeout(Duration::from_millis(300));
        }
    }
}

struct Watching {
    tree: Tree,
    processes: Option<Arc<Processes>>,
    phases: Option<PhaseFile>,
    at_phases: AtPhases,
    seen: Arc<Mutex<Seen>>,
    buffer: Vec<u8>,
}

impl Watching {
    fn run(mut self, start_ns: u64, stop: &PipeReader, mut look_now: PipeReader, answer: &Sender<()>) {
        let mut looks = LOOKS_MS.into_iter().map(|ms| start_ns + ms * MS);
        let mut look = looks.next().unwrap_or(u64::MAX);
        let mut walk = start_ns;
        let mut early_walks = 0..8;
        loop {
            let now = clock::monotonic_ns();
            if now >= look {
                self.look();
                look = looks.find(|&due| due > now).unwrap_or(now + LATER_LOOK_NS);
            }
            if now >= walk
                && let Some(processes) = &self.processes
            {
                let pids = self.tree.descendants();
                processes.publish(&pids);
                self.high_water(&pids);
                let quick = self.tree.method() == Method::Children || early_walks.next().is_some();
                walk = now + if quick { WALK_NS } else { SCAN_NS };
            }
            let ends = self.phases.as_mut().map_or_else(Vec::new, PhaseFile::poll);
            if !ends.is_empty() {
                self.end_of_phase(&ends);
            }
            let mut due = if self.processes.is_some() { walk.min(look) } else { look };
            let inotify = self.phases.as_ref().map(|phases| phases.inotify.as_ref());
            if let Some(None) = inotify {
                due = due.min(now + PHASE_NS);
            }
            let written = match inotify {
                Some(Some(inotify)) => clock::wait_for(due, stop, &[&look_now, inotify]),
                _ => clock::wait_for(due, stop, &[&look_now]),
            };
            match written {
                clock::Woken::Stop => return,
                clock::Woken::Time => {}
                clock::Woken::By(0) => {
                    let _ = look_now.read(&mut [0; 8]);
                    self.look();
                    let _ = answer.send(());
                }
                // A token a line: two hundred looks a second are enough. The first line after a pause is seen at once.
                clock::Woken::By(_) => {
                    if !self.drained_after(5 * MS, stop) {
                        return;
                    }
                }
            }
        }
    }

    /// Handles what woke us, then lets lines gather for a while.
    fn drained_after(&mut self, pause_ns: u64, stop: &PipeReader) -> bool {
        let ends = self.phases.as_mut().map_or_else(Vec::new, PhaseFile::poll);
        if !ends.is_empty() {
            self.end_of_phase(&ends);
        }
        clock::wait(clock::monotonic_ns() + pause_ns, stop)
    }

    fn end_of_phase(&mut self, ends: &[&'static str]) {
        let pids = self.tree.descendants();
        if let Some(processes) = &self.processes {
            processes.publish(&pids);
            // First: it takes microseconds, and PSS milliseconds in which the program goes on.
            self.at_phases.read(processes, ends);
        }
        let t_ns = clock::monotonic_ns();
        let kb: Option<u64> = pids
            .iter()
            .filter_map(|&pid| self.read(pid, "smaps_rollup").and_then(|text| procfs::field_kb(text, "Pss")))
            .reduce(|a, b| a + b);
        let took_us = (clock::monotonic_ns() - t_ns) / 1000;
        if let Some(kb) = kb {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            // Ends that came together share one reading.
            for at in ends {
                if seen.pss.len() < MOST_PSS {
                    seen.pss.push(PssSample { t_ns, at: (*at).to_owned(), kb, took_us });
                }
            }
        }
        self.look();
    }

    fn look(&mut self) {
        let pids = self.tree.descendants();
        if let Some(processes) = &self.processes {
            // Looks come early: the readers know a program's own children sooner by them.
            processes.publish(&pids);
        }
        for &pid in &pids {
            let mapped = mapped(pid);
            let nodes = device_nodes(pid);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = &mut *seen;
            for (names, into) in [(mapped, &mut seen.mapped), (nodes, &mut seen.nodes)] {
                let room = MOST_NAMES.saturating_sub(into.len());
                into.extend(names.into_iter().take(room));
            }
        }
        self.high_water(&pids);
    }

    fn high_water(&mut self, pids: &[i32]) {
        let largest = pids.iter().filter_map(|&pid| self.read(pid, "status").and_then(|text| procfs::field_kb(text, "VmHWM"))).max();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.vm_hwm_kb = seen.vm_hwm_kb.max(largest);
    }

    fn read(&mut self, pid: i32, file: &str) -> Option<&[u8]> {
        self.buffer.clear();
        File::open(format!("/proc/{pid}/{file}")).ok()?.read_to_end(&mut self.buffer).ok()?;
        Some(&self.buffer)
    }
}

/// The executable of a process and the libraries mapped executable in it. For a program under qemu-user: every mapped library, since the
/// emulator translates and never maps its guest's code executable.
fn mapped(pid: i32) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Ok(exe) = fs::read_link(format!("/proc/{pid}/exe")) else { return names };
    // Before its exec the child is still a copy of the agent.
    if fs::read_link("/proc/self/exe").is_ok_and(|own| own == exe) {
        return names;
    }
    let emulated = exe.file_name().is_some_and(|name| name.as_bytes().starts_with(b"qemu-"));
    names.insert(text(exe.as_os_str().as_bytes()));
    let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { return names };
    let mut maps = BufReader::with_capacity(64 << 10, maps);
    let mut line = Vec::new();
    while maps.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        if let Some(mapping) = procfs::parse_mapping(line.trim_ascii_end())
            && (mapping.executable || emulated)
            && procfs::is_library(mapping.path)
        {
            names.insert(text(mapping.path));
        }
        line.clear();
    }
    names
}

fn device_nodes(pid: i32) -> BTreeSet<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter(|target| procfs::is_device_node(target.as_os_str().as_bytes()))
        .map(|target| text(target.as_os_str().as_bytes()))
        .collect()
}

fn text(path: &[u8]) -> String {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    String::from_utf8_lossy(path).into_owned()
}
