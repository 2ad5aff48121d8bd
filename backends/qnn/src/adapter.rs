//! QNN without a framework: `qnn-net-run` of the user's own QAIRT SDK over the context binaries that Genie and ONNX Runtime run.
//!
//! It has no token loop: its figures are times of whole graphs, from which an upper bound is composed elsewhere (rule R11).

use std::collections::BTreeMap;

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure,
    FailureKind, GraphTime, Hint, Installed, Invocation, Launch, Need, ParseError, Parsed, Pass, Paths, Program, Reader, Recipe, Source,
    SourceFile, StagedFile, Step, Unit,
};
use serde_json::Value;

use crate::{context, reader::QnnReader};

/// QNN through the tools of the QAIRT SDK.
#[derive(Debug, Clone, Copy)]
pub struct Qnn;

/// The two graphs: phase and binary.
const GRAPHS: [(&str, &str); 2] = [("prefill", "prefill.bin"), ("decode", "decode.bin")];

/// Executions of each graph behind one average.
const EXECUTIONS: u32 = 20;

const TARGET: &str = "x86_64-linux-clang";

fn tool(name: &str) -> Need {
    Need::QairtFile { path: format!("bin/{TARGET}/{name}") }
}

fn library(name: &str) -> Need {
    Need::QairtFile { path: format!("lib/{TARGET}/{name}") }
}

