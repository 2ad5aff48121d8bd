//! What the cells of a session need before their first launch.

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::{Availability, Unit};

use super::Session;
use crate::{
    device::Device,
    run::{
        artifacts::{ReadyCell, Workshop},
        events::Event,
    },
};

impl<D: Device> Session<'_, D> {
    /// Makes what the cells need that are not finished; by place in the plan.
    pub(super) fn prepare(&mut self, finished: &BTreeSet<usize>) -> BTreeMap<usize, ReadyCell> {
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
}
