//! ONNX Runtime with the QNN execution provider as a backend: our own runner, the token loop in our hands.

mod device;

use std::collections::BTreeMap;

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure, Hint,
    Installed, Invocation, JOB_FILE, Job, Launch, Need, NpuProfile, ParseError, Parsed, Pass, Paths, Program, Reader, Recipe, Source,
    SourceFile, StagedFile, Step, Unit, check_bos, check_count, check_tokens, job, job_bytes,
    knowledge::Table,
    note,
    npu::merged,
    parsed_from_events,
    tool::{self, Told},
};
use bench_backend_qnn::context;

use crate::reader::{OrtQnnReader, fallbacks};

/// ONNX Runtime with the QNN execution provider.
#[derive(Debug, Clone, Copy)]
pub struct OrtQnn;

/// Per-operation profiles of the provider, by phase.
const PROFILES: [(&str, &str); 2] = [("prefill", "profile_prefill.csv"), ("decode", "profile_decode.csv")];

/// What `htp_performance_mode` takes.
const PERF_MODES: &[&str] = &[
    "burst",
    "balanced",
    "default",
    "high_performance",
    "high_power_saver",
    "low_balanced",
    "extreme_power_saver",
    "low_power_saver",
    "power_saver",
    "sustained_high_performance",
];

fn runner() -> Need {
    Need::Runner { name: "bench-ort-qnn-runner".to_owned() }
}

fn onnxruntime() -> Need {
    Need::PythonPackage { distribution: "onnxruntime".to_owned(), module: "onnxruntime".to_owned() }
}

impl Backend for OrtQnn {
    fn id(&self) -> &'static str {
        "ort-qnn"
    }

    fn describe(&self) -> Description {
        Description { name: "ONNX Runtime QNN EP", default_unit: Unit::Npu, makes: context::MADE, layers: true }
    }

    fn needs(&self, device: &DeviceFacts) -> Vec<Need> {
        if device.remote {
            return device::needs(device);
        }
        vec![onnxruntime(), context::package(), runner()]
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
        if device.remote {
            return device::probe(device, installed);
        }
        if device.os != "linux" || device.arch != "x86_64" {
            return Availability::Refused { reason: "on a PC the QNN EP runs on Linux x86_64 only".to_owned() };
        }
        let missing = |what: &str, remedy: &str| Availability::Missing { what: what.to_owned(), remedy: remedy.to_owned() };
        let Some(ort) = installed.get(&onnxruntime()) else {
            return missing("the Python package onnxruntime", "bench runtimes install python");
        };
        let Some(qnn) = installed.get(&context::package()) else {
            return missing("the Python package onnxruntime-qnn", "bench runtimes install python");
        };
        if installed.get(&runner()).is_none() {
            return missing("our runner bench-ort-qnn-runner", "cargo build --workspace, or name its folder in BENCH_LIBEXEC");
        }
        let version = |v: &Option<String>| v.clone().unwrap_or_else(|| "unknown".to_owned());
        Availability::Ready { version: format!("onnxruntime {}, onnxruntime-qnn {}", version(&ort.version), version(&qnn.version)) }
    }

    fn axis(&self, axis: Axis, value: &str) -> AxisFit {
        match (axis, value) {
            (Axis::Unit, "npu") => AxisFit::Settable,
            (Axis::Variant, program) if device::PROGRAMS.contains(&program) => AxisFit::Settable,
            (Axis::Context | Axis::Variant, _) | (Axis::Kv, "8" | "16") => AxisFit::OfArtifact,
            (Axis::Unit, _) => AxisFit::Unsupported("context binaries run on the NPU only".to_owned()),
            (Axis::Kv, _) => AxisFit::Unsupported("the KV cache has 8 or 16 bits".to_owned()),
            (Axis::Batch, _) => AxisFit::Fixed("1"),
            (Axis::Threads, _) => AxisFit::NotApplicable,
            (Axis::PerfProfile, mode) if PERF_MODES.contains(&mode) => AxisFit::Settable,
            (Axis::PerfProfile, _) => AxisFit::Unsupported(format!("htp_performance_mode is one of {}", PERF_MODES.join(", "))),
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
        let wanted = |f: &&String| [".onnx", ".bin", "meta.json"].iter().any(|end| f.ends_with(end));
        let model = launch.artifact.files.iter().filter(wanted);
        let model = model.map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) });
        if launch.device.remote {
            let libraries = ["./libonnxruntime.so", "./libonnxruntime_providers_qnn.so", "./libQnnHtp.so"].map(str::to_owned);
            let job = || Ok(job_bytes(&ort_job(launch, libraries)?));
            return Ok(device::stage(launch, job)?.into_iter().chain(model).collect());
        }
        tool::runs_here(launch.cell, &device::PROGRAMS[1..])?;
        let qnn = launch.installed.path(&context::package());
        let ort = launch.installed.get(&onnxruntime());
        let version = ort.and_then(|f| f.version.clone()).unwrap_or_default();
        let library = format!("{}/capi/libonnxruntime.so.{version}", ort.map_or("", |f| f.path.as_str()));
        let libraries = [library, format!("{qnn}/libonnxruntime_providers_qnn.so"), format!("{qnn}/libQnnHtp.so")];
        let mut files = vec![StagedFile { name: JOB_FILE.to_owned(), source: Source::Bytes(job_bytes(&ort_job(launch, libraries)?)) }];
        files.extend(model);
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, paths: &Paths) -> Vec<Step> {
        let outputs = match launch.pass {
            Pass::Profile => PROFILES.iter().map(|(_, file)| (*file).to_owned()).collect(),
            Pass::Measure | Pass::Soak => Vec::new(),
        };
        if launch.device.remote {
            return device::steps(launch, paths, outputs);
        }
        let libraries = launch.installed.path(&context::package()).to_owned();
        let env = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), libraries)]);
        let invocation = Invocation { program: Program::Need(runner()), args: vec![JOB_FILE.to_owned()], env, outputs };
        vec![Step { name: "query".to_owned(), invocation }]
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        let composes = device::composes(captured);
        let mut parsed = if composes { device::read(captured)? } else { parsed_from_events(captured)? };
        if !composes {
            // Our runner takes the largest logit itself.
            parsed.notes.insert(note::SAMPLING.to_owned(), "greedy".to_owned());
        }
        if let Some(told) = Told::of(captured) {
            told.note(&mut parsed);
        }
        parsed.fallbacks =
            ["stderr.txt", "stdout.txt"].iter().filter_map(|name| captured.text(name)).flat_map(|log| fallbacks::of_log(&log)).collect();
        if parsed.fallbacks.is_empty() {
            parsed.fallbacks = parsed.notes.get("fallback_nodes").map(|note| fallbacks::of_note(note)).unwrap_or_default();
        }
        profiles(captured, &mut parsed);
        Ok(parsed)
    }

    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, captured: &Captured) -> Checks {
        if device::composes(captured) {
            return device::verify(parsed, captured);
        }
        let (count, mut reasons) = check_count(expected, parsed);
        let (tokens, token_agreement, why) = check_tokens(cell.quant, expected, parsed);
        reasons.extend(why);
        // Our runner feeds the graphs with the ids themselves: nothing could put a BOS before them.
        let bos = check_bos(expected, parsed, &mut reasons);
        // The session is made with fallback forbidden, and the runner counts the nodes of each provider.
        let fallen = parsed.notes.get("fallback_nodes");
        let unit = match (parsed.unit_reported.as_deref(), fallen) {
            (_, Some(nodes)) => {
                reasons.push(format!("nodes fell back to the CPU: {nodes}"));
                Check::Contradicted
            }
            (Some(found), None) if found == cell.unit.as_str() => Check::Confirmed,
            (Some(found), None) => {
                reasons.push(format!("{} asked, the nodes ran on {found}", cell.unit));
                Check::Contradicted
            }
            (None, None) => {
                reasons.push("the runner could not tell which provider has the nodes".to_owned());
                Check::NotCheckable
            }
        };
        let unit_found = if fallen.is_some() { Some("hybrid".to_owned()) } else { parsed.unit_reported.clone() };
        Checks { count, tokens, unit, bos, token_agreement, unit_found, reasons }
    }

    fn knowledge(&self) -> &'static Table {
        &crate::TABLE
    }

    fn explain(&self, failure: &Failure, launch: &Launch<'_>) -> Option<Hint> {
        bench_backend_qnn::explain(self, failure, launch)
    }
}