impl Backend for Qnn {
    fn id(&self) -> &'static str {
        "qnn"
    }

    fn describe(&self) -> Description {
        Description { name: "QNN (qnn-net-run)", default_unit: Unit::Npu, makes: context::MADE, layers: true }
    }

    fn needs(&self, _: &DeviceFacts) -> Vec<Need> {
        vec![tool("qnn-net-run"), tool("qnn-profile-viewer"), library("libQnnHtp.so"), library("libQnnSystem.so")]
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
        if device.os != "linux" || device.arch != "x86_64" {
            return Availability::Refused { reason: "on a PC qnn-net-run runs on Linux x86_64 only".to_owned() };
        }
        let needs = self.needs(device);
        match installed.missing(&needs) {
            None => {
                let version = installed.get(&needs[0]).and_then(|f| f.version.clone());
                Availability::Ready { version: format!("QAIRT {}", version.as_deref().unwrap_or("unknown")) }
            }
            Some(Need::QairtFile { path }) => Availability::Missing {
                what: format!("Qualcomm's QAIRT SDK ({path})"),
                remedy: "install the SDK and set QAIRT_SDK_ROOT to its folder, or run `bench runtimes install qairt --accept-licence`"
                    .to_owned(),
            },
            Some(other) => Availability::Missing { what: format!("{other:?}"), remedy: "bench runtimes list".to_owned() },
        }
    }

    fn axis(&self, axis: Axis, value: &str) -> AxisFit {
        match (axis, value) {
            (Axis::Unit, "npu") | (Axis::Context | Axis::Variant, _) | (Axis::Kv, "8" | "16") => AxisFit::Settable,
            (Axis::Unit, _) => AxisFit::Unsupported("context binaries run on the NPU only".to_owned()),
            (Axis::Kv, _) => AxisFit::Unsupported("the KV cache has 8 or 16 bits".to_owned()),
            (Axis::Batch, _) => AxisFit::Fixed("1"),
            (Axis::Threads, _) => AxisFit::NotApplicable,
            (Axis::PerfProfile, _) => AxisFit::Fixed("runtime-default"),
        }
    }

    fn device_class(&self, _: &Cell, device: &DeviceFacts) -> DeviceClass {
        context::device_class(device)
    }

    fn recipe(&self, cell: &Cell, device: &DeviceFacts) -> Option<Recipe> {
        context::recipe(cell, device)
    }

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        let mut files = Vec::new();
        for (phase, binary) in GRAPHS {
            if !launch.artifact.files.iter().any(|f| f == binary) {
                let message = format!("the artifact has no {binary}: figures are composed over both graphs, or not at all");
                return Err(Failure::new(FailureKind::Usage, message));
            }
            files.push(StagedFile { name: binary.to_owned(), source: Source::Artifact(binary.to_owned()) });
            let inputs = launch.artifact.meta.pointer(&format!("/graphs/{phase}/inputs")).and_then(Value::as_object);
            let Some(inputs) = inputs else {
                return Err(Failure::new(FailureKind::Usage, format!("meta.json does not describe the inputs of {phase}")));
            };
            let mut line = Vec::new();
            for (name, described) in inputs {
                let path = format!("inputs/{phase}/{name}.raw");
                files.push(StagedFile { name: path.clone(), source: Source::Bytes(vec![0; bytes_of(described)]) });
                line.push(format!("{name}:={path}"));
            }
            let list = line.join(" ") + "\n";
            files.push(StagedFile { name: format!("{phase}.list"), source: Source::Bytes(list.into_bytes()) });
        }
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, _: &Paths) -> Vec<Step> {
        let folder = |need: Need| launch.installed.path(&need).rsplit_once('/').map_or(String::new(), |(dir, _)| dir.to_owned());
        let libraries = folder(library("libQnnHtp.so"));
        let env = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), libraries.clone())]);
        let level = if launch.pass == Pass::Profile { "detailed" } else { "basic" };
        let mut steps = Vec::new();
        for (phase, binary) in GRAPHS {
            let executions = EXECUTIONS.to_string();
            let run = [
                "--backend",
                &format!("{libraries}/libQnnHtp.so"),
                "--retrieve_context",
                binary,
                "--input_list",
                &format!("{phase}.list"),
                "--output_dir",
                &format!("out_{phase}"),
                "--use_native_input_files",
                "--use_native_output_files",
                "--shared_buffer",
                "--profiling_level",
                level,
                "--num_inferences",
                &executions,
                "--keep_num_outputs",
                "1",
                "--log_level",
                "error",
            ]
            .map(str::to_owned);
            let log = format!("out_{phase}/qnn-profiling-data_0.log");
            let invocation =
                |need: Need, args: Vec<String>| Invocation { program: Program::Need(need), args, env: env.clone(), outputs: Vec::new() };
            steps.push(Step { name: phase.to_owned(), invocation: invocation(tool("qnn-net-run"), run.to_vec()) });
            let viewer = invocation(tool("qnn-profile-viewer"), vec!["--input_log".to_owned(), log]);
            steps.push(Step { name: format!("{phase}-viewer"), invocation: viewer });
        }
        steps
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        let mut parsed = Parsed::default();
        for (phase, _) in GRAPHS {
            let named = |step: &str, name: &str| {
                let key = format!("{step}/{name}");
                captured.files.get(&key).map(|bytes| SourceFile { name: key, bytes: bytes.clone() })
            };
            let run: Vec<SourceFile> =
                ["stdout.txt", "stderr.txt"].iter().filter_map(|n| named(phase, n)).filter(|f| !f.bytes.is_empty()).collect();
            if let Ok(reading) = QnnReader.read(&run)
                && reading.failure.is_some()
            {
                parsed.failure = reading.failure;
                return Ok(parsed);
            }
            let Some(viewer) = named(&format!("{phase}-viewer"), "stdout.txt") else { continue };
            let reading = QnnReader.read(&[viewer]).map_err(|e| ParseError { file: e.file, message: e.message })?;
            let latency = reading.measurements.iter().find_map(|m| m.metrics.get("latency_ms").and_then(Value::as_f64));
            if let Some(latency_ms) = latency {
                parsed.graphs.push(GraphTime { phase: phase.to_owned(), tokens: 0, n: EXECUTIONS, latency_ms });
            }
            parsed.warnings.extend(reading.warnings);
            parsed.layers.extend(reading.layers.into_iter().map(|mut layer| {
                phase.clone_into(&mut layer.phase);
                layer
            }));
        }
        Ok(parsed)
    }

    fn verify(&self, _: &Cell, _: &Expected, parsed: &Parsed, captured: &Captured) -> Checks {
        let whole = GRAPHS.iter().all(|(phase, _)| parsed.graphs.iter().any(|g| g.phase == *phase));
        let mapped = captured.evidence.mapped.iter().any(|l| l.contains("libQnnHtp"));
        let mut reasons = vec!["qnn-net-run has no token loop: there are no tokens to count or to compare".to_owned()];
        if !whole {
            reasons.push("a graph of the model has no time".to_owned());
        }
        Checks {
            count: if whole { Check::NotCheckable } else { Check::Contradicted },
            tokens: Check::NotCheckable,
            unit: if mapped { Check::Confirmed } else { Check::NotCheckable },
            token_agreement: None,
            unit_found: mapped.then(|| "npu".to_owned()),
            reasons,
        }
    }

    fn explain(&self, failure: &Failure) -> Option<Hint> {
        crate::hint(&failure.message)
    }
}

/// Size of a tensor that meta.json describes, in bytes.
fn bytes_of(described: &Value) -> usize {
    let size = match described.get("dtype").and_then(Value::as_str) {
        Some("int32" | "float32") => 4,
        Some("uint8") => 1,
        _ => 2,
    };
    let shape = described.get("shape").and_then(Value::as_array);
    shape.into_iter().flatten().filter_map(Value::as_u64).product::<u64>() as usize * size
}
