//! One launch: stage, run every step under the agent, fetch, parse, verify, record.

mod adopt;
mod judge;
mod shared;
mod stage;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bench_agent::spec::{Load, Make, Spec};
use bench_backend_api::{Backend, Captured, Cell, Check, Ended, Expected, Failure, FailureKind, Launch, Parsed, Pass, Paths};
use thiserror::Error;

use self::{judge::judge, stage::stage};
use super::{
    capture::{self, EVENTS, EVENTS_LIMIT, OUTPUT_LIMIT},
    events::Status,
    loading::load_missed,
    logs::{self, Window},
    originals::Originals,
    power::{self, Cable},
    settle,
    soak::{self, Asked},
};
use crate::{
    device::{Cancel, Device, DeviceError},
    results::{
        folder::FolderError,
        launches::{Record, Staged, StepRecord},
        schema::FORMAT_VERSION,
        start::Start,
    },
    scenario::SOAK_EVENTS_LIMIT,
};

pub use adopt::adopt;

/// What ends a run, as opposed to a launch.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The run folder can't be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The disk of the device is full.
    #[error("the disk is full: {0}")]
    DiskFull(DeviceError),
}

/// A cell that shares a launch.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// What its queries should produce.
    pub expected: &'a Expected,
}

/// Everything that one launch needs to know.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The adapter.
    pub backend: &'a dyn Backend,
    /// The contract's view of the launch.
    pub launch: Launch<'a>,
    /// What it should produce.
    pub expected: &'a Expected,
    /// The cells that share it: their queries follow, in this order. `launch` has the prompts of all.
    pub others: &'a [Member<'a>],
    /// Host path of each of the artifact's files.
    pub artifact_paths: &'a BTreeMap<String, PathBuf>,
    /// Number within the cell and pass.
    pub number: u32,
    /// Block.
    pub block: u32,
    /// Segment of the run.
    pub segment: u32,
    /// Longest time of all steps together.
    pub timeout: Duration,
    /// Rate of the agent's fast sources.
    pub rate_hz: f64,
    /// What is done to the page cache before it starts.
    pub load: Make,
    /// What is known of its start before it starts.
    pub start: &'a Start,
    /// Android's task profile for the measured programs.
    pub task_profile: Option<&'a str>,
    /// How long its runner does nothing before the first query; zero for most.
    pub idle: Duration,
    /// It goes on for long.
    pub soak: Option<&'a Asked<'a>>,
    /// The cable, where it is taken away while a step runs.
    pub cable: Option<Cable<'a>>,
}

/// How long each step of a launch took, by name.
pub type StepTimes = BTreeMap<String, Duration>;

/// How long the steps of a launch took, for the next launch of the cell: without the time in which it was asked to do nothing.
pub fn step_times(record: &Record) -> StepTimes {
    let idle = record.parsed.idle_ns.map_or(0, |(from, to)| to.saturating_sub(from));
    let took = |s: &StepRecord| {
        s.done.as_ref().map(|d| (s.name.clone(), Duration::from_nanos(d.end_ns.saturating_sub(d.start_ns).saturating_sub(idle))))
    };
    record.steps.iter().filter_map(took).collect()
}

/// A launch that was recorded.
#[derive(Debug)]
pub struct Launched {
    /// What is kept of it.
    pub record: Record,
    /// The same of the cells that shared it, in their order.
    pub others: Vec<Record>,
    /// The device went away and did not come back while it was waited for: no other launch can follow.
    pub lost: bool,
}

impl Launched {
    /// The records of all its cells.
    pub fn all(&self) -> impl Iterator<Item = &Record> {
        std::iter::once(&self.record).chain(&self.others)
    }

    /// Why nothing counts of a launch that cells shared: it failed as a whole, and not by its surroundings. Nobody can tell which of them is to blame, and nothing
    /// is kept: each is to be launched alone.
    pub fn broke(&self) -> Option<&Failure> {
        let whole = !self.others.is_empty() && self.record.checks.is_none();
        self.record.failure.as_ref().filter(|failure| whole && !failure.kind.is_surroundings())
    }
}

