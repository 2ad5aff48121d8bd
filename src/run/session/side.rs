//! One side of a run: its session with what it has, needs and has done. Most runs have one side, an A/B run has two.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Mutex,
};

use bench_backend_api::{DeviceClass, Pass};

use super::{Outcome, Recorder, RunError, Session, Setup, history::History, soak};
use crate::{
    device::Device,
    results::{
        folder::FolderError,
        journal::Journal,
        launches::{self, Recorded},
        manifest::Manifest,
        portable::Portable,
    },
    run::{
        artifacts::ReadyCell,
        events::{Event, Status},
    },
    stats,
};

/// The journal of a run folder, and what earlier segments left in it.
pub(super) struct Opened<'a> {
    pub(super) recorder: Recorder<'a>,
    before: Recorded,
    torn: Option<String>,
}

impl<'a> Opened<'a> {
    pub(super) fn new<D: Device>(setup: &Setup<'a, D>) -> Result<Self, FolderError> {
        let run = &setup.folder.path;
        let resumed = run.join("journal.jsonl").is_file();
        if resumed {
            // Before its torn end is cut off.
            launches::all_named(run)?;
        }
        let (journal, torn) = Journal::open(run)?;
        let before = if resumed { launches::read(run, &setup.device.facts().name)? } else { Recorded::default() };
        Ok(Self { recorder: Recorder { journal, console: setup.console, error: Mutex::new(None) }, before, torn })
    }
}

pub(super) struct Side<'a, D> {
    pub(super) session: Session<'a, D>,
    opened: &'a Opened<'a>,
    /// Until everything is ready, what is known without the artifacts.
    pub(super) manifest: Manifest,
    /// Soaks that a killed bench had left running.
    pub(super) left: soak::Left,
    /// What earlier segments did, and then this one.
    pub(super) history: History,
    /// Cells that need nothing more.
    finished: BTreeSet<usize>,
    pub(super) ready: BTreeMap<usize, ReadyCell>,
    /// The cells that are measured, in this segment or before it.
    pub(super) measured: BTreeSet<usize>,
}

impl<'a, D: Device> Side<'a, D> {
    /// Changes nothing: a run that can't go on here is left as it is. The artifacts are compared when they are ready.
    pub(super) fn new(setup: &'a Setup<'a, D>, opened: &'a Opened<'a>) -> Result<Self, RunError> {
        let session = Session {
            setup,
            recorder: &opened.recorder,
            segment: opened.before.segments,
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
        let manifest = session.manifest(&BTreeMap::new())?;
        Ok(Self {
            session,
            opened,
            manifest,
            left: soak::Left::new(),
            history: History::default(),
            finished: BTreeSet::new(),
            ready: BTreeMap::new(),
            measured: BTreeSet::new(),
        })
    }

    /// Begins the segment: what a killed bench has left on the device is adopted or ended.
    pub(super) async fn begin(&mut self) -> Result<(), RunError> {
        let (setup, recorder, before) = (self.session.setup, self.session.recorder, &self.opened.before);
        self.session.unsoakable = self.session.unsoaked(before);
        self.left = self.session.adopt(before).await?;
        let ended = setup.device.end_orphans(&before.in_flight()).await.map_err(RunError::Device)?;
        for dir in &before.unfinished {
            let _ = fs::remove_dir_all(launches::again(dir));
        }
        recorder.say(&Event::RunBegin {
            run: setup.folder.id(),
            scenario: setup.plan.name.clone(),
            segment: before.segments,
            folder: setup.folder.path.display().to_string(),
        });
        if let Some(text) = self.opened.torn.clone() {
            recorder.say(&Event::Warning { text });
        }
        if !ended.is_empty() {
            let text = format!("ended what an earlier bench had left running on the device: {}", ended.join(", "));
            recorder.say(&Event::Warning { text });
        }
        Ok(())
    }

    /// Makes what the cells need that are not finished.
    pub(super) fn prepare(&mut self) -> Result<(), RunError> {
        let (session, finished) = (&mut self.session, &self.finished);
        self.ready = tokio::task::block_in_place(|| session.prepare(finished));
        session.recorder.check()?;
        self.measured = self.ready.keys().chain(finished).copied().collect();
        Ok(())
    }

    /// Says what will be measured.
    pub(super) fn ready(&mut self) -> Result<(), RunError> {
        let (plan, recorder, measured) = (self.session.setup.plan, self.session.recorder, &self.measured);
        let profiled = measured.iter().filter(|place| self.session.profiles(**place)).count();
        let soaked = measured.iter().filter(|place| plan.soaked().contains(place)).count();
        let launches = measured.len() * plan.measure.repetitions_max as usize + profiled + soaked;
        let done = self.history.done.iter().filter(|(place, ..)| measured.contains(place)).count();
        // The host as it was before bench itself made anything: the load of that is no sign of others.
        let host = std::mem::take(&mut self.manifest.host);
        self.manifest = Manifest { host, ..self.session.manifest(&self.ready)? };
        let class = |place: &usize| self.manifest.cells.get(&plan.cells[*place].id).map(|facts| facts.device_class);
        let emulated = measured.iter().filter(|place| class(place) == Some(DeviceClass::Emulator)).count();
        recorder.say(&Event::Ready { cells: measured.len(), launches, done, emulated });
        if let Some(words) = plan.no_soak() {
            recorder.say(&Event::Warning { text: words.trim_start_matches("warning: ").to_owned() });
        }
        self.history.progress.retain(|place, _| measured.contains(place));
        for place in measured {
            self.history.progress.entry(*place).or_default();
        }
        Ok(())
    }

    /// Closes the segment with what the tables say of it.
    pub(super) fn end(self, (recorded, statuses): (Recorded, Vec<(String, Status)>)) -> Result<Outcome, RunError> {
        let Self { session, mut manifest, .. } = self;
        let Session { setup, recorder, .. } = session;
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
        let places = Portable::new(&setup.folder.path);
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
        manifest.write(&setup.folder.path)?;
        recorder.check()?;
        Ok(outcome)
    }
}

/// Counts what earlier segments did. Of a pair both launches count or neither: half of one is measured again with its partner, since
/// launches hours apart are none.
pub(super) fn replay<D: Device>(sides: &mut [Side<'_, D>]) {
    let kept: Vec<_> = sides.iter().map(|side| side.session.kept(&side.opened.before)).collect();
    for side in sides.iter_mut() {
        let whole = |launch: &(usize, u32)| kept.iter().all(|kept| kept.contains(launch));
        side.history = side.session.replay(&side.opened.before, whole);
    }
    let finished = sides.iter().map(|side| side.session.finished(&side.history, &side.manifest));
    let finished = finished.reduce(|all, side| &all & &side).unwrap_or_default();
    for side in sides {
        side.finished.clone_from(&finished);
    }
}

/// Why a cell of an A/B run is skipped that could be measured by itself.
pub const NO_PARTNER: &str = "its partner on the other side of the A/B run can't be measured: see there";

/// Skips the cells whose partner can't be measured.
pub(super) fn keep_pairs<D: Device>(sides: &mut [Side<'_, D>]) {
    let both = sides.iter().map(|side| side.measured.clone()).reduce(|all, side| &all & &side).unwrap_or_default();
    for side in sides {
        for place in side.measured.difference(&both) {
            let cell = side.session.setup.plan.cells[*place].id.clone();
            let reason = NO_PARTNER.to_owned();
            side.session.recorder.say(&Event::CellSkipped { cell, reason });
        }
        side.ready.retain(|place, _| both.contains(place));
        side.measured.clone_from(&both);
    }
}
