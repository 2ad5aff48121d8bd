//! ONNX Runtime with the QNN execution provider as a backend: our own runner, the token loop in our hands.

use std::collections::BTreeMap;

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure, Hint,
    Installed, Invocation, JOB_FILE, Launch, Need, ParseError, Parsed, Pass, Paths, Program, Reader, Recipe, Source, SourceFile,
    StagedFile, Step, Unit, check_count, check_tokens, job, job_bytes, knowledge::Table, parsed_from_events,
};
use bench_backend_qnn::context;

use crate::reader::OrtQnnReader;

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

    fn needs(&self, _: &DeviceFacts) -> Vec<Need> {
        vec![onnxruntime(), context::package(), runner()]
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
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
            (Axis::Unit, "npu") | (Axis::Context | Axis::Variant, _) | (Axis::Kv, "8" | "16") => AxisFit::Settable,
            (Axis::Unit, _) => AxisFit::Unsupported("context binaries run on the NPU only".to_owned()),
            (Axis::Kv, _) => AxisFit::Unsupported("the KV cache has 8 or 16 bits".to_owned()),
            (Axis::Batch, _) => AxisFit::Fixed("1"),
            (Axis::Threads, _) => AxisFit::NotApplicable,
            (Axis::PerfProfile, mode) if PERF_MODES.contains(&mode) => AxisFit::Settable,
            (Axis::PerfProfile, _) => AxisFit::Unsupported(format!("htp_performance_mode is one of {}", PERF_MODES.join(", "))),
        }
    }

    fn device_class(&self, _: &Cell, device: &DeviceFacts) -> DeviceClass {
        context::device_class(device)
    }

    fn recipe(&self, cell: &Cell, device: &DeviceFacts) -> Option<Recipe> {
        context::recipe(cell, device)
    }

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        let mut job = job(launch)?;
        let qnn = launch.installed.path(&context::package());
        let ort = launch.installed.get(&onnxruntime());
        let version = ort.and_then(|f| f.version.clone()).unwrap_or_default();
        let library = format!("{}/capi/libonnxruntime.so.{version}", ort.map_or("", |f| f.path.as_str()));
        for (key, path) in [
            ("onnxruntime", library),
            ("qnn_ep", format!("{qnn}/libonnxruntime_providers_qnn.so")),
            ("qnn_backend", format!("{qnn}/libQnnHtp.so")),
        ] {
            job.runtime.insert(key.to_owned(), path);
        }
        for (name, file) in [("prefill", "prefill.onnx"), ("decode", "decode.onnx"), ("meta", "meta.json")] {
            job.model.files.insert(name.to_owned(), file.to_owned());
        }
        job.threads = None;
        job.options.insert("ep.soc_model".to_owned(), launch.device.soc_model.to_string());
        job.options.insert("ep.htp_arch".to_owned(), launch.device.htp_arch.to_string());
        let mut files = vec![StagedFile { name: JOB_FILE.to_owned(), source: Source::Bytes(job_bytes(&job)) }];
        let wanted = |f: &&String| [".onnx", ".bin", "meta.json"].iter().any(|end| f.ends_with(end));
        files.extend(
            launch.artifact.files.iter().filter(wanted).map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) }),
        );
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, _: &Paths) -> Vec<Step> {
        let libraries = launch.installed.path(&context::package()).to_owned();
        let env = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), libraries)]);
        let outputs = match launch.pass {
            Pass::Profile => PROFILES.iter().map(|(_, file)| (*file).to_owned()).collect(),
            Pass::Measure => Vec::new(),
        };
        let invocation = Invocation { program: Program::Need(runner()), args: vec![JOB_FILE.to_owned()], env, outputs };
        vec![Step { name: "query".to_owned(), invocation }]
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        let mut parsed = parsed_from_events(captured)?;
        for (phase, file) in PROFILES {
            let Some(bytes) = captured.files.get(file) else { continue };
            match OrtQnnReader.read(&[SourceFile { name: file.to_owned(), bytes: bytes.clone() }]) {
                Ok(reading) => parsed.layers.extend(reading.layers.into_iter().map(|mut layer| {
                    phase.clone_into(&mut layer.phase);
                    layer.unit.get_or_insert_with(|| "npu".to_owned());
                    layer
                })),
                Err(e) => parsed.warnings.push(e.to_string()),
            }
        }
        Ok(parsed)
    }

    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, _: &Captured) -> Checks {
        let (count, mut reasons) = check_count(expected, parsed);
        let (tokens, token_agreement, why) = check_tokens(cell.quant, expected, parsed);
        reasons.extend(why);
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
        Checks { count, tokens, unit, token_agreement, unit_found, reasons }
    }

    fn knowledge(&self) -> &'static Table {
        &crate::TABLE
    }

    fn explain(&self, failure: &Failure, launch: &Launch<'_>) -> Option<Hint> {
        bench_backend_qnn::explain(self, failure, launch)
    }
}
