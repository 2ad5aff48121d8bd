//! Gathers the facts of this computer, of devices and of a scenario's files, and hands them to the checks.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use bench_backend_api::{Availability, Axis, Backend, DeviceFacts, Installed, Need, tool::file_of};

use crate::{
    cli::{adb::Servers, devices::Look},
    device::{
        Device,
        adb::{Adb, Server},
    },
    doctor::{
        Finding, Severity, ask,
        checks::{
            artifact::{self, Bundle, Cluster, Cores},
            backend::{self, Engine, build_of},
            device::{self, Phone},
            host::{self, AdbServer, Host},
            load::{self, Load, Model},
            sources::Observed,
        },
        examine, read,
    },
    registry,
    runtimes::{self, Cache, agent_for, build, python::Environment, qairt::Sdk},
    scenario::{ArtifactSource, Parameters, Plan, PlannedCell, Roots, Scenario, bits},
};

/// Where a run can happen: a device that is there, or what a scenario says of one that is not.
pub struct Target {
    /// What it is.
    pub facts: DeviceFacts,
    /// It, if it is there.
    pub device: Option<Adb>,
    /// What only the doctor asks it.
    pub asked: ask::Asked,
}

/// This computer.
pub async fn host(cache: &Cache, servers: &Servers, look: &Look, phones: bool) -> anyhow::Result<Vec<Finding>> {
    let mut host = Host {
        phones,
        sdk: Sdk::find(cache).map(|sdk| (sdk.version, sdk.root)),
        python: Environment::open(cache).map(|python| python.version),
        ndk: build::ndk(None),
        ..Host::default()
    };
    for address in servers.addresses()?.into_iter().filter(|_| phones) {
        let devices = look.devices.iter().filter(|row| *row.seen.server.address() == address).count();
        let version = match look.errors.iter().find(|(silent, _)| *silent == address) {
            Some((_, error)) => Err(error.to_string()),
            None => version(address.clone()).await,
        };
        host.servers.push(AdbServer { address: address.to_string(), version, devices });
    }
    Ok(examine(host::CHECKS, "this computer", &host))
}

/// `host:version` is answered with four hexadecimal digits.
async fn version(address: crate::device::adb::Address) -> Result<u32, String> {
    let server = Server::reach(address).await.map_err(|e| e.to_string())?;
    let said = server.ask("host:version").await.map_err(|e| e.to_string())?;
    u32::from_str_radix(said.trim(), 16).map_err(|_| format!("{}: {said:?} is no version of an adb server", server.address()))
}

/// A device by itself; of one that is not there it is known what the agent would have to be.
pub fn phone(cache: &Cache, target: &Target) -> Vec<Finding> {
    let facts = &target.facts;
    let agent = agent_for(cache, facts).map_err(|e| e.to_string());
    let Some(device) = &target.device else { return examine(&[device::AGENT], &facts.name, &agent) };
    let names: BTreeSet<String> = registry::BACKENDS
        .iter()
        .flat_map(|b| b.needs(facts))
        .filter_map(|need| if let Need::Runner { name } = need { Some(name) } else { None })
        .collect();
    let runner = |name: String| {
        let need = Need::Runner { name: name.clone() };
        (name, runtimes::find(cache, facts, [need.clone()]).get(&need).is_some())
    };
    let phone = Phone {
        device: facts.clone(),
        facts: device.said().clone(),
        chip: device.chip().clone(),
        asked: target.asked.clone(),
        agent,
        runners: names.into_iter().map(runner).collect(),
    };
    examine(device::CHECKS, &facts.name, &phone)
}

/// The telemetry sources of a target that is there, by its agent; `None` without one (another check says so) or for a device that is absent.
pub async fn sources(cache: &Cache, target: &Target) -> Option<Observed> {
    let agent = agent_for(cache, &target.facts).ok()?;
    match &target.device {
        Some(device) => Some(match device.sources(&agent).await {
            Ok(reports) => reports.ok_or_else(|| "a bench is measuring on it: not asked".to_owned()),
            Err(e) => Err(e.to_string()),
        }),
        None if target.facts.remote => None,
        None => Some(tokio::task::spawn_blocking(move || read::sources(&agent)).await.unwrap_or_else(|e| Err(e.to_string()))),
    }
}

