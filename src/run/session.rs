//! One device's session: every launch of the plan in order, recorded as it happens, resumable at any moment.

mod block;
mod history;
mod manifest;
mod profile;
mod soak;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use bench_agent::spec::{Make, Trip};
use bench_backend_api::{Availability, Backend, DeviceClass, Expected, Installed, Launch, Pass, Unit};
use thiserror::Error;

use self::{
    block::Begin,
    history::{History, count},
};
use super::{
    artifacts::{ReadyCell, Workshop},
    evaluate::launch_figures,
    events::{Event, Sink, Status},
    idle,
    launch::{self, LaunchError, Launched, Request, StepTimes, step_times, work_name},
    pins,
    power::{self, Cable},
    repetition::Progress,
    soak::Asked,
    warmup::warmup,
};
use crate::{
    device::{Adopted, Cancel, Device, DeviceClock, DeviceError},
    results::{
        folder::{Folder, FolderError, launch_dir},
        journal::Journal,
        launches::{self, Record, Recorded},
        pinned,
        portable::Portable,
        power::baseline_dir,
        start::Start,
        tables,
    },
    runtimes::Cache,
    scenario::{Pin, Plan},
    stats,
};

/// What a session needs.
pub struct Setup<'a, D> {
    /// What is measured.
    pub plan: &'a Plan,
    /// The adapters.
    pub backends: &'a [&'a dyn Backend],
    /// What is installed.
    pub installed: &'a Installed,
    /// The device.
    pub device: &'a D,
    /// The user's cache.
    pub cache: &'a Cache,
    /// The run folder.
    pub folder: &'a Folder,
    /// Where events are shown.
    pub console: &'a dyn Sink,
    /// Becomes true when the user wants to stop.
    pub cancel: Cancel,
    /// Launches that failed for the cell's own reasons are tried again too.
    pub retry_failed: bool,
}

/// How a session ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Cells measured.
    pub ok: usize,
    /// Cells failed.
    pub failed: usize,
    /// Cells skipped.
    pub skipped: usize,
    /// Cells contradicted.
    pub unverified: usize,
    /// Soaks that ended early or whose answers were wrong.
    pub soaks_failed: usize,
    /// Backends that can't run here, with the remedy.
    pub unavailable: Vec<String>,
    /// The user stopped it.
    pub interrupted: bool,
    /// The device went away and did not come back, in words.
    pub lost: Option<String>,
    /// The device was not as the scenario asks, and that ends the run: in words.
    pub aborted: Option<String>,
}

/// Why a session can't go on.
#[derive(Debug, Error)]
pub enum RunError {
    /// The run folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A launch could not be recorded.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The device is out of reach, or refuses.
    #[error(transparent)]
    Device(DeviceError),
    /// The run was made with something else than what is here now.
    #[error("the run can't be resumed, since results would mix: {0}\nstart a new run instead")]
    Changed(String),
}
impl RunError {
    /// The disk is full: exit code 5, and everything before is kept.
    pub fn disk_full(&self) -> bool {
        match self {
            Self::Folder(e) | Self::Launch(LaunchError::Folder(e)) => e.disk_full(),
            Self::Launch(LaunchError::DiskFull(_)) => true,
            Self::Device(e) => e.disk_full(),
            Self::Changed(_) => false,
        }
    }
}

/// Journal and console as one consumer; the journal's first error stops the run at the next look.
struct Recorder<'a> {
    journal: Journal,
    console: &'a dyn Sink,
    error: Mutex<Option<FolderError>>,
}
impl Recorder<'_> {
    fn say(&self, event: &Event) {
        if let Err(e) = self.journal.append(event) {
            self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        }
        self.console.emit(event);
    }
    fn check(&self) -> Result<(), FolderError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Runs or resumes a plan.
