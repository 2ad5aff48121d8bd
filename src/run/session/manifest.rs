//! The manifest of a segment, and what makes a resume impossible.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use bench_backend_api::{Installed, Need};
use serde_json::json;

use super::{RunError, Session};
use crate::{
    device::Device,
    results::{
        manifest::{CellFacts, Manifest, NamedBy, ScenarioRef, Tool, host_state},
        others,
        schema::FORMAT_VERSION,
    },
    run::artifacts::{QUANT_NATIVE, ReadyCell},
    runtimes::python,
    scenario::{ArtifactSource, Plan},
};

impl<D: Device> Session<'_, D> {
    /// What is run on what, the cells as far as they are ready. An error if an earlier segment ran something else.
    pub(super) fn manifest(&self, ready: &BTreeMap<usize, ReadyCell>) -> Result<Manifest, RunError> {
        let setup = self.setup;
        let facts = setup.device.facts();
        let used: BTreeSet<&str> = setup.plan.cells.iter().map(|c| c.cell.backend.as_str()).collect();
        let probed = used.iter().filter_map(|id| Some(((*id).to_owned(), self.backend(id)?.probe(facts, setup.installed))));
        let cells = setup.plan.cells.iter().enumerate().filter_map(|(place, planned)| {
            let artifact = ready.get(&place);
            let meta = artifact.and_then(|r| r.artifact.meta.as_object());
            let told = meta.and_then(|meta| meta.get(QUANT_NATIVE)?.as_str()).filter(|name| !name.is_empty());
            let stated = artifact.and(planned.source.as_ref()).and_then(ArtifactSource::stated);
            // The files' own word goes first.
            let named = told.map(|name| (name.to_owned(), NamedBy::Files)).or_else(|| Some((stated?.to_owned(), NamedBy::Scenario)));
            let (quant_native, quant_native_from) = named.unzip();
            let facts_of = meta.into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), v.as_f64()?))).collect();
            let device_class = self.backend(&planned.cell.backend)?.device_class(&planned.cell, facts);
            let artifact = artifact.and_then(|r| r.key.clone());
            Some((planned.id.clone(), CellFacts { device_class, artifact, quant_native, quant_native_from, facts: facts_of }))
        });
        let mut manifest = Manifest {
            format_version: FORMAT_VERSION,
            run: setup.folder.id(),
            tool: Tool { version: env!("CARGO_PKG_VERSION").to_owned() },
            scenario: ScenarioRef { name: setup.plan.name.clone(), sha256: setup.plan.scenario_sha256.clone() },
            started_utc: crate::utc_now(),
            finished_utc: None,
            device: facts.clone(),
            device_says: setup.device.says(),
            runtimes: probed.collect(),
            cells: cells.collect(),
            python_lock: python::lock_hash(),
            programs: programs(setup.installed, setup.plan),
            environment: setup.plan.environment.clone(),
            pins: Vec::new(),
            device_clock: None,
            host: host_state(),
            seed: setup.plan.seed,
            ab: setup.plan.ab.clone(),
            segments: vec![crate::utc_now()],
            warnings: Vec::new(),
        };
        if setup.folder.path.join("manifest.json").is_file() {
            let old = Manifest::read(&setup.folder.path)?;
            let changed = differences(&old, &manifest);
            if !changed.is_empty() {
                return Err(RunError::Changed(changed.join("; ")));
            }
            for (cell, facts) in &mut manifest.cells {
                // What was not made again is as it was.
                if let Some(before) = old.cells.get(cell).filter(|_| facts.artifact.is_none()) {
                    facts.clone_from(before);
                }
            }
            others::resume(&old.host, &mut manifest.host);
            manifest.started_utc = old.started_utc;
            manifest.segments = old.segments.into_iter().chain(manifest.segments).collect();
        }
        Ok(manifest)
    }
}

/// Hashes of the programs that a measurement runs through: a rebuilt runner or an edited script is another thing to measure.
fn programs(installed: &Installed, plan: &Plan) -> BTreeMap<String, String> {
    let ours = installed.0.iter().filter_map(|(need, found)| match need {
        Need::Runner { .. } | Need::Program { .. } => Some((String::new(), PathBuf::from(&found.path))),
        // Two sets have libraries of one name.
        Need::DeviceLibrary { set, .. } => Some((format!("{set}:"), PathBuf::from(&found.path))),
        _ => None,
    });
    let words = plan.commands.iter().flat_map(|c| c.command.iter().skip(1)).map(|word| (String::new(), PathBuf::from(word)));
    let hash = |(set, path): (String, PathBuf)| {
        let name = path.file_name()?.display();
        Some((format!("{set}{name}"), python::short_hash(&[&fs::read(&path).ok()?])))
    };
    ours.chain(words).filter_map(hash).collect()
}

/// What is no longer as it was when the run began, in words.
fn differences(old: &Manifest, new: &Manifest) -> Vec<String> {
    let pairs = [
        ("the scenario", json!(old.scenario.sha256), json!(new.scenario.sha256)),
        ("the device", json!(old.device), json!(new.device)),
        ("the runtimes", json!(old.runtimes), json!(new.runtimes)),
        ("the lock of the Python environment", json!(old.python_lock), json!(new.python_lock)),
        ("bench", json!(old.tool.version), json!(new.tool.version)),
    ];
    let mut changed: Vec<String> = pairs
        .into_iter()
        .filter(|(_, before, now)| before != now)
        .map(|(what, before, now)| format!("{what} changed from {before} to {now}"))
        .collect();
    for (name, before) in &old.programs {
        // Runs of an earlier bench have no hashes of libraries.
        if new.programs.get(name) != Some(before) {
            let now = new.programs.get(name).map_or("nothing", String::as_str);
            changed.push(format!("{name}, which is in the measured path, changed from {before} to {now}"));
        }
    }
    for (cell, facts) in &old.cells {
        let now = new.cells.get(cell);
        if facts.artifact.is_some() && now.is_some_and(|n| n.artifact.is_some() && n.artifact != facts.artifact) {
            changed.push(format!("the artifact of {cell} changed"));
        }
    }
    changed
}
