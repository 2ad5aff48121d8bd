//! What earlier segments of a run did, and what is left to do.

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::Pass;

use super::Session;
use crate::{
    device::Device,
    results::{
        launches::{Record, Recorded},
        manifest::Manifest,
    },
    run::{evaluate::launch_figures, events::Status, repetition::Progress, warmup::warmup},
    scenario::Plan,
};

/// What earlier segments did.
#[derive(Default)]
pub(super) struct History {
    /// By place in the plan.
    pub(super) progress: BTreeMap<usize, Progress>,
    /// Launches that need not be repeated.
    pub(super) done: BTreeSet<(usize, Pass, u32)>,
}

impl<D: Device> Session<'_, D> {
    /// Cells that need nothing more: their repetitions are over, and so is their profiling pass. What their artifact says is known.
    pub(super) fn finished(&self, history: &History, known: &Manifest) -> BTreeSet<usize> {
        let over = |(place, cell): (&usize, &Progress)| {
            let profiled = cell.stop == Some("failed") || !self.profiles(*place) || history.done.contains(&(*place, Pass::Profile, 0));
            let told = known.cells.get(&self.setup.plan.cells[*place].id).is_some_and(|facts| facts.artifact.is_some());
            let soaked = cell.stop == Some("failed") || !self.soaks(*place, &history.done);
            (cell.stop.is_some() && profiled && soaked && told).then_some(*place)
        };
        history.progress.iter().filter_map(over).collect()
    }

    /// The place of a launch's cell, if the launch need not be repeated.
    fn stands(&self, record: &Record) -> Option<usize> {
        let again = match record.failure.as_ref().map(|f| f.kind) {
            None => false,
            // Hours that ended early are kept, whatever ended them.
            Some(_) if record.soak.is_some() => self.setup.retry_failed,
            Some(kind) => kind.is_surroundings() || self.setup.retry_failed,
        };
        self.setup.plan.cells.iter().position(|c| c.id == record.cell).filter(|_| !again)
    }

    /// The measuring launches that an earlier segment recorded and that need not be repeated: place in the plan and number.
    pub(super) fn kept(&self, before: &Recorded) -> BTreeSet<(usize, u32)> {
        let measured = before.launches.iter().filter(|(_, record)| record.pass == Pass::Measure);
        measured.filter_map(|(_, record)| Some((self.stands(record)?, record.launch))).collect()
    }

    /// Counts the launches that an earlier segment recorded, and says which need not be repeated. A good one counts if it is `whole`: its partner
    /// in an A/B run is there too.
    pub(super) fn replay(&self, before: &Recorded, whole: impl Fn(&(usize, u32)) -> bool) -> History {
        let mut history = History::default();
        for (_, record) in &before.launches {
            let Some(place) = self.stands(record) else { continue };
            let measured = record.pass == Pass::Measure;
            if measured && record.failure.is_none() && !whole(&(place, record.launch)) {
                continue;
            }
            history.done.insert((place, record.pass, record.launch));
            if measured {
                count(history.progress.entry(place).or_default(), record, self.setup.plan);
            }
        }
        history
    }
}

/// Adds a launch to a cell's progress.
pub(super) fn count(cell: &mut Progress, record: &Record, plan: &Plan) {
    cell.launches += 1;
    cell.spent += record.took();
    match (record.status, record.failure.as_ref().map(|f| f.kind)) {
        (Status::Ok, _) => {
            if let Some(planned) = plan.cells.iter().find(|c| c.id == record.cell) {
                let figures =
                    launch_figures(&record.parsed, planned.cell.workload, warmup(&plan.measure, record.pass, &record.parsed).discarded);
                cell.ttft_ms.extend(figures.ttft_ms);
                cell.decode_tok_s.extend(figures.decode_tok_s);
            }
            cell.decide(&plan.measure);
        }
        (_, Some(kind)) if kind.is_surroundings() => cell.decide(&plan.measure),
        // What failed for its own reasons would fail again: its time belongs to the other cells.
        _ => cell.stop = Some("failed"),
    }
}
