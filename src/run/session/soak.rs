//! The soaks of a session: after everything else, one launch a cell, one after the other. What a killed bench had left running is adopted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    time::Duration,
};

use bench_agent::spec::Trip;
use bench_backend_api::Pass;

use super::{RunError, Session, block::Begin};
use crate::{
    device::{Adopted, Device, Reading, readings},
    results::{folder::launch_dir, launches::Recorded},
    run::{
        artifacts::ReadyCell,
        events::Event,
        launch::{Launched, work_name},
        repetition::Progress,
        soak,
    },
    scenario::Soak,
};

/// What a killed bench left of the soaks that were in flight, by place in the plan.
pub(super) type Left = BTreeMap<usize, Adopted>;

impl<D: Device> Session<'_, D> {
    /// Whether a soak of this cell is still to be done.
    pub(super) fn soaks(&self, place: usize, done: &BTreeSet<(usize, Pass, u32)>) -> bool {
        self.setup.plan.soaked().contains(&place) && !done.contains(&(place, Pass::Soak, 0)) && !self.unsoakable.contains_key(&place)
    }

    /// Cells whose soak an earlier segment could not begin: it would not begin now, unless it was the device's state that kept it.
    pub(super) fn unsoaked(&self, before: &Recorded) -> BTreeMap<usize, String> {
        if self.setup.retry_failed {
            return BTreeMap::new();
        }
        let place = |id: &str| self.setup.plan.cells.iter().position(|c| c.id == id);
        let known = before.unsoaked.iter().filter(|(cell, _)| !before.soak_again.contains(cell));
        known.filter_map(|(cell, why)| Some((place(cell)?, why.clone()))).collect()
    }

    fn soak_dir(&self, place: usize) -> PathBuf {
        let setup = self.setup;
        launch_dir(&setup.folder.path, &setup.device.facts().name, &setup.plan.cells[place].id, Pass::Soak, 0)
    }

    /// Waits for the soaks that a killed bench has left running, and takes what is there of them: hours of evidence are not thrown away.
    pub(super) async fn adopt(&self, before: &Recorded) -> Result<Left, RunError> {
        let mut left = Left::new();
        for place in self.setup.plan.soaked() {
            let dir = self.soak_dir(place);
            if !before.unfinished.contains(&dir) {
                continue;
            }
            let planned = &self.setup.plan.cells[place];
            let work = work_name(&self.setup.folder.id(), &planned.cell, Pass::Soak, 0);
            let text = format!("{}: a soak that an earlier bench began is waited for and adopted", planned.id);
            self.recorder.console.emit(&Event::Warning { text });
            if let Some(adopted) = self.setup.device.adopt(&work, &dir, self.setup.cancel.clone()).await.map_err(RunError::Device)? {
                left.insert(place, adopted);
            }
        }
        Ok(left)
    }

    /// Every soak that is not done.
    pub(super) async fn soak(
        &mut self,
        ready: &BTreeMap<usize, ReadyCell>,
        progress: &BTreeMap<usize, Progress>,
        done: &BTreeSet<(usize, Pass, u32)>,
        left: Left,
    ) -> Result<(), RunError> {
        if !self.soak_all(ready, progress, done, left).await? {
            self.interrupted = true;
            self.recorder.say(&Event::Interrupted { by: "the user".to_owned() });
        }
        Ok(())
    }

    /// Every soak that is not done; `false` when the user stopped it.
    async fn soak_all(
        &mut self,
        ready: &BTreeMap<usize, ReadyCell>,
        progress: &BTreeMap<usize, Progress>,
        done: &BTreeSet<(usize, Pass, u32)>,
        mut left: Left,
    ) -> Result<bool, RunError> {
        let plan = self.setup.plan;
        let Some(asked) = &plan.soak else { return Ok(true) };
        for place in plan.soaked() {
            let Some(cell) = ready.get(&place).filter(|_| self.soaks(place, done)) else { continue };
            let id = plan.cells[place].id.clone();
            let adopted = left.remove(&place);
            let soakable = if progress.get(&place).is_some_and(|p| p.stop == Some("failed")) {
                Err("its measurement failed".to_owned())
            } else if adopted.is_some() {
                // Its agent has them.
                Ok(Vec::new())
            } else {
                self.soakable(place, cell, asked).await
            };
            self.trip = match soakable {
                Ok(trip) => trip,
                Err(reason) => {
                    self.recorder.say(&Event::SoakSkipped { cell: id, reason, again: false });
                    continue;
                }
            };
            if adopted.is_none() && !self.pause(Duration::from_millis(asked.cool_down_ms)).await {
                return Ok(false);
            }
            if adopted.is_none() && self.power.is_none() {
                // A resume that has nothing but soaks left has begun no block; the device is idle once it has cooled down.
                self.begin_power().await?;
            }
            let block = plan.measure.repetitions_max;
            let begin = if adopted.is_some() { Begin::Go(self.plain()) } else { self.settle(block).await? };
            let start = match begin {
                Begin::Go(start) => start,
                Begin::Skip(start) => {
                    let reason = format!("the device was not as [settle] asks: {}", start.lacks.join("; "));
                    self.recorder.say(&Event::SoakSkipped { cell: id, reason, again: true });
                    continue;
                }
                Begin::Stop if self.lost.is_some() || self.aborted.is_some() => return Ok(true),
                Begin::Stop => return Ok(false),
            };
            match self.launch(&[(place, cell)], (Pass::Soak, 0, block), &start, adopted).await? {
                None => return Ok(false),
                Some(Launched { record, lost: true, .. }) => {
                    self.gone(&record);
                    return Ok(true);
                }
                Some(_) => {}
            }
            self.recorder.check()?;
            if *self.setup.cancel.borrow() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits; `false` when the user wants to stop.
    async fn pause(&self, time: Duration) -> bool {
        let mut cancel = self.setup.cancel.clone();
        tokio::select! {
            () = tokio::time::sleep(time) => !*self.setup.cancel.borrow(),
            Ok(_) = cancel.wait_for(|stop| *stop) => false,
        }
    }

    /// The zones that will end the soak of a cell, or why it can't be soaked, before it is tried.
    async fn soakable(&self, place: usize, cell: &ReadyCell, asked: &Soak) -> Result<Vec<Trip>, String> {
        let launch = self.contract(place, cell, Pass::Soak, (&cell.prompts.ids, &cell.prompts.texts));
        let Some(backend) = self.backend(&launch.cell.backend) else { return Err("there is no such backend".to_owned()) };
        let mut files = backend.stage(&launch).map_err(|f| f.message)?;
        soak::prolong(&mut files, 1)?;
        // A device that is lost here is lost again by what follows.
        let folder = self.setup.device.grows_in(&self.setup.folder.path);
        let free = self.setup.device.free(&folder).await.ok().flatten();
        soak::room(asked, self.setup.plan.telemetry_rate_hz, free)?;
        self.trip(asked).await
    }

    /// The zones that end a soak: those that the agent reads now, or where it could not be asked, that the launches before have sampled.
    async fn trip(&self, asked: &Soak) -> Result<Vec<Trip>, String> {
        if asked.trip.is_empty() {
            return Ok(Vec::new());
        }
        let soc = self.setup.device.facts().soc.as_deref().unwrap_or_default();
        let zones = |readings: &[Reading]| {
            readings.iter().filter(|r| r.source == "thermal" && r.unit == "C").map(|r| r.name.clone()).collect::<BTreeSet<String>>()
        };
        let names = match self.setup.device.sense().await {
            Ok(readings) => zones(&readings),
            Err(_) => self.sampled().find_map(|readings| Some(zones(&readings)).filter(|z| !z.is_empty())).unwrap_or_default(),
        };
        soak::limits(&asked.trip, soc, &Vec::from_iter(names))
    }

    /// What the launches of this run have sampled, launch by launch.
    fn sampled(&self) -> impl Iterator<Item = Vec<Reading>> {
        let setup = self.setup;
        let launches = setup.plan.cells.iter().flat_map(move |cell| (0..setup.plan.measure.repetitions_max).map(move |n| (cell, n)));
        launches.filter_map(move |(cell, n)| {
            let dir = launch_dir(&setup.folder.path, &setup.device.facts().name, &cell.id, Pass::Measure, n);
            readings(&fs::read_to_string(dir.join("telemetry.csv")).ok()?).ok()
        })
    }
}
