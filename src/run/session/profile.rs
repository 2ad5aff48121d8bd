//! The profiling pass of a session.

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::Pass;

use super::{RunError, Session};
use crate::{
    device::Device,
    run::{artifacts::ReadyCell, events::Event, launch::Launched, repetition::Progress},
    scenario::Profile,
};

impl<D: Device> Session<'_, D> {
    /// Whether a cell has a profiling pass.
    pub(super) fn profiles(&self, place: usize) -> bool {
        let backend = self.backend(&self.setup.plan.cells[place].cell.backend);
        self.setup.plan.measure.profile == Profile::Layers && backend.is_some_and(|b| b.describe().layers)
    }

    /// One launch a cell with the time of every operation, after the last block: profiling slows a run, so that its times feed
    /// layers only (design 2b.8).
    pub(super) async fn profile(
        &mut self,
        ready: &BTreeMap<usize, ReadyCell>,
        progress: &BTreeMap<usize, Progress>,
        done: &BTreeSet<(usize, Pass, u32)>,
        spent: impl Fn() -> bool,
    ) -> Result<(), RunError> {
        for (place, cell) in ready {
            let measured = progress.get(place).is_some_and(|p| p.stop != Some("failed"));
            if !self.profiles(*place) || !measured || done.contains(&(*place, Pass::Profile, 0)) {
                continue;
            }
            if spent() {
                self.recorder.say(&Event::Warning { text: "the budget was spent before every cell was profiled".to_owned() });
                break;
            }
            let block = self.setup.plan.measure.repetitions_max;
            match self.launch(&[(*place, cell)], (Pass::Profile, 0, block), &self.plain(), None).await? {
                None => {
                    self.interrupted = true;
                    self.recorder.say(&Event::Interrupted { by: "the user".to_owned() });
                    return Ok(());
                }
                Some(Launched { record, lost: true, .. }) => {
                    self.gone(&record);
                    return Ok(());
                }
                Some(_) => {}
            }
            self.recorder.check()?;
        }
        Ok(())
    }
}