/// What the provider's own profiles of both graphs say, where a launch left them.
pub fn profiles(captured: &Captured, parsed: &mut Parsed) {
    for (phase, file) in PROFILES {
        let Some(bytes) = captured.files.get(file) else { continue };
        match OrtQnnReader.read(&[SourceFile { name: file.to_owned(), bytes: bytes.clone() }]) {
            Ok(reading) => {
                let npu = reading.npu.map(|npu| NpuProfile { source: "qnn-ep-profile".to_owned(), ..npu });
                parsed.parts.extend(npu.iter().flat_map(|npu| npu.parts(phase)));
                parsed.npu = merged(parsed.npu.take(), npu.as_ref());
                parsed.layers.extend(reading.layers.into_iter().map(|mut layer| {
                    phase.clone_into(&mut layer.phase);
                    layer.unit.get_or_insert_with(|| "npu".to_owned());
                    layer
                }));
            }
            Err(e) => parsed.warnings.push(e.to_string()),
        }
    }
}

/// The job of our runner with ONNX Runtime, its provider, and the provider's backend.
fn ort_job(launch: &Launch<'_>, libraries: [String; 3]) -> Result<Job, Failure> {
    let mut job = job(launch)?;
    job.runtime.extend(["onnxruntime", "qnn_ep", "qnn_backend"].map(str::to_owned).into_iter().zip(libraries));
    for (name, file) in [("prefill", "prefill.onnx"), ("decode", "decode.onnx"), ("meta", "meta.json")] {
        job.model.files.insert(name.to_owned(), file.to_owned());
    }
    job.threads = None;
    job.options.insert("ep.soc_model".to_owned(), launch.device.soc_model.to_string());
    job.options.insert("ep.htp_arch".to_owned(), launch.device.htp_arch.to_string());
    Ok(job)
}

#[cfg(test)]
mod tests;
