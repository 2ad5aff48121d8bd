//! One run from the spec to `done.json`.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;
use crate::done::{Done, Ended, Reason, SourceReport};
use crate::evidence;
use crate::lanes::{self, Counts, Stuck};
use crate::observe::Observer;
use crate::outdir::{OutDir, OutDirError};
use crate::pagecache;
use crate::phase::PhaseFile;
use crate::pump::{self, Pumped};
use crate::reaper::{Exit, Reaper};
use crate::sources::{self, Processes, Reader, Service, Sources, memory};
use crate::spec::{Spec, VERSION};
use crate::telemetry::Log;
use crate::trip::{Tripped, Zones};
use crate::watcher::Watcher;

/// How long threads may take to come to their ends once the tree is gone.
const THREADS_END: Duration = Duration::from_secs(5);

/// Why there is no `done.json`.
#[derive(Debug)]
pub enum AgentError {
    /// The spec can't be read or is wrong.
    Spec(PathBuf, String),
    /// The output folder is in use by another agent.
    Busy(PathBuf),
    /// A file that must be written can't be.
    File(PathBuf, io::Error),
    /// A system call that supervision needs failed.
    System(&'static str, io::Error),
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(path, problem) => write!(f, "spec {}: {problem}", path.display()),
            Self::Busy(path) => {
                write!(f, "{}: another bench-agent works in this folder (see agent.pid); wait for it, or send it TERM", path.display())
            }
            Self::File(path, e) => write!(f, "failed to write {}: {e}", path.display()),
            Self::System(call, e) => write!(f, "failed to {call}: {e}"),
        }
    }
}

impl std::error::Error for AgentError {}

impl From<OutDirError> for AgentError {
    fn from(error: OutDirError) -> Self {
        match error {
            OutDirError::Busy(path) => Self::Busy(path),
            OutDirError::Io(path, e) => Self::File(path, e),
        }
    }
}

/// Supervises the command of the spec and writes `done.json`, whatever the command does. To be called from the main thread before there is
/// any other, since it blocks signals.
pub fn run(spec_path: &Path) -> Result<(), AgentError> {
    let wrong = |problem: String| AgentError::Spec(spec_path.to_owned(), problem);
    let text = fs::read(spec_path).map_err(|e| wrong(e.to_string()))?;
    let spec: Spec = serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))?;
    spec.check().map_err(wrong)?;
    // Before the agent is the one who gets the orphans: a watcher is not one of the command's processes.
    let watcher = if spec.rate_hz > 0.0 { Watcher::start() } else { None };
    let reaper = Reaper::new().map_err(|e| AgentError::System("become the reaper of the command's processes", e))?;
    let mut out = OutDir::claim(Path::new(&spec.out_dir))?;
    let done = supervise(&spec, reaper, watcher, &out)?;
    out.finish(done).map_err(|e| AgentError::File(out.join("done.json"), e))
}

fn supervise(spec: &Spec, mut reaper: Reaper, watcher: Option<Watcher>, out: &OutDir) -> Result<Done, AgentError> {
    let processes = Arc::new(Processes::default());
    let sampling = spec.rate_hz > 0.0;
    // Before the spawn: probing all zones of a phone takes 200 ms.
    let sources = sampling.then(|| sources::open_all(&processes, Service::Watched(watcher)));
    let Sources { reports, readers, heard } = sources.unwrap_or_default();
    // What the agent itself ran before is not the command's.
    let before = evidence::children_usage();
    let phases = spec.phase_file.as_ref().map(|path| PhaseFile::new(spec.in_cwd(path)));
    let mut done = blank(reports);
    if !reaper.is_subreaper() {
        done.notes.push("no PR_SET_CHILD_SUBREAPER here (an emulator?): a process that leaves the command's session can escape".to_owned());
    }
    // Last of all: whatever is read before may be what pushes a model out of memory.
    done.page_cache = spec.load.as_ref().map(|load| pagecache::prepare(spec, load));
    done.boottime_minus_monotonic_ns[0] = clock::suspended_ns();
    done.utc_start = clock::utc_now();
    done.start_ns = clock::monotonic_ns();
    let spawned = crate::child::spawn(spec);
    match spawned {
        Err(message) => {
            for name in ["stdout.txt", "stderr.txt"] {
                // Empty, as of any command that wrote nothing: who collects them needs no special case.
                done.write_error = done.write_error.or(fs::write(out.join(name), "").err().map(|e| format!("{name}: {e}")));
            }
            done.ended = Ended { reason: Reason::SpawnFailed, code: None, signal: None, message: Some(message) };
            done.end_ns = clock::monotonic_ns();
        }
        Ok(child) => {
            let pid = child.id().cast_signed();
            reaper.follow(pid);
            let mut errors: Vec<String> = Vec::new();
            errors.extend(out.note_child(pid).err().map(|e| format!("child.pid: {e}")));
            processes.publish(&[pid]);
            let observed = sampling.then(|| Arc::clone(&processes));
            let threads = Threads::start(spec, out, child, (readers, observed, phases), done.start_ns);
            match threads {
                Ok(mut threads) => {
                    (done.ended.reason, done.ended.message) = wait(spec, &mut reaper, done.start_ns, &threads.tripped);
                    finish(spec, &mut reaper, &mut threads, &mut done);
                    threads.collect(&mut done, &mut errors);
                }
                Err(e) => {
                    reaper.end_tree(spec.grace_ms);
                    return Err(AgentError::System("start a thread", e));
                }
            }
            done.peak_rss_kb = processes.memory.peak_rss_kb();
            done.vm_hwm_kb = done.vm_hwm_kb.max(processes.memory.hwm_kb());
            done.memory = processes.memory.evidence(&mut done.sources);
            done.write_error = (!errors.is_empty()).then(|| errors.join("; "));
        }
    }
    done.rusage = evidence::children_usage().since(&before);
    done.boottime_minus_monotonic_ns[1] = clock::suspended_ns();
    done.agent_cpu_s = evidence::own_cpu_s() + before.user_s + before.sys_s;
    if let Some(heard) = heard {
        done.watcher_cpu_s = heard.cpu_us.load(Ordering::Relaxed) as f64 / 1e6;
        done.agent_cpu_s += done.watcher_cpu_s;
        sources::heard_of(&mut done.sources, &heard);
    }
    Ok(done)
}