/// Runs one launch. `None` when it was cancelled: nothing is recorded and a resume repeats it.
pub async fn run<D: Device>(
    device: &D,
    request: &Request<'_>,
    dir: &Path,
    work_name: &str,
    cancel: Cancel,
) -> Result<Option<Launched>, LaunchError> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(FolderError::io(dir))?;
    }
    fs::create_dir_all(dir).map_err(FolderError::io(dir))?;
    let (mut steps, mut staged, mut kept) = (Vec::new(), Staged::default(), None);
    let trips = device.round_trips();
    let (result, log) = execute(device, request, dir, work_name, &cancel, (&mut steps, &mut staged, &mut kept)).await;
    let recorded = record(device, request, dir, &cancel, Ran { result, log, steps, staged, trips })?;
    if let Some(work) = kept {
        device.remove(&work).await;
    }
    Ok(recorded)
}

/// What came of the steps of a launch.
struct Ran {
    result: Result<Option<Left>, Problem>,
    log: Result<Option<String>, DeviceError>,
    steps: Vec<StepRecord>,
    staged: Staged,
    /// Requests to the device before it.
    trips: u64,
}

/// Judges what a launch left, and keeps it.
fn record<D: Device>(device: &D, request: &Request<'_>, dir: &Path, cancel: &Cancel, ran: Ran) -> Result<Option<Launched>, LaunchError> {
    let Ran { result, log, steps, staged, trips } = ran;
    // Words of bench itself: what a backend knows of its tool's words does not fit them.
    let (mut lost, mut own) = (false, false);
    let mut captured = None;
    let (parsed, checks, failure) = match result {
        Ok(Some(left)) => {
            let (mut parsed, checks, failure) = judge(request, &left.captured);
            parsed.warnings.extend(left.excused);
            captured = Some(left.captured);
            (parsed, checks, left.broken.or(failure))
        }
        Ok(None) => return Ok(None),
        Err(Problem::Launch(failure)) => (Parsed::default(), None, Some(failure)),
        // Nobody waited for the device any more: it is not known to be lost.
        Err(Problem::Device(e)) if e.is_lost() && *cancel.borrow() => return Ok(None),
        Err(Problem::Device(e)) if e.disk_full() => return Err(LaunchError::DiskFull(e)),
        Err(Problem::Device(e)) => {
            (lost, own) = (e.is_lost(), true);
            let kind = if e.is_device() { FailureKind::Device } else { FailureKind::Infra };
            (Parsed::default(), None, Some(Failure::new(kind, e.to_string())))
        }
    };
    let mut parsed = parsed;
    parsed.warnings.extend(odd(&steps));
    let lmkd_kills = log.as_ref().ok().and_then(|text| logs::lmkd_kills(text.as_deref()?, request.backend.knowledge()));
    let findings = match log {
        Ok(text) => text.map_or_else(Vec::new, |text| logged(&text, request, dir, &steps, &mut parsed.warnings)),
        Err(e) => {
            parsed.warnings.push(e.to_string());
            Vec::new()
        }
    };
    parsed.warnings.extend(logs::remarks(&findings));
    let ended = steps.last().and_then(|s| s.done.as_ref()).map(capture::ended).unwrap_or_default();
    let explained = |failure: Failure| {
        let mut f = on_a_full_disk(logs::attribute(failure, &ended, &findings), &steps);
        f.hint = if own { f.hint } else { request.backend.explain(&f, &request.launch).or(f.hint) };
        f
    };
    let failure = failure.map(explained);
    let mut parts = Vec::new();
    if !request.others.is_empty() {
        parts = shared::parts(request, &parsed, captured.as_ref(), failure.as_ref(), ran_ns(&steps));
        for part in parts.iter_mut().filter(|_| failure.is_none()) {
            part.failure = part.failure.take().map(explained);
        }
    }
    let start = began(request, dir, &steps);
    let soaked = request.soak.and_then(|asked| {
        let early = failure.as_ref().filter(|f| f.kind != FailureKind::Verify).map(|f| f.message.clone());
        let figures = soak::figures(asked, request.launch.cell, request.expected, &parsed, dir, early);
        // Hours of queries: events.jsonl has them.
        parsed.queries.clear();
        parsed.phases.retain(|span| span.query.is_none());
        figures
    });
    let record = Record {
        format_version: FORMAT_VERSION,
        cell: request.launch.cell.id(),
        pass: request.launch.pass,
        launch: request.number,
        block: request.block,
        segment: request.segment,
        status: status(failure.as_ref()),
        failure,
        checks,
        parsed,
        steps,
        staged,
        lmkd_kills,
        round_trips: device.round_trips() - trips,
        start,
        shared: None,
        soak: soaked,
    };
    let mut others = shared::records(request, &record, parts);
    let record = if others.is_empty() { record } else { others.remove(0) };
    let launched = Launched { record, others, lost };
    if !(lost && request.soak.is_some()) && launched.broke().is_none() {
        launched.record.save(dir)?;
    }
    Ok(Some(launched))
}

