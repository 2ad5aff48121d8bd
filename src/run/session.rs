//! One device's session: every launch of the plan in order, recorded as it happens, resumable at any moment. An A/B run is a session with two
//! sides, each with a plan and a run folder of its own.

mod block;
mod history;
mod manifest;
mod measure;
mod prepare;
mod profile;
mod shared;
mod side;
mod soak;

pub use side::NO_PARTNER;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bench_agent::spec::{Make, Trip};
use bench_backend_api::{Backend, Expected, Installed, Launch, Pass};
use thiserror::Error;

use self::{
    shared::Home,
    side::{Opened, Side, keep_pairs, replay},
};
use super::{
    artifacts::ReadyCell,
    evaluate::launch_figures,
    events::{Event, Sink},
    idle,
    launch::{self, LaunchError, Launched, Member, Request, StepTimes, work_name},
    pins,
    power::{self, Cable},
    soak::Asked,
    warmup::warmup,
};
use crate::{
    device::{Adopted, Cancel, Device, DeviceClock, DeviceError},
    results::{
        folder::{Folder, FolderError, launch_dir},
        journal::Journal,
        launches::Record,
        others::{Others, Reading},
        pinned,
        power::baseline_dir,
        start::Start,
        tables,
    },
    runtimes::Cache,
    scenario::{Pin, Plan},
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

impl Outcome {
    /// Of both sides together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.ok += other.ok;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.unverified += other.unverified;
        self.soaks_failed += other.soaks_failed;
        self.unavailable.extend(other.unavailable);
        self.unavailable.dedup();
        self.interrupted |= other.interrupted;
        self.lost = self.lost.or(other.lost);
        self.aborted = self.aborted.or(other.aborted);
        self
    }
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

/// Runs or resumes a plan; or two, the sides of an A/B run: their cells are partners by their place, and are launched pair by pair on
/// the one device. What belongs to the device (order, settling, pins, budget) is the first plan's.
pub async fn run<D: Device>(setups: &[Setup<'_, D>]) -> Result<Vec<Outcome>, RunError> {
    let Some(first) = setups.first() else { return Ok(Vec::new()) };
    let opened = setups.iter().map(Opened::new).collect::<Result<Vec<_>, _>>()?;
    let sides = setups.iter().zip(&opened).map(|(setup, opened)| Side::new(setup, opened));
    let mut sides = sides.collect::<Result<Vec<_>, _>>()?;
    for side in &mut sides {
        side.begin().await?;
    }
    let recorder = &opened[0].recorder;
    let warn = |text: String| recorder.say(&Event::Warning { text });
    let back = first.device.put_back().await.map_err(RunError::Device)?;
    if let Some(what) = &back.what {
        warn(format!("put back on the device what an earlier bench had changed: {what}"));
    }
    if let Some(why) = back.failed {
        warn(format!("not everything could be put back on the device: {why}"));
    }
    recorder.check()?;
    replay(&mut sides);
    for side in &mut sides {
        side.prepare()?;
    }
    keep_pairs(&mut sides);
    for side in &mut sides {
        side.ready()?;
    }
    let nothing: &[Pin] = &[];
    let wanted = if sides[0].measured.is_empty() || *first.cancel.borrow() { nothing } else { &first.plan.pins };
    let pins = pins::hold(first.device, wanted, &warn).await.map_err(RunError::Device)?;
    // The clocks are for whoever lays journal and samples side by side: a run without them is a run.
    let begun = first.device.clock().await.ok().flatten();
    let mut written = Ok(());
    for side in &mut sides {
        (side.manifest.pins, side.manifest.device_clock) = (pins.pinned.clone(), begun.map(|b| DeviceClock::of(Some(b), None)));
        side.session.pins = pinned::words(&pins.pinned);
        written = written.and_then(|()| side.manifest.write(&side.session.setup.folder.path));
    }
    // What an earlier bench had left is over by now, and nothing of this one runs yet.
    let before = Reading::now();
    let result = match written {
        Ok(()) => tokio::select! {
            result = measure::measure(&mut sides) => result,
            () = pins.beat(first.device) => Ok(()),
        },
        Err(e) => Err(e.into()),
    };
    for side in &mut sides {
        side.session.end_power().await;
    }
    if let Some((before, after)) = before.zip(Reading::now()) {
        let others = Others::between(&before, &after);
        for side in &mut sides {
            others.keep_worst(&mut side.manifest.host);
        }
    }
    if sides[0].session.lost.is_none()
        && let Some(begun) = begun
    {
        let ended = first.device.clock().await.ok().flatten();
        for side in &mut sides {
            side.manifest.device_clock = Some(DeviceClock::of(Some(begun), ended));
        }
    }
    pins.release(first.device, &warn).await;
    // Whatever ended the loop, the tables say what was measured until then, of every side.
    let recorded: Vec<_> =
        sides.iter().map(|side| tables::write(&side.session.setup.folder.path, side.session.setup.plan, &side.manifest)).collect();
    result?;
    sides.into_iter().zip(recorded).map(|(side, recorded)| side.end(recorded?)).collect()
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
            begun.end(self.setup.device, power, self.setup.cancel.clone(), &|event: &Event| self.recorder.say(event)).await;
        }
    }

    /// How long a launch idles with its model in memory before its first query: where its program can be asked to at all.
    fn idle(&self, place: usize, pass: Pass, backend: &dyn Backend, launch: &Launch<'_>) -> Duration {
        let plan = self.setup.plan;
        let asked = idle::asked(plan.power.as_ref(), plan.telemetry_rate_hz, pass, self.idled.contains(&place));
        let possible = !asked.is_zero() && backend.stage(launch).is_ok_and(|files| idle::has_job(&files));
        if possible { asked } else { Duration::ZERO }
    }

    /// The device went away for good during a launch: the run ends here, and can be resumed.
    fn gone(&mut self, record: &Record) {
        let words = record.failure.as_ref().map_or_else(String::new, |f| f.message.clone());
        self.recorder.say(&Event::Interrupted { by: format!("the loss of the device ({words})") });
        self.lost = Some(words);
    }

    /// One launch of a cell, or of several that share it: their queries are asked in this order. `adopted` is what is there of it already.
    async fn launch(
        &self,
        cells: &[(usize, &ReadyCell)],
        (pass, number, block): (Pass, u32, u32),
        start: &Start,
        adopted: Option<Adopted>,
    ) -> Result<Option<Launched>, RunError> {
        let (setup, plan) = (self.setup, self.setup.plan);
        let Some((place, ready)) = cells.first().copied() else { return Ok(None) };
        let planned = &plan.cells[place];
        let Some(backend) = self.backend(&planned.cell.backend).filter(|_| !*setup.cancel.borrow()) else { return Ok(None) };
        for (place, _) in cells {
            self.recorder.say(&Event::LaunchBegin { cell: plan.cells[*place].id.clone(), pass, launch: number, block });
        }
        self.recorder.check()?;
        let expected: Vec<Expected> = cells.iter().map(|(place, ready)| self.expected(*place, ready)).collect();
        let member = |((place, _), expected): (&(usize, _), _)| Member { cell: &plan.cells[*place].cell, expected };
        let others: Vec<Member<'_>> = cells.iter().zip(&expected).map(member).skip(1).collect();
        let prompts: Vec<Vec<u32>> = cells.iter().flat_map(|(_, ready)| &ready.prompts.ids).cloned().collect();
        let texts: Vec<String> = cells.iter().flat_map(|(_, ready)| &ready.prompts.texts).cloned().collect();
        let launch = self.contract(place, ready, pass, (&prompts, &texts));
        let soc = launch.device.soc.as_deref().unwrap_or_default();
        let asked = plan.soak.as_ref().filter(|_| pass == Pass::Soak);
        let most = plan.measure.warmup_most();
        let long = asked.map_or(0, |s| s.duration_ms);
        let idle = self.idle(place, pass, backend, &launch);
        let more = Duration::from_millis(long) + idle;
        // The time of one cell's launch, for each of them.
        let timeout = Duration::from_millis(plan.measure.timeout_ms.saturating_mul(cells.len() as u64)) + more;
        let say = |event: &Event| self.recorder.say(event);
        // Rule R17: what keeps a device awake without its cable (screen, doze) is pinned by [pin], for the whole run.
        let took = self.took.get(&place).filter(|_| pass == Pass::Measure);
        let cable = Cable::of(setup.device, plan.power.as_ref(), (took, more), timeout, &say);
        let asked = asked.map(|soak| Asked { soak, trip: &self.trip, soc, warmup: most, power: plan.power.as_ref() });
        let mut request = Request {
            backend,
            launch,
            expected: &expected[0],
            others: &others,
            artifact_paths: &ready.paths,
            number,
            block,
            segment: self.segment,
            timeout,
            rate_hz: plan.telemetry_rate_hz,
            load: if pass == Pass::Measure { plan.measure.load.make() } else { Make::Asis },
            cable,
            start,
            task_profile: pins::task_profile(&plan.pins),
            idle,
            soak: asked.as_ref(),
        };
        let homes: Vec<Home> = cells
            .iter()
            .map(|(place, _)| Home::of(launch_dir(&setup.folder.path, &setup.device.facts().name, &plan.cells[*place].id, pass, number)))
            .collect();
        let fresh = &homes[0].fresh;
        let work = work_name(&setup.folder.id(), &planned.cell, pass, number);
        let mut ran = match adopted {
            Some(adopted) => launch::adopt(setup.device, &request, fresh, adopted).await,
            None => launch::run(setup.device, &request, fresh, &work, setup.cancel.clone()).await,
        };
        let strict = |l: &Launched| l.record.failure.as_ref().is_some_and(|f| idle::refused(&f.message));
        if !idle.is_zero() && matches!(&ran, Ok(Some(launched)) if strict(launched)) {
            let id = &planned.id;
            let text = format!("{id}: its runner is older than idle baselines, it is run without: `bench runtimes build` makes it anew");
            self.recorder.say(&Event::Warning { text });
            request.idle = Duration::ZERO;
            ran = launch::run(setup.device, &request, fresh, &work, setup.cancel.clone()).await;
        }
        let Ok(Some(launched)) = ran else {
            // What hours of a soak have left stays for the resume that adopts it.
            if pass != Pass::Soak || ran.is_ok() {
                let _ = fs::remove_dir_all(fresh);
            }
            return ran.map_err(RunError::from);
        };
        if launched.lost && pass == Pass::Soak {
            // It goes on without us: a resume adopts it.
            return Ok(Some(launched));
        }
        if let Some(failure) = launched.broke() {
            let ids: Vec<&str> = cells.iter().map(|(place, _)| plan.cells[*place].id.as_str()).collect();
            let text = format!("a launch of {} failed as a whole, from here on each has its own: {}", ids.join(", "), failure.message);
            self.recorder.say(&Event::Warning { text });
            let _ = fs::remove_dir_all(fresh);
            return Ok(Some(launched));
        }
        for (home, record) in homes[1..].iter().zip(&launched.others) {
            home.keep(fresh, record)?;
        }
        for ((place, _), (home, record)) in cells.iter().zip(homes.iter().zip(launched.all())) {
            home.replace()?;
            let workload = plan.cells[*place].cell.workload;
            let figures = launch_figures(&record.parsed, workload, warmup(&plan.measure, pass, &record.parsed).discarded);
            self.recorder.say(&Event::LaunchEnd {
                cell: record.cell.clone(),
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
        }
        Ok(Some(launched))
    }
}