fn blank(sources: Vec<SourceReport>) -> Done {
    Done {
        v: VERSION,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        start_ns: 0,
        end_ns: 0,
        utc_start: String::new(),
        boot_id: evidence::boot_id(),
        boottime_minus_monotonic_ns: [0; 2],
        ended: Ended { reason: Reason::Exited, code: None, signal: None, message: None },
        rusage: evidence::children_usage(),
        peak_rss_kb: None,
        vm_hwm_kb: None,
        memory: None,
        pss: Vec::new(),
        mapped: Vec::new(),
        device_nodes: Vec::new(),
        stdout_bytes: 0,
        stderr_bytes: 0,
        truncated: false,
        samples: 0,
        overruns: 0,
        agent_cpu_s: 0.0,
        watcher_cpu_s: 0.0,
        sources,
        launch_context: evidence::launch_context(),
        page_cache: None,
        leftovers: 0,
        survivors: Vec::new(),
        notes: Vec::new(),
        write_error: None,
    }
}

/// Until there is a reason to end: the command's own exit, a cancel, the time, a zone that is too hot, a file that grew too large.
fn wait(spec: &Spec, reaper: &mut Reaper, start_ns: u64, tripped: &Tripped) -> (Reason, Option<String>) {
    /// How often watched files are looked at: at 1 GB/s they overshoot by 50 MB.
    const WATCH_NS: u64 = 50_000_000;
    let deadline = start_ns.saturating_add(spec.timeout_ms.saturating_mul(1_000_000));
    loop {
        let now = clock::monotonic_ns();
        // In this order: a command that ended in time has ended in time, also if we look late.
        if reaper.exit().is_some() {
            return (Reason::Exited, None);
        }
        if reaper.cancelled() > 0 {
            return (Reason::Cancelled, None);
        }
        if now >= deadline {
            return (Reason::Timeout, Some(format!("still running after {} ms", spec.timeout_ms)));
        }
        if let Some(words) = tripped.lock().unwrap_or_else(PoisonError::into_inner).trips(now) {
            return (Reason::ThermalTrip, Some(words));
        }
        for watch in &spec.watch {
            let length = fs::metadata(spec.in_cwd(&watch.path)).map_or(0, |m| m.len());
            if length > watch.max_bytes {
                let message = format!("{} has {length} bytes, allowed are {}", watch.path, watch.max_bytes);
                return (Reason::OutputLimit, Some(message));
            }
        }
        reaper.wait(if spec.watch.is_empty() && spec.trip.is_empty() { deadline } else { deadline.min(now + WATCH_NS) });
    }
}

/// Ends what is left of the tree and notes how the command itself ended.
fn finish(spec: &Spec, reaper: &mut Reaper, threads: &mut Threads, done: &mut Done) {
    if done.ended.reason == Reason::Exited {
        done.leftovers = reaper.living().len() as u32;
    } else {
        threads.observer.last_look();
    }
    done.survivors = reaper.end_tree(spec.grace_ms);
    done.end_ns = clock::monotonic_ns();
    if let Some(Exit { at_ns, code, signal }) = reaper.exit() {
        done.end_ns = at_ns;
        done.ended.code = code;
        done.ended.signal = signal;
        if code.is_none() && signal.is_none() {
            done.ended.message.get_or_insert_with(|| "ended by a real-time signal".to_owned());
        }
    } else {
        let text = done.ended.message.take().map_or_else(String::new, |m| m + "; ");
        done.ended.message = Some(text + "KILL did not end it: it is stuck in the kernel");
    }
}