/// From the start of the first step to the end of the last, `CLOCK_MONOTONIC` ns.
fn ran_ns(steps: &[StepRecord]) -> (u64, u64) {
    let done = || steps.iter().filter_map(|step| step.done.as_ref());
    (done().map(|d| d.start_ns).min().unwrap_or(0), done().map(|d| d.end_ns).max().unwrap_or(0))
}

/// How a launch counts that ended so.
fn status(failure: Option<&Failure>) -> Status {
    match failure {
        None => Status::Ok,
        Some(f) if f.kind == FailureKind::Verify => Status::Unverified,
        Some(_) => Status::Failed,
    }
}

/// How the launch began: what was seen before its block, and its own first readings.
fn began(request: &Request<'_>, dir: &Path, steps: &[StepRecord]) -> Start {
    let first = match steps {
        [first, _, ..] => dir.join(&first.name),
        _ => dir.to_path_buf(),
    };
    let soc = request.launch.device.soc.as_deref().unwrap_or_default();
    let state = settle::at_start(&first.join("telemetry.csv"), soc);
    let before = request.start.clone();
    Start {
        domains: state.domains,
        battery_pct: state.battery_pct.or(before.battery_pct),
        charging: state.charging.or(before.charging),
        ..before
    }
}

/// What the device's own log says about the launch; the log is kept beside it.
fn logged(text: &str, request: &Request<'_>, dir: &Path, steps: &[StepRecord], warnings: &mut Vec<String>) -> Vec<logs::Finding> {
    let _ = fs::write(dir.join(logs::FILE), text);
    let Some(last) = steps.last() else { return Vec::new() };
    let out = if steps.len() == 1 { dir.to_path_buf() } else { dir.join(&last.name) };
    let pids: Vec<i32> =
        fs::read_to_string(out.join("child.pid")).ok().and_then(|text| text.split_whitespace().next()?.parse().ok()).into_iter().collect();
    let program = capture::program(&last.argv).rsplit('/').next().unwrap_or_default();
    let window_ns = last.done.as_ref().map(|done| (done.start_ns, done.end_ns));
    let jump = started(steps).and_then(|start| logs::jump(text, start));
    if let Some(seconds) = jump {
        warnings.push(format!(
            "the device's clock was set by {seconds} s during the launch: which lines of its log are of this launch can't be told; {} has them, and only \
             the kernel's were read",
            logs::FILE
        ));
    }
    logs::read(text, request.backend.knowledge(), logs::Launched { pids: &pids, program, window_ns, jumped: jump.is_some() })
}

/// When the launch's first command was started.
fn started(steps: &[StepRecord]) -> Option<logs::Start> {
    steps.iter().find_map(|step| logs::Start::of(step.done.as_ref()?))
}

/// A program that fails while the agent finds no room for its evidence had none either: it is not to blame, and a resume tries it again.
fn on_a_full_disk(failure: Failure, steps: &[StepRecord]) -> Failure {
    let errors = steps.iter().filter_map(|s| s.done.as_ref()?.write_error.as_deref());
    match errors.into_iter().find(|e| e.contains("No space left on device")) {
        Some(words) => {
            let message = format!("the disk was full during the launch ({words}): {}", failure.message);
            let hint = "free some space (`bench devices clean` on a phone or board), then `bench run --resume`".to_owned();
            Failure { kind: FailureKind::Infra, message, hint: Some(hint) }
        }
        None => failure,
    }
}

/// What the agent saw that does not make a launch fail, and that a reader of its numbers should know.
fn odd(steps: &[StepRecord]) -> Vec<String> {
    let mut words = Vec::new();
    for done in steps.iter().filter_map(|s| s.done.as_ref()) {
        if done.leftovers > 0 {
            words.push(format!("{} processes were left running when the command ended, and were ended", done.leftovers));
        }
        if !done.survivors.is_empty() {
            words.push(format!("KILL did not end the processes {:?}", done.survivors));
        }
        if done.truncated {
            words.push("the middle of the output was not kept: there was too much of it".to_owned());
        }
        words.extend(done.notes.iter().cloned());
        words.extend(load_missed(done));
        words.extend(done.write_error.iter().map(|e| format!("evidence is missing: {e}")));
    }
    words
}

