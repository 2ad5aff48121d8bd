//! Genie as a backend: our own runner over libGenie.so, or a program of the SDK, over context binaries with a private copy of the
//! configuration.

mod config;
mod device;
mod same_binary;

use std::collections::BTreeMap;

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure,
    FailureKind, Hint, Installed, Invocation, JOB_FILE, Job, Launch, Need, ParseError, Parsed, Paths, Program, Recipe, Source, StagedFile,
    Step, Unit, check_bos, check_count, check_tokens, job, job_bytes,
    knowledge::Table,
    parsed_from_events,
    timeline::Timeline,
    tool::{self, Told},
};
use bench_backend_qnn::{
    context::{self, package},
    htp,
};

use config::{CONFIG, Wanted, config};

/// Qualcomm Genie.
#[derive(Debug, Clone, Copy)]
pub struct Genie;

const PROFILE: &str = "genie_profile.json";

/// Genie's own step, the last one.
const QUERY: &str = "query";

fn runner() -> Need {
    Need::Runner { name: "bench-genie-runner".to_owned() }
}

impl Backend for Genie {
    fn id(&self) -> &'static str {
        "genie"
    }

    fn describe(&self) -> Description {
        Description { name: "Genie", default_unit: Unit::Npu, makes: context::MADE, layers: true }
    }

    fn needs(&self, device: &DeviceFacts) -> Vec<Need> {
        let own = if device.remote { device::needs(device) } else { vec![package(), runner()] };
        own.into_iter().chain(same_binary::needs(device)).collect()
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
        if device.remote {
            return device::probe(device, installed);
        }
        if device.os != "linux" || device.arch != "x86_64" {
            return Availability::Refused { reason: "on a PC Genie runs on Linux x86_64 only".to_owned() };
        }
        match (installed.get(&package()), installed.get(&runner())) {
            (None, _) => Availability::Missing {
                what: "the Python package onnxruntime-qnn, which holds libGenie.so and the HTP emulator".to_owned(),
                remedy: "bench runtimes install python".to_owned(),
            },
            (_, None) => Availability::Missing {
                what: "our runner bench-genie-runner".to_owned(),
                remedy: "cargo build --workspace, or name its folder in BENCH_LIBEXEC".to_owned(),
            },
            (Some(found), Some(_)) => {
                Availability::Ready { version: format!("onnxruntime-qnn {}", found.version.as_deref().unwrap_or("unknown")) }
            }
        }
    }

    fn axis(&self, axis: Axis, value: &str) -> AxisFit {
        match (axis, value) {
            (Axis::Unit, "npu") | (Axis::Threads, _) => AxisFit::Settable,
            (Axis::Variant, program) if device::PROGRAMS.contains(&program) => AxisFit::Settable,
            (Axis::Context | Axis::Variant, _) | (Axis::Kv, "8" | "16") => AxisFit::OfArtifact,
            (Axis::Unit, _) => {
                AxisFit::Unsupported("Genie runs on the NPU here; its CPU and GPU engines need models of their own".to_owned())
            }
            (Axis::Kv, _) => AxisFit::Unsupported("the KV cache has 8 or 16 bits".to_owned()),
            (Axis::Batch, _) => AxisFit::Fixed("1"),
            (Axis::PerfProfile, word) if htp::PERF_PROFILES.contains(&word) => AxisFit::Settable,
            (Axis::PerfProfile, _) => AxisFit::Unsupported(format!("QNN's profiles are {}", htp::PERF_PROFILES.join(", "))),
        }
    }

    fn device_class(&self, _: &Cell, device: &DeviceFacts) -> DeviceClass {
        tool::npu_class(device)
    }

    fn recipe(&self, cell: &Cell, device: &DeviceFacts) -> Option<Recipe> {
        context::recipe(cell, device)
    }

    fn mixes_lengths(&self, cell: &Cell, _: &DeviceFacts) -> bool {
        cell.asked(Axis::Variant).is_none_or(|program| !device::PROGRAMS[1..].contains(&program))
    }

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        let model = config::files(launch).map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) });
        if launch.device.remote {
            let job = || Ok(job_bytes(&genie_job(launch, "libGenie.so".to_owned())?));
            return Ok(same_binary::staged(launch, device::stage(launch, job)?.into_iter().chain(model).collect()));
        }
        tool::runs_here(launch.cell, &device::PROGRAMS[1..])?;
        if let Some(profile) = launch.cell.asked(Axis::PerfProfile) {
            let message = format!("perf-profile = {profile}: the NPU of this computer is emulated, Genie takes it on a device only");
            return Err(Failure::new(FailureKind::Usage, message));
        }
        let job = genie_job(launch, format!("{}/libGenie.so", launch.installed.path(&package())))?;
        let config = serde_json::to_vec_pretty(&config(launch, Wanted::default())?).unwrap_or_default();
        let mut files = vec![
            StagedFile { name: JOB_FILE.to_owned(), source: Source::Bytes(job_bytes(&job)) },
            StagedFile { name: CONFIG.to_owned(), source: Source::Bytes(config) },
        ];
        files.extend(model);
        Ok(same_binary::staged(launch, files))
    }

    fn steps(&self, launch: &Launch<'_>, paths: &Paths) -> Vec<Step> {
        let others = same_binary::steps(launch, paths);
        if launch.device.remote {
            return others.into_iter().chain(device::steps(launch, paths)).collect();
        }
        let libraries = launch.installed.path(&package()).to_owned();
        let env = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), libraries)]);
        let invocation = Invocation {
            program: Program::Need(runner()),
            args: vec![JOB_FILE.to_owned()],
            env,
            outputs: vec![PROFILE.to_owned(), CONFIG.to_owned()],
        };
        others.into_iter().chain([Step { name: QUERY.to_owned(), invocation }]).collect()
    }

    fn excuse(&self, step: &str, captured: &Captured) -> Option<String> {
        (step != QUERY).then(|| same_binary::excuse(step, captured))
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        let mut parsed = match device::reporting(captured) {
            Some(way) => way.read(captured)?,
            None => parsed_from_events(captured)?,
        };
        if let Some(told) = Told::of(captured) {
            told.note(&mut parsed);
        }
        for (key, value) in captured.files.get(CONFIG).map(|bytes| config::notes(bytes)).unwrap_or_default() {
            parsed.notes.entry(key.to_owned()).or_insert(value);
        }
        for q in &mut parsed.queries {
            // Asked for one token, Genie hands it out and counts none.
            if q.generated_reported == Some(0) && q.tokens.len() == 1 {
                q.generated_reported = None;
            }
            // Genie counts the first token among the generated ones, but starts the clock of the generation after it.
            if let Some(n) = q.generated_reported.filter(|n| *n > 1) {
                q.reported.insert("decode_steps".to_owned(), f64::from(n - 1));
            }
        }
        if let Some(version) = parsed.notes.get("genie_api").cloned() {
            parsed.notes.insert("runtime_version".to_owned(), format!("Genie API {version}"));
        }
        parsed.notes.insert("engine".to_owned(), "genie".to_owned());
        same_binary::layers(captured, &mut parsed);
        Ok(parsed)
    }

    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, captured: &Captured) -> Checks {
        let way = device::reporting(captured);
        let (count, mut reasons) = way.map_or_else(|| check_count(expected, parsed), |way| way.check_count(expected, parsed));
        let (tokens, token_agreement, why) = check_tokens(cell.quant, expected, parsed);
        reasons.extend(why);
        // Genie puts BOS before what it is given, which has none, and counts it.
        let bos = check_bos(expected, parsed, &mut reasons);
        // Genie does not say what it ran on. Its engine is QnnHtp by configuration; the evidence is the HTP library in its process.
        let mapped = captured.evidence.mapped.iter().any(|l| l.contains("libQnnHtp"));
        let (unit, unit_found) = match (mapped, parsed.unit_reported.as_deref()) {
            (true, Some("npu") | None) => (Check::Confirmed, Some("npu".to_owned())),
            (_, Some(other)) if other != cell.unit.as_str() => (Check::Contradicted, Some(other.to_owned())),
            _ => (Check::NotCheckable, None),
        };
        match unit {
            Check::Contradicted => reasons.push(format!("{} asked, {} found", cell.unit, unit_found.as_deref().unwrap_or("nothing"))),
            Check::NotCheckable => reasons.push("libQnnHtp.so was not seen in the process".to_owned()),
            Check::Confirmed => {}
        }
        Checks { count, tokens, unit, bos, token_agreement, unit_found, reasons }
    }

    fn timelines(&self, file: &str, bytes: &[u8]) -> Vec<Timeline> {
        crate::timeline::timelines(file, bytes)
    }

    fn knowledge(&self) -> &'static Table {
        &crate::TABLE
    }

    fn explain(&self, failure: &Failure, launch: &Launch<'_>) -> Option<Hint> {
        bench_backend_qnn::explain(self, failure, launch)
    }
}

/// The job of our runner. Threads stand in the configuration.
fn genie_job(launch: &Launch<'_>, library: String) -> Result<Job, Failure> {
    let mut job = job(launch)?;
    job.runtime.insert("genie".to_owned(), library);
    job.runtime.insert("config".to_owned(), CONFIG.to_owned());
    job.threads = None;
    if let Some(arch) = context::checked_arch(launch.device) {
        job.options.insert("htp_arch".to_owned(), arch);
    }
    Ok(job)
}

#[cfg(test)]
mod tests;
