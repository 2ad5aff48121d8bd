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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::json;

    use super::*;

    /// What the agent leaves of a launch that began 100 s after the boot, of which the device slept 20.
    fn done(boot: &str) -> serde_json::Value {
        let boot = (!boot.is_empty()).then_some(boot);
        let ended = json!({"reason": "exited", "code": 0, "signal": null, "message": null});
        json!({"v": 1, "agent_version": "0.1.0", "start_ns": 80_000_000_000_u64, "end_ns": 81_000_000_000_u64, "utc_start": "", "boot_id": boot,
            "boottime_minus_monotonic_ns": [20_000_000_000_i64, 20_000_000_000_i64], "ended": ended, "rusage": {"user_s": 0, "sys_s": 0,
                "max_rss_kb": 0, "minor_faults": 0, "major_faults": 0, "voluntary_switches": 0, "involuntary_switches": 0},
            "peak_rss_kb": null, "vm_hwm_kb": null, "pss": [], "mapped": [], "device_nodes": [], "stdout_bytes": 0, "stderr_bytes": 0,
            "truncated": false, "samples": 0, "overruns": 0, "agent_cpu_s": 0.0, "sources": [],
            "launch_context": {"uid": null, "nice": null, "affinity": null, "cgroup": null, "oom_score_adj": null}})
    }

    /// A launch of a cell, with its boot id; `None`: the agent never was started.
    fn launch(cell: &str, boot: Option<&str>) -> (PathBuf, Record) {
        let step = json!({"name": "query", "argv": [], "done": boot.map(done)});
        let parsed = json!({"load_ns": null, "unit_reported": null, "queries": [], "layers": [], "notes": {}, "warnings": []});
        let record = json!({"format_version": 1, "cell": cell, "pass": "measure", "launch": 0, "block": 0, "segment": 0, "status": "ok",
            "failure": null, "checks": null, "steps": [step], "parsed": parsed});
        (PathBuf::new(), serde_json::from_value(record).unwrap())
    }

    /// Rule R8: a cold DSP is that of the first launch on the NPU after each boot, by the device's own boot ids; other cells leave it cold.
    #[test]
    fn the_first_launch_on_the_npu_after_a_boot_finds_a_cold_dsp() {
        let run = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/results/example-pc"));
        let plan = Plan::from_toml(&std::fs::read_to_string(run.join("plan.toml")).unwrap()).unwrap();
        let mut manifest = Manifest::read(run).unwrap();
        let of_unit = |unit: Unit| plan.cells.iter().find(|c| c.cell.unit == unit).unwrap().id.clone();
        let (npu, cpu) = (of_unit(Unit::Npu), of_unit(Unit::Cpu));
        let (a, b) = (Some("boot-a"), Some("boot-b"));
        // The CPU's launch, a launch that never began, one without a boot id; then the device is started anew.
        let launches = [(&cpu, a), (&npu, None), (&npu, Some("")), (&npu, a), (&cpu, a), (&npu, a), (&npu, b), (&npu, b), (&npu, a)];
        let recorded = Recorded { launches: launches.into_iter().map(|(cell, boot)| launch(cell, boot)).collect(), ..Recorded::default() };
        let (first, later) = (Some("first"), Some("later"));
        for (class, expected) in [
            (DeviceClass::Phone, [None, None, None, first, None, later, first, later, later]),
            (DeviceClass::Board, [None, None, None, first, None, later, first, later, later]),
            (DeviceClass::Emulator, [None; 9]),
        ] {
            manifest.cells.values_mut().for_each(|cell| cell.device_class = class);
            assert_eq!(sessions(&recorded, &plan, &manifest), expected, "{class}");
        }
        assert_eq!(uptime_s(&recorded.launches[3].1), Some(100.0));
        assert_eq!(uptime_s(&recorded.launches[1].1), None);
    }
}