/// What the steps of a launch left.
#[derive(Default)]
struct Left {
    captured: Captured,
    /// What a reader of the numbers should know, in words: steps that ended badly and count all the same, outputs that were cut.
    excused: Vec<String>,
    /// Why the agent's own evidence is missing, of a soak of which the rest counts.
    broken: Option<Failure>,
}

/// What to do about a changed file.
const WROTE: &str = "the file in its work folder is a link to this one: put it back, and give a program that writes into its model a copy";

enum Problem {
    Launch(Failure),
    Device(DeviceError),
}
impl From<DeviceError> for Problem {
    fn from(e: DeviceError) -> Self {
        Self::Device(e)
    }
}

async fn execute<D: Device>(
    device: &D,
    request: &Request<'_>,
    dir: &Path,
    work_name: &str,
    cancel: &Cancel,
    (records, staged, kept): (&mut Vec<StepRecord>, &mut Staged, &mut Option<String>),
) -> (Result<Option<Left>, Problem>, Result<Option<String>, DeviceError>) {
    let begun = Instant::now();
    let work = match device.work_folder(work_name).await {
        Ok(work) => work,
        Err(e) => return (Err(e.into()), Ok(None)),
    };
    let result = self::steps(device, request, dir, &work, cancel, (&mut *records, staged)).await;
    let lost = matches!(&result, Err(Problem::Device(e)) if e.is_lost());
    // It has run, and there is no room for what it left.
    let no_room = matches!(&result, Err(Problem::Device(e)) if e.disk_full()) && records.last().is_some_and(|step| step.done.is_some());
    if (lost || no_room) && request.soak.is_some() {
        // What a soak has done until then stays on the device, for the resume that adopts it.
        return (result, Ok(None));
    }
    if request.soak.is_some() && matches!(result, Ok(Some(_))) {
        // Until a soak is recorded a resume can adopt it: what was written in hours takes a while to be read.
        *kept = Some(work);
        let window = Window { seconds: begun.elapsed().as_secs() + 2, start: started(records) };
        let log = if *cancel.borrow() { Ok(None) } else { device.log(&window).await };
        return (result, log);
    }
    if lost || *cancel.borrow() {
        device.remove(&work).await;
        return (result, Ok(None));
    }
    let window = Window { seconds: begun.elapsed().as_secs() + 2, start: started(records) };
    let ((), log) = tokio::join!(device.remove(&work), device.log(&window));
    (result, log)
}

async fn steps<D: Device>(
    device: &D,
    request: &Request<'_>,
    dir: &Path,
    work: &str,
    cancel: &Cancel,
    (records, staged): (&mut Vec<StepRecord>, &mut Staged),
) -> Result<Option<Left>, Problem> {
    let paths = Paths { work: work.to_owned(), events: EVENTS.to_owned() };
    let all = request.backend.steps(&request.launch, &paths);
    let originals = Originals::of(request.artifact_paths.values());
    let model = stage(device, request, dir, work, &all, staged).await?;
    let single = all.len() == 1;
    let mut left = Left::default();
    // By the device's clock: this machine's goes on while bench is stopped, and stands still while it sleeps.
    let mut spent = Duration::ZERO;
    for step in all {
        let out = if single { dir.to_path_buf() } else { dir.join(&step.name) };
        let argv = capture::argv(&step.invocation, request.launch.installed, work);
        let argv = request.task_profile.map_or(argv.clone(), |profile| capture::profiled(profile, request.launch.device, argv));
        let spec = capture::spec(
            argv.clone(),
            &step.invocation,
            request.launch.device,
            (work, &out),
            remaining(request.timeout, spent),
            request.rate_hz,
        );
        let spec = match request.soak {
            Some(asked) => {
                let mut spec = spec;
                soak::lengthen(&mut spec, asked);
                spec
            }
            None => spec,
        };
        let load = (!model.is_empty()).then(|| Load { files: model.clone(), make: request.load });
        let spec = Spec { load, ..spec };
        let done = power::run(device, &spec, &step.name, cancel.clone(), request.cable).await;
        records.push(StepRecord { name: step.name.clone(), argv, done: done.as_ref().ok().cloned() });
        // First of all: an agent that is told to stop before it is up leaves no evidence, and nobody failed.
        if *cancel.borrow() && (request.soak.is_none() || done.is_err()) {
            return Ok(None);
        }
        let mut files = vec![EVENTS.to_owned()];
        files.extend(step.invocation.outputs.iter().cloned());
        let done = match done {
            Ok(done) => done,
            // An agent that was ended from outside, a device that was restarted: what is there of a soak counts.
            Err(e) if request.soak.is_some() && !e.is_lost() && !e.disk_full() => {
                device.rescue(work, &out).await?;
                fetched(device, request, work, &out, &files).await?;
                left.captured = capture::unended(&out, &files);
                let kind = if e.is_device() { FailureKind::Device } else { FailureKind::Infra };
                left.broken = Some(Failure::new(kind, e.to_string()));
                return Ok(Some(left));
            }
            Err(e) => return Err(e.into()),
        };
        spent += Duration::from_nanos(done.end_ns.saturating_sub(done.start_ns));
        if request.task_profile.is_some() {
            left.excused.extend(profile_refused(device, work, &out).await?);
        }
        fetched(device, request, work, &out, &files).await?;
        left.excused.extend(capture::cut(&out, &files));
        let mut captured = capture::captured(&out, &files, &done);
        if captured.ended.code != Some(0)
            && let Some(why) = request.backend.excuse(&step.name, &captured)
        {
            // The agent's evidence of the step keeps how it really ended.
            captured.ended = Ended { reason: "exited".to_owned(), code: Some(0), ..Ended::default() };
            left.excused.push(why);
        }
        left.captured = merge(left.captured, captured, (!single).then_some(step.name.as_str()));
        if left.captured.ended.reason != "exited" || left.captured.ended.code != Some(0) {
            break;
        }
    }
    match originals.changed() {
        Some(words) => Err(Problem::Launch(Failure { kind: FailureKind::Model, message: words, hint: Some(WROTE.to_owned()) })),
        None => Ok(Some(left)),
    }
}

