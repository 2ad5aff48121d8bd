//! Which launch is the first of a run on the NPU since the device booted: it finds the DSP cold (rule R8).

use std::collections::BTreeSet;

use bench_agent::spec::Done;
use bench_backend_api::{DeviceClass, Unit};

use super::{
    launches::{Record, Recorded},
    manifest::Manifest,
};
use crate::scenario::Plan;

/// `first` or `later`, by place in [`Recorded::launches`]; nothing for launches that are none of the NPU of a phone or board, and where no boot id
/// is known. What other programs did before, and restarts of the subsystem, are not seen.
pub fn sessions(recorded: &Recorded, plan: &Plan, manifest: &Manifest) -> Vec<Option<&'static str>> {
    let mut seen = BTreeSet::new();
    let npu = |record: &Record| {
        let class = manifest.cells.get(&record.cell).map(|cell| cell.device_class);
        let real = matches!(class, Some(DeviceClass::Phone | DeviceClass::Board));
        real && plan.cells.iter().any(|planned| planned.id == record.cell && planned.cell.unit == Unit::Npu)
    };
    let session = |record: &Record| {
        let boot = first_step(record)?.boot_id.as_deref()?;
        npu(record).then(|| if seen.insert(boot.to_owned()) { "first" } else { "later" })
    };
    recorded.launches.iter().map(|(_, record)| record).map(session).collect()
}

/// The agent's evidence of a launch's first step.
pub fn first_step(record: &Record) -> Option<&Done> {
    record.steps.iter().find_map(|step| step.done.as_ref())
}

/// Seconds since the device booted, sleep included, when the launch began.
pub fn uptime_s(record: &Record) -> Option<f64> {
    let done = first_step(record)?;
    Some((done.start_ns as f64 + done.boottime_minus_monotonic_ns[0] as f64) / 1e9)
}