/// What is installed of a backend for a target, and what it makes of that.
pub struct Installation {
    installed: Installed,
    engine: Engine,
}

/// What is wanted of backends.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// A scenario names them: then the lines to build one are worth their length.
    pub by_name: bool,
    /// A performance profile is asked for.
    pub profile: bool,
    /// Folders of runtimes that the scenario names.
    pub roots: &'a Roots,
}

/// Every backend on a target.
pub fn backends(cache: &Cache, target: &Target, backends: &[&dyn Backend], asked: Wanted) -> BTreeMap<String, Installation> {
    let one = |backend: &&dyn Backend| {
        let needs = backend.needs(&target.facts);
        let installed = runtimes::find_in(asked.roots, cache, &target.facts, needs.clone());
        let missing = needs.iter().filter(|need| installed.get(need).is_none()).map(file_of).collect();
        let id = backend.id().to_owned();
        let engine = Engine {
            id: id.clone(),
            device: target.facts.clone(),
            availability: backend.probe(&target.facts, &installed),
            libraries: read::libraries(&installed),
            missing,
            profile: asked.profile,
            guide: registry::build_guide(&id, &target.facts).filter(|_| target.facts.remote && asked.by_name),
        };
        (id, Installation { installed, engine })
    };
    backends.iter().map(one).collect()
}

/// What the checks say of them.
pub fn engines(all: &BTreeMap<String, Installation>) -> Vec<Finding> {
    let one = |i: &Installation| examine(backend::CHECKS, &format!("{} on {}", i.engine.id, i.engine.device.name), &i.engine);
    all.values().flat_map(one).collect()
}

/// By backend and folder: the configuration, the files, and a cell that they are for.
type Artifacts<'a> = BTreeMap<(&'a str, &'a str), (&'a Option<String>, BTreeSet<&'a String>, &'a PlannedCell)>;

/// The files that the cells of a plan need, each folder once for each backend.
fn artifacts(plan: &Plan) -> Artifacts<'_> {
    let mut all = BTreeMap::new();
    for planned in &plan.cells {
        let Some(ArtifactSource::Files { root, config, files, .. }) = &planned.source else { continue };
        let key = (planned.cell.backend.as_str(), root.as_str());
        all.entry(key).or_insert((config, BTreeSet::new(), planned)).1.extend(files);
    }
    all
}

/// The scenario's files for a target, the room for them, and what is left to measure.
pub fn cells(scenario: &Scenario, target: &Target, backends: &[&dyn Backend], all: &BTreeMap<String, Installation>) -> Vec<Finding> {
    let plan = scenario.plan(backends, &target.facts);
    let artifacts = artifacts(&plan);
    let mut findings = Vec::new();
    for ((id, root), (config, files, _)) in &artifacts {
        let root = Path::new(root);
        let runtime = all.get(*id).and_then(|i| build_of(&i.engine.libraries));
        let binaries = files.iter().filter(|f| read::is_binary(f)).map(|f| read::binary(root, f)).collect();
        let config_path = config.as_ref().map(|c| root.join(c));
        let bundle = Bundle {
            backend: (*id).to_owned(),
            device: target.facts.clone(),
            files: files.iter().map(|f| (*f).clone()).collect(),
            config: config_path.as_deref().map(read::config),
            binaries,
            runtime,
            cores: cores(target),
        };
        let place = root.display().to_string();
        findings.extend(examine(artifact::CHECKS, &place, &bundle));
        let lints = registry::LINTS.iter().filter(|(backend, _)| backend == id);
        findings.extend(lints.flat_map(|(_, checks)| examine(checks, &place, &bundle)));
    }
    if let Some(device) = &target.device {
        let said = device.said();
        let load = Load {
            models: models(&plan, &artifacts),
            memory_mb: said.memory_mb,
            available_mb: said.memory_available_mb,
            send_bytes: send_bytes(&artifacts, all),
            storage_mb: said.storage_free_mb,
            staged_bytes: target.asked.staged_bytes,
            serial: target.facts.name.clone(),
        };
        findings.extend(examine(load::CHECKS, &target.facts.name, &load));
    }
    let ready = |c: &&PlannedCell| {
        c.skipped.is_none() && all.get(&c.cell.backend).is_some_and(|i| matches!(i.engine.availability, Availability::Ready { .. }))
    };
    let runnable = plan.cells.iter().filter(ready).count();
    // Cells that are not skipped have their model, or it is made for them: it is their backend that is missing.
    let have_models = plan.cells.iter().any(|planned| planned.skipped.is_none());
    let have_backends = all.values().any(|i| matches!(i.engine.availability, Availability::Ready { .. }));
    let lack = match (have_models, have_backends) {
        (true, _) => "install one of its backends",
        (false, true) => "get one model for one backend",
        (false, false) => "install one of its backends, and get one model for it",
    };
    findings.push(Finding {
        check: "cells",
        place: target.facts.name.clone(),
        severity: if runnable == 0 { Severity::Error } else { Severity::Ok },
        what: format!("{runnable} of {} cells have what they need", plan.cells.len()),
        why: "what lacks something is a skipped row, and a run of nothing ends at once",
        fix: (runnable == 0).then(|| format!("{lack}: the warnings above say how")),
    });
    findings
}