/// What Android said to the task profile, if it did not take it.
async fn profile_refused<D: Device>(device: &D, work: &str, out: &Path) -> Result<Option<String>, DeviceError> {
    let file = out.join(capture::TASK_PROFILE);
    let there = device.fetch(work, capture::TASK_PROFILE, &file, 4096).await?;
    let said = if there { fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
    // AOSP settaskprofile's words.
    let taken = said.contains("is applied successfully");
    Ok((!taken).then(|| format!("the task profile was not applied: {}", said.split_whitespace().collect::<Vec<_>>().join(" "))))
}

/// Fetches what a step left in its work folder.
async fn fetched<D: Device>(device: &D, request: &Request<'_>, work: &str, out: &Path, files: &[String]) -> Result<(), DeviceError> {
    let events = if request.soak.is_some() { SOAK_EVENTS_LIMIT } else { EVENTS_LIMIT };
    for name in files {
        let limit = if name == EVENTS { events } else { OUTPUT_LIMIT + 1 };
        device.fetch(work, name, &out.join(capture::kept(name)), limit).await?;
    }
    Ok(())
}

/// What the steps before left of a launch's time; no limit of 0, which a step that began could not meet whatever it did.
fn remaining(timeout: Duration, spent: Duration) -> Duration {
    timeout.saturating_sub(spent).max(Duration::from_millis(1))
}

/// Files of several steps stand beside each other as `<step>/<file>`, and under their own names those of the last step.
fn merge(mut whole: Captured, captured: Captured, step: Option<&str>) -> Captured {
    for (name, bytes) in captured.files {
        if let Some(step) = step {
            whole.files.insert(format!("{step}/{name}"), bytes.clone());
        }
        whole.files.insert(name, bytes);
    }
    whole.evidence.mapped.extend(captured.evidence.mapped);
    whole.evidence.device_nodes.extend(captured.evidence.device_nodes);
    whole.ended = captured.ended;
    whole
}

/// The worst of several checks.
pub fn worst(checks: impl Iterator<Item = Check>) -> Option<Check> {
    checks.max_by_key(|c| match c {
        Check::Confirmed => 0,
        Check::NotCheckable => 1,
        Check::Contradicted => 2,
    })
}

/// A name for the work folder of a launch that nothing else uses.
pub fn work_name(run: &str, cell: &Cell, pass: Pass, number: u32) -> String {
    let id = cell.id();
    let hash = id.rsplit('-').next().unwrap_or("cell");
    format!("{run}-{hash}-{pass}-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_share_the_time_of_their_launch() {
        let (second, ms) = (Duration::from_secs(1), Duration::from_millis);
        assert_eq!([0, 400, 1000, 9000].map(|spent| remaining(second, ms(spent))), [second, ms(600), ms(1), ms(1)]);
    }
}