pub async fn run<D: Device>(setup: Setup<'_, D>) -> Result<Outcome, RunError> {
    let run = setup.folder.path.clone();
    let resumed = run.join("journal.jsonl").is_file();
    let device = setup.device.facts().name.clone();
    let (journal, torn) = Journal::open(&run)?;
    let before = if resumed { launches::read(&run, &device)? } else { Recorded::default() };
    let recorder = Recorder { journal, console: setup.console, error: Mutex::new(None) };
    let mut session = Session {
        setup: &setup,
        recorder: &recorder,
        segment: before.segments,
        unavailable: Vec::new(),
        interrupted: false,
        lost: None,
        aborted: None,
        pins: String::new(),
        unsoakable: BTreeMap::new(),
        trip: Vec::new(),
        power: None,
        took: BTreeMap::new(),
        idled: BTreeSet::new(),
    };
    // A run that can't go on here is left as it is. The artifacts are compared when they are ready.
    let known = session.manifest(&BTreeMap::new())?;
    session.unsoakable = session.unsoaked(&before);
    let left = session.adopt(&before).await?;
    let ended = setup.device.end_orphans(&before.in_flight()).await.map_err(RunError::Device)?;
    for dir in &before.unfinished {
        let _ = fs::remove_dir_all(launches::again(dir));
    }
    recorder.say(&Event::RunBegin {
        run: setup.folder.id(),
        scenario: setup.plan.name.clone(),
        segment: before.segments,
        folder: run.display().to_string(),
    });
    if let Some(text) = torn {
        recorder.say(&Event::Warning { text });
    }
    if !ended.is_empty() {
        recorder.say(&Event::Warning { text: format!("ended what an earlier bench had left running on the device: {}", ended.join(", ")) });
    }
    let back = setup.device.put_back().await.map_err(RunError::Device)?;
    if let Some(what) = &back.what {
        recorder.say(&Event::Warning { text: format!("put back on the device what an earlier bench had changed: {what}") });
    }
    if let Some(why) = back.failed {
        recorder.say(&Event::Warning { text: format!("not everything could be put back on the device: {why}") });
    }
    recorder.check()?;
    let history = session.replay(&before);
    let finished = session.finished(&history, &known);
    let ready = tokio::task::block_in_place(|| session.prepare(&finished));
    recorder.check()?;
    let measured: BTreeSet<usize> = ready.keys().chain(&finished).copied().collect();
    let profiled = measured.iter().filter(|place| session.profiles(**place)).count();
    let soaked = measured.iter().filter(|place| setup.plan.soaked().contains(place)).count();
    let launches = measured.len() * setup.plan.measure.repetitions_max as usize + profiled + soaked;
    let done = history.done.iter().filter(|(place, ..)| measured.contains(place)).count();
    let mut manifest = session.manifest(&ready)?;
    let class = |place: &usize| manifest.cells.get(&setup.plan.cells[*place].id).map(|facts| facts.device_class);
    let emulated = measured.iter().filter(|place| class(place) == Some(DeviceClass::Emulator)).count();
    recorder.say(&Event::Ready { cells: measured.len(), launches, done, emulated });
    let warn = |text: String| recorder.say(&Event::Warning { text });
    if let Some(words) = setup.plan.no_soak() {
        warn(words.trim_start_matches("warning: ").to_owned());
    }
    let nothing: &[Pin] = &[];
    let wanted = if measured.is_empty() || *setup.cancel.borrow() { nothing } else { &setup.plan.pins };
    let pins = pins::hold(setup.device, wanted, &warn).await.map_err(RunError::Device)?;
    // The clocks are for whoever lays journal and samples side by side: a run without them is a run.
    let begun = setup.device.clock().await.ok().flatten();
    (manifest.pins, manifest.device_clock) = (pins.pinned.clone(), begun.map(|b| DeviceClock::of(Some(b), None)));
    session.pins = pinned::words(&pins.pinned);
    let result = match manifest.write(&run) {
        Ok(()) => tokio::select! {
            result = session.measure(&ready, history, &measured, left) => result,
            () = pins.beat(setup.device) => Ok(()),
        },
        Err(e) => Err(e.into()),
    };
    session.end_power().await;
    if session.lost.is_none()
        && let Some(begun) = begun
    {
        manifest.device_clock = Some(DeviceClock::of(Some(begun), setup.device.clock().await.ok().flatten()));
    }
    pins.release(setup.device, &warn).await;
    // Whatever ended the loop, the tables say what was measured until then.
    let recorded = tables::write(&run, setup.plan, &manifest);
    result?;
    let (recorded, statuses) = recorded?;
    let count = |status: Status| statuses.iter().filter(|(_, s)| *s == status).count();
    let outcome = Outcome {
        ok: count(Status::Ok),
        failed: count(Status::Failed),
        skipped: count(Status::Skipped),
        unverified: count(Status::Unverified),
        soaks_failed: recorded.launches.iter().filter(|(_, r)| r.pass == Pass::Soak && r.status != Status::Ok).count(),
        unavailable: session.unavailable,
        interrupted: session.interrupted,
        lost: session.lost,
        aborted: session.aborted,
    };
    let places = Portable::new(&run);
    manifest.warnings = recorded.warnings.iter().map(|w| places.text(w)).collect();
    manifest.device_says = setup.device.says();
    let mut trips: Vec<f64> = recorded.launches.iter().map(|(_, r)| r.round_trips as f64).collect();
    trips.retain(|n| *n > 0.0);
    if let (Some(median), Some(says)) = (stats::median(&trips), manifest.device_says.as_object_mut()) {
        says.insert("adb_round_trips_per_launch".to_owned(), median.into());
    }
    if !outcome.interrupted && outcome.lost.is_none() && outcome.aborted.is_none() {
        manifest.finished_utc = Some(crate::utc_now());
        let Outcome { ok, failed, skipped, unverified, .. } = outcome;
        recorder.say(&Event::RunEnd { ok, failed, skipped, unverified });
    }
    manifest.write(&run)?;
    recorder.check()?;
    Ok(outcome)
}