/// Everything that runs beside the supervisor.
struct Threads {
    observer: Observer,
    table: Option<Arc<Mutex<Log>>>,
    tripped: Tripped,
    counts: Arc<Counts>,
    stuck: Stuck,
    outputs: [Receiver<Pumped>; 2],
    /// Dropped to stop them.
    stop: io::PipeWriter,
    ended: Receiver<()>,
}

/// What sampling needs: readers, the list they and the observer share, the event file.
type Inputs = (Vec<Box<dyn Reader>>, Option<Arc<Processes>>, Option<PhaseFile>);

impl Threads {
    fn start(spec: &Spec, out: &OutDir, mut child: Child, inputs: Inputs, start_ns: u64) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let (done, ended): (Sender<()>, _) = mpsc::channel();
        let (to_stdout, stdout) = mpsc::channel();
        let (to_stderr, stderr) = mpsc::channel();
        // First of all: nothing may make the child wait for us.
        if let Some(pipe) = child.stdout.take() {
            pump::start(pipe, out.join("stdout.txt"), spec.max_output_bytes, stopped.try_clone()?, to_stdout)?;
        }
        if let Some(pipe) = child.stderr.take() {
            pump::start(pipe, out.join("stderr.txt"), spec.max_output_bytes, stopped.try_clone()?, to_stderr)?;
        }
        let (readers, processes, phases) = inputs;
        let counts = Arc::new(Counts::default());
        let tripped = Zones::new(&spec.trip, spec.rate_hz, start_ns);
        let log = || Log::create(Path::new(&spec.out_dir), spec.compact_ms, spec.window_ms, start_ns);
        let table = (!readers.is_empty()).then(|| Arc::new(Mutex::new(log())));
        let stuck = match &table {
            Some(table) => lanes::start(readers, spec.rate_hz, (&spec.trip, &tripped), table, &counts, &stopped, &done)?,
            None => Stuck::default(),
        };
        if let Some(processes) = &processes {
            memory::watch_loading(Arc::clone(processes), start_ns, phases.is_some(), stopped.try_clone()?, done.clone())?;
        }
        let observer = Observer::start(start_ns, processes, phases, stopped, done)?;
        Ok(Self { observer, table, tripped, counts, stuck, outputs: [stdout, stderr], stop, ended })
    }

    /// Stops them and takes what they have. One that is stuck in a read is not waited for: it ends with the agent.
    fn collect(self, done: &mut Done, errors: &mut Vec<String>) {
        drop(self.stop);
        let until = Instant::now() + THREADS_END;
        let left = || until.saturating_duration_since(Instant::now());
        let [stdout, stderr] = self.outputs.map(|output| output.recv_timeout(left()));
        for (name, output) in [("stdout.txt", &stdout), ("stderr.txt", &stderr)] {
            match output {
                Ok(output) => errors.extend(output.error.clone()),
                Err(_) => errors.push(format!("{name}: the disk does not take it, its end is missing")),
            }
        }
        let [stdout, stderr] = [stdout, stderr].map(Result::unwrap_or_default);
        done.stdout_bytes = stdout.bytes;
        done.stderr_bytes = stderr.bytes;
        done.truncated = stdout.truncated || stderr.truncated;
        if self.ended.recv_timeout(left()) == Err(RecvTimeoutError::Timeout) {
            errors.push("a reading of the device did not come back".to_owned());
        }
        if let Some(table) = self.table {
            // Not waited for: a thread that is stuck in a write holds it.
            match table.try_lock() {
                Ok(mut table) => errors.extend(table.finish()),
                Err(_) => errors.push("telemetry.csv: the disk does not take it, its end is missing".to_owned()),
            }
        }
        for label in self.stuck.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            done.notes.push(format!("{label}: a reading of it got stuck and was left to a thread of its own"));
        }
        done.samples = self.counts.samples.load(Ordering::Relaxed);
        done.overruns = self.counts.overruns.load(Ordering::Relaxed);
        let mut seen = self.observer.seen.lock().unwrap_or_else(PoisonError::into_inner);
        done.pss = std::mem::take(&mut seen.pss);
        done.mapped = std::mem::take(&mut seen.mapped).into_iter().collect();
        done.device_nodes = std::mem::take(&mut seen.nodes).into_iter().collect();
        done.vm_hwm_kb = seen.vm_hwm_kb;
    }
}