fn cores(target: &Target) -> Cores {
    let Some(device) = &target.device else { return Cores::default() };
    let first = |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    let cluster = |p: &crate::device::adb::facts::CpuPolicy| Some(Cluster { first: first(&p.name)?, max_khz: p.hardware_max_khz? });
    Cores {
        count: device.said().cores,
        online: target.asked.online.clone(),
        clusters: device.said().cpu.iter().filter_map(cluster).collect(),
    }
}

/// Each model that some cell could measure, with its largest artifact.
fn models(plan: &Plan, artifacts: &Artifacts<'_>) -> Vec<Model> {
    let mut models: BTreeMap<&str, Model> = BTreeMap::new();
    for planned in &plan.cells {
        let spec = &planned.cell.model;
        let model = models.entry(&spec.name).or_insert_with(|| Model {
            name: spec.name.clone(),
            parameters: spec.geometry.as_ref().and_then(|g| Parameters::of(g).ok()).map(|p| p.total()),
            geometry: spec.geometry.clone(),
            context: spec.context,
            ..Model::default()
        });
        let kv = planned.cell.asked(Axis::Kv).and_then(|bits| bits.parse().ok());
        model.kv_bits = model.kv_bits.max(kv);
        // Of what has no files yet, the parameters tell.
        let estimated = model.parameters.map(|n| (n * bits(planned.cell.quant) / 8.0) as u64);
        model.weights = model.weights.or(estimated);
    }
    for ((_, root), (_, files, planned)) in artifacts {
        let bytes = files.iter().map(|f| read::size(&Path::new(root).join(f))).sum();
        if let Some(model) = models.get_mut(planned.cell.model.name.as_str()) {
            model.weights = model.weights.max(Some(bytes));
        }
    }
    models.into_values().collect()
}

fn send_bytes(artifacts: &Artifacts<'_>, all: &BTreeMap<String, Installation>) -> u64 {
    let files = artifacts.iter().flat_map(|((_, root), (_, files, _))| files.iter().map(|f| Path::new(root).join(f)));
    let libraries = all.values().flat_map(|i| i.installed.0.values()).map(|found| Path::new(&found.path).to_owned());
    files.chain(libraries).collect::<BTreeSet<_>>().iter().map(|path| read::size(path)).sum()
}

/// The scenario's own warnings: files that are not there yet, with the way to get them.
pub fn warnings(scenario: &Scenario) -> Vec<Finding> {
    let one = |problem: &crate::scenario::Problem| Finding {
        check: "scenario",
        place: problem.file.clone(),
        severity: Severity::Warning,
        what: problem.line.map_or_else(String::new, |line| format!("line {line}: ")) + &problem.message,
        why: "cells without their files are skipped",
        fix: problem.help.clone(),
    };
    scenario.warnings.problems.iter().map(one).collect()
}

/// A device that is there, asked what only the doctor wants to know.
pub async fn asked(device: Adb) -> Result<Target, Finding> {
    let facts = device.facts().clone();
    match ask::ask(device.remote(), device.root()).await {
        Ok(asked) => Ok(Target { facts, device: Some(device), asked }),
        Err(e) => Err(Finding {
            check: "device",
            place: facts.name,
            severity: Severity::Error,
            what: e.to_string(),
            why: "it was there a moment ago",
            fix: Some("try again; check cable and hub".to_owned()),
        }),
    }
}