struct Session<'a, D> {
    setup: &'a Setup<'a, D>,
    recorder: &'a Recorder<'a>,
    segment: u32,
    unavailable: Vec<String>,
    interrupted: bool,
    lost: Option<String>,
    /// What looks after power, from the first launch on.
    power: Option<power::Begun>,
    /// How long the last launch of each cell took.
    took: BTreeMap<usize, StepTimes>,
    /// Cells that had their idle time with the model in memory, as far as their program gives any.
    idled: BTreeSet<usize>,
    aborted: Option<String>,
    /// What is pinned, for the rows.
    pins: String,
    /// Cells whose soak an earlier segment could not begin, with the reason.
    unsoakable: BTreeMap<usize, String>,
    /// What ends the soak that is next.
    trip: Vec<Trip>,
}

impl<D: Device> Session<'_, D> {
    fn backend(&self, id: &str) -> Option<&dyn Backend> {
        self.setup.backends.iter().find(|b| b.id() == id).copied()
    }

    /// Makes what the cells need that are not finished; by place in the plan.
    fn prepare(&mut self, finished: &BTreeSet<usize>) -> BTreeMap<usize, ReadyCell> {
        let (setup, recorder) = (self.setup, self.recorder);
        let say = |event: Event| recorder.say(&event);
        let mut workshop = Workshop::new(setup.cache, setup.plan, &say);
        let mut ready = BTreeMap::new();
        for (place, planned) in setup.plan.cells.iter().enumerate() {
            if *setup.cancel.borrow() {
                break;
            }
            if finished.contains(&place) {
                continue;
            }
            let skip = |reason: String| recorder.say(&Event::CellSkipped { cell: planned.id.clone(), reason });
            if let Some(reason) = &planned.skipped {
                skip(reason.clone());
                continue;
            }
            let Some(backend) = self.backend(&planned.cell.backend) else {
                skip(format!("this bench has no backend {}", planned.cell.backend));
                continue;
            };
            if let (Unit::Npu, Some(reason)) = (planned.cell.unit, &setup.device.facts().no_llm) {
                skip(format!("this chip's NPU can't run language models: {reason}"));
                continue;
            }
            let unavailable = match backend.probe(setup.device.facts(), setup.installed) {
                Availability::Ready { .. } => None,
                Availability::Missing { what, remedy } => Some(format!("{what} is missing: {remedy}")),
                Availability::Refused { reason } => Some(reason),
            };
            if let Some(reason) = unavailable {
                let note = format!("{}: {reason}", planned.cell.backend);
                if !self.unavailable.contains(&note) {
                    self.unavailable.push(note);
                }
                skip(reason);
                continue;
            }
            match workshop.ready(planned) {
                Ok(cell) => {
                    ready.insert(place, cell);
                }
                Err(failure) => recorder.say(&Event::CellFailed { cell: planned.id.clone(), failure }),
            }
        }
        ready
    }

    async fn measure(
        &mut self,
        ready: &BTreeMap<usize, ReadyCell>,
        history: History,
        measured: &BTreeSet<usize>,
        left: soak::Left,
    ) -> Result<(), RunError> {
        let plan = self.setup.plan;
        if *self.setup.cancel.borrow() {
            // While something was being made: what is not ready was not tried.
            self.interrupted = true;
            self.recorder.say(&Event::Interrupted { by: "the user".to_owned() });
            return Ok(());
        }
        let History { mut progress, done } = history;
        progress.retain(|place, _| measured.contains(place));
        for place in measured {
            progress.entry(*place).or_default();
        }
        for (place, cell) in &progress {
            if let Some(stop) = cell.stop {
                self.recorder.say(&Event::CellDone { cell: plan.cells[*place].id.clone(), stop: stop.to_owned() });
            }
        }
        let started = Instant::now();
        let budget = plan.measure.budget_ms.map(Duration::from_millis);
        let mut block = None;
        let mut begin = Begin::Go(Start::default());
        let schedule = plan.schedule();
        for scheduled in &schedule {
            let Some(cell) = progress.get(&scheduled.cell).filter(|p| p.stop.is_none()) else { continue };
            if done.contains(&(scheduled.cell, Pass::Measure, scheduled.launch)) || cell.launches >= plan.measure.repetitions_max {
                continue;
            }
            if block != Some(scheduled.block) {
                if block.is_none() {
                    self.begin_power().await?;
                }
                if budget.is_some_and(|b| started.elapsed() >= b) {
                    self.stop_all(&mut progress, "budget");
                    break;
                }
                block = Some(scheduled.block);
                let launches =
                    schedule.iter().filter(|s| s.block == scheduled.block && progress.get(&s.cell).is_some_and(|p| p.stop.is_none()));
                self.recorder.say(&Event::BlockBegin { block: scheduled.block, launches: launches.count() });
                begin = self.settle(scheduled.block).await?;
            }
            let launched = match &begin {
                Begin::Go(start) => {
                    self.launch(&ready[&scheduled.cell], scheduled.cell, (Pass::Measure, scheduled.launch, scheduled.block), start, None)
                        .await?
                }
                Begin::Skip(start) => Some(self.skip(scheduled.cell, scheduled.launch, scheduled.block, start)?),
                Begin::Stop => None,
            };
            let Some(Launched { record, lost }) = launched else {
                if self.lost.is_some() || self.aborted.is_some() {
                    self.stop_all(&mut progress, "interrupted");
                    return Ok(());
                }
                self.interrupted = true;
                self.recorder.say(&Event::Interrupted { by: "the user".to_owned() });
                self.stop_all(&mut progress, "interrupted");
                return Ok(());
            };
            if lost {
                self.gone(&record);
                self.stop_all(&mut progress, "interrupted");
                return Ok(());
            }
            self.took.insert(scheduled.cell, step_times(&record));
            if record.status == Status::Ok {
                self.idled.insert(scheduled.cell);
            }
            if let Some(cell) = progress.get_mut(&scheduled.cell) {
                count(cell, &record, plan);
                if let Some(stop) = cell.stop {
                    self.recorder.say(&Event::CellDone { cell: record.cell, stop: stop.to_owned() });
                }
            }
            self.recorder.check()?;
        }
        let spent = || budget.is_some_and(|b| started.elapsed() >= b);
        self.profile(ready, &progress, &done, spent).await?;
        if self.interrupted || self.lost.is_some() {
            return Ok(());
        }
        self.soak(ready, &progress, &done, left).await
    }

    fn stop_all(&self, progress: &mut BTreeMap<usize, Progress>, why: &'static str) {
        for (place, cell) in progress.iter_mut().filter(|(_, p)| p.stop.is_none()) {
            cell.stop = Some(why);
            self.recorder.say(&Event::CellDone { cell: self.setup.plan.cells[*place].id.clone(), stop: why.to_owned() });
        }
    }

    /// The baseline, the pulses and the meter. A device that is lost here is lost again by the launch that follows.
    async fn begin_power(&mut self) -> Result<(), RunError> {
        let (setup, recorder) = (self.setup, self.recorder);
        let Some(power) = &setup.plan.power else { return Ok(()) };
        let dir = baseline_dir(&setup.folder.path, &setup.device.facts().name, self.segment);
        let say = |event: &Event| recorder.say(event);
        let name = setup.folder.id();
        match power::begin(setup.device, power, (&name, &dir), setup.plan.telemetry_rate_hz, setup.cancel.clone(), &say).await {
            Ok(begun) => self.power = Some(begun),
            Err(e) if e.disk_full() => return Err(RunError::Device(e)),
            Err(e) => say(&Event::Warning { text: format!("no idle baseline: {e}") }),
        }
        Ok(recorder.check()?)
    }

    async fn end_power(&mut self) {
        if let (Some(begun), Some(power)) = (self.power.take(), &self.setup.plan.power) {
            begun.end(power, &|event: &Event| self.recorder.say(event)).await;
        }
    }

    /// How long a launch idles with its model in memory before its first query: where its program can be asked to at all.
    fn idle(&self, place: usize, pass: Pass, backend: &dyn Backend, launch: &Launch<'_>) -> Duration {
        let plan = self.setup.plan;
        let asked = idle::asked(plan.power.as_ref(), plan.telemetry_rate_hz, pass, self.idled.contains(&place));
        let possible = !asked.is_zero() && backend.stage(launch).is_ok_and(|files| idle::possible(&files));
        if possible { asked } else { Duration::ZERO }
    }

    /// The device went away for good during a launch: the run ends here, and can be resumed.
    fn gone(&mut self, record: &Record) {
        let words = record.failure.as_ref().map_or_else(String::new, |f| f.message.clone());
        self.recorder.say(&Event::Interrupted { by: format!("the loss of the device ({words})") });
        self.lost = Some(words);
    }

    /// One launch. `adopted` is what is there of it already.
    async fn launch(
        &self,
        ready: &ReadyCell,
        place: usize,
        (pass, number, block): (Pass, u32, u32),
        start: &Start,
        adopted: Option<Adopted>,
    ) -> Result<Option<Launched>, RunError> {
        let (setup, planned) = (self.setup, &self.setup.plan.cells[place]);
        let Some(backend) = self.backend(&planned.cell.backend).filter(|_| !*setup.cancel.borrow()) else { return Ok(None) };
        let run = &setup.folder.path;
        let cell = planned.id.clone();
        self.recorder.say(&Event::LaunchBegin { cell: cell.clone(), pass, launch: number, block });
        self.recorder.check()?;
        let expected = Expected {
            prompt_tokens: planned.cell.workload.prompt_tokens(),
            gen_tokens: planned.cell.workload.gen_tokens(),
            queries: ready.prompts.ids.len() as u32,
            reference: ready.prompts.reference.clone(),
            min_agreement: setup.plan.verify.min_agreement,
        };
        let launch = Launch {
            cell: &planned.cell,
            pass,
            prompts: &ready.prompts.ids,
            texts: &ready.prompts.texts,
            artifact: &ready.artifact,
            installed: setup.installed,
            device: setup.device.facts(),
        };
        let facts = setup.device.facts();
        let soc = facts.soc.as_deref().unwrap_or_default();
        let asked = setup.plan.soak.as_ref().filter(|_| pass == Pass::Soak);
        let most = setup.plan.measure.warmup_most();
        let long = asked.map_or(0, |s| s.duration_ms);
        let idle = self.idle(place, pass, backend, &launch);
        let more = Duration::from_millis(long) + idle;
        let timeout = Duration::from_millis(setup.plan.measure.timeout_ms) + more;
        let say = |event: &Event| self.recorder.say(event);
        // Rule R17: what keeps a device awake without its cable (screen, doze) is pinned by [pin], for the whole run.
        let took = self.took.get(&place).filter(|_| pass == Pass::Measure);
        let cable = Cable::of(setup.device, setup.plan.power.as_ref(), (took, more), timeout, &say);
        let asked = asked.map(|soak| Asked { soak, trip: &self.trip, soc, warmup: most, power: setup.plan.power.as_ref() });
        let mut request = Request {
            backend,
            launch,
            expected: &expected,
            artifact_paths: &ready.paths,
            number,
            block,
            segment: self.segment,
            timeout,
            rate_hz: setup.plan.telemetry_rate_hz,
            load: if pass == Pass::Measure { setup.plan.measure.load.make() } else { Make::Asis },
            cable,
            start,
            task_profile: pins::task_profile(&setup.plan.pins),
            idle,
            soak: asked.as_ref(),
        };
        let dir = launch_dir(run, &setup.device.facts().name, &cell, pass, number);
        let work = work_name(&setup.folder.id(), &planned.cell, pass, number);
        // The record of a launch that is tried again stands until there is a new one.
        let old = dir.join(launches::FILE).is_file();
        let fresh = if old { launches::again(&dir) } else { dir.clone() };
        let mut ran = match adopted {
            Some(adopted) => launch::adopt(setup.device, &request, &fresh, adopted).await,
            None => launch::run(setup.device, &request, &fresh, &work, setup.cancel.clone()).await,
        };
        let strict = |l: &Launched| l.record.failure.as_ref().is_some_and(|f| idle::refused(&f.message));
        if !idle.is_zero() && matches!(&ran, Ok(Some(launched)) if strict(launched)) {
            let text = format!("{cell}: its runner is older than idle baselines, it is run without: `bench runtimes build` makes it anew");
            self.recorder.say(&Event::Warning { text });
            request.idle = Duration::ZERO;
            ran = launch::run(setup.device, &request, &fresh, &work, setup.cancel.clone()).await;
        }
        let Ok(Some(Launched { record, lost })) = ran else {
            // What hours of a soak have left stays for the resume that adopts it.
            if pass != Pass::Soak || ran.is_ok() {
                let _ = fs::remove_dir_all(&fresh);
            }
            return ran.map_err(RunError::from);
        };
        if lost && pass == Pass::Soak {
            // It goes on without us: a resume adopts it.
            return Ok(Some(Launched { record, lost }));
        }
        if old {
            fs::remove_dir_all(&dir).map_err(FolderError::io(&dir))?;
            fs::rename(&fresh, &dir).map_err(FolderError::io(&dir))?;
        }
        let figures = launch_figures(&record.parsed, planned.cell.workload, warmup(&setup.plan.measure, pass, &record.parsed).discarded);
        self.recorder.say(&Event::LaunchEnd {
            cell,
            pass,
            launch: number,
            block,
            segment: self.segment,
            status: record.status,
            failure: record.failure.clone(),
            ttft_ms: figures.ttft_ms,
            decode_tok_s: figures.decode_tok_s,
            composed: figures.composed.is_some(),
            reported: figures.aggregate_n.is_some(),
        });
        Ok(Some(Launched { record, lost }))
    }
}
