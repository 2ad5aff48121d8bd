//! QNN without a framework: `qnn-net-run` of the user's own QAIRT SDK over the context binaries that Genie and ONNX Runtime run.
//!
//! It has no token loop: its figures are times of whole graphs, from which an upper bound is composed elsewhere (rule R11).

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure,
    FailureKind, GraphTime, Hint, Installed, Invocation, Launch, Need, ParseError, Parsed, Pass, Paths, Program, Reader, Reading, Recipe,
    Source, SourceFile, StagedFile, Step, Unit, knowledge::Table,
};
use serde_json::{Value, json};

use crate::{
    context,
    graphs::{self, Graph, Told},
    reader::QnnReader,
};

/// QNN through the tools of the QAIRT SDK.
#[derive(Debug, Clone, Copy)]
pub struct Qnn;

/// Executions of each graph behind one average.
const EXECUTIONS: u32 = 20;

const TARGET: &str = "x86_64-linux-clang";

/// What only a run that went through prints, and without which nothing counts, whatever the exit status.
const FINISHED: &str = "Finished Executing Graphs";

/// Configuration of the tool, and of the library that carries performance profiles to the NPU.
const CONFIG: &str = "net_run.json";
const EXTENSION: &str = "htp_ext.json";

/// The words of `perf_profile`.
const PERF_PROFILES: [&str; 11] = [
    "low_balanced",
    "balanced",
    "default",
    "high_performance",
    "sustained_high_performance",
    "burst",
    "low_power_saver",
    "power_saver",
    "high_power_saver",
    "extreme_power_saver",
    "system_settings",
];

/// Latency of the CPU's own sleep states that is accepted during a profile, in us: the tool's default, said so that it is on record.
const RPC_CONTROL_LATENCY: u32 = 100;

fn tool(name: &str) -> Need {
    Need::QairtFile { path: format!("bin/{TARGET}/{name}") }
}

fn library(name: &str) -> Need {
    Need::QairtFile { path: format!("lib/{TARGET}/{name}") }
}

/// Without this library a performance profile is silently none (rule R10).
fn extensions() -> Need {
    library("libQnnHtpNetRunExtensions.so")
}

/// Buffers that CPU and NPU share exist on a phone only: on a PC the emulator reads the process's own memory.
fn shares_buffers(device: &DeviceFacts) -> bool {
    device.os == "android"
}

fn options(launch: &Launch<'_>) -> BTreeMap<String, String> {
    let profile = launch.cell.asked(Axis::PerfProfile);
    let mut options = BTreeMap::from([
        ("engine".to_owned(), "graph".to_owned()),
        ("executions".to_owned(), EXECUTIONS.to_string()),
        ("shared_buffer".to_owned(), shares_buffers(launch.device).to_string()),
        ("perf_profile".to_owned(), profile.unwrap_or("runtime-default").to_owned()),
    ]);
    if profile.is_some() {
        options.insert("rpc_control_latency_us".to_owned(), RPC_CONTROL_LATENCY.to_string());
    }
    options
}

impl Backend for Qnn {
    fn id(&self) -> &'static str {
        "qnn"
    }

    fn describe(&self) -> Description {
        Description { name: "QNN (qnn-net-run)", default_unit: Unit::Npu, makes: context::MADE, layers: true }
    }

    fn needs(&self, _: &DeviceFacts) -> Vec<Need> {
        vec![tool("qnn-net-run"), tool("qnn-profile-viewer"), library("libQnnHtp.so"), library("libQnnSystem.so"), extensions()]
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
            (Axis::PerfProfile, word) if PERF_PROFILES.contains(&word) => AxisFit::Settable,
            (Axis::PerfProfile, _) => AxisFit::Unsupported(format!("QNN's profiles are {}", PERF_PROFILES.join(", "))),
        }
    }

    fn device_class(&self, _: &Cell, device: &DeviceFacts) -> DeviceClass {
        context::device_class(device)
    }

    fn recipe(&self, cell: &Cell, device: &DeviceFacts) -> Option<Recipe> {
        context::recipe(cell, device)
    }

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        let graphs = graphs::from_artifact(launch.artifact)?;
        // The emulator runs binaries of every Hexagon version as if nothing were wrong: a phone would refuse them.
        let wanted = launch.device.htp_arch;
        if let Some(arch) = launch.artifact.meta.get("htp_arch").and_then(Value::as_u64).filter(|arch| *arch != u64::from(wanted)) {
            let message = format!("the context binaries were made for Hexagon v{arch}, the NPU asked for is Hexagon v{wanted}");
            return Err(Failure::new(FailureKind::Model, message));
        }
        let bytes = |name: &str, bytes: Vec<u8>| StagedFile { name: name.to_owned(), source: Source::Bytes(bytes) };
        let json = |value: &Value| serde_json::to_vec_pretty(value).unwrap_or_default();
        let mut files = Vec::new();
        if let Some(profile) = launch.cell.asked(Axis::PerfProfile) {
            let extensions = launch.installed.path(&extensions());
            if extensions.is_empty() {
                let message =
                    format!("perf-profile = {profile}: without libQnnHtpNetRunExtensions.so the tool would run without it and not say so");
                return Err(Failure::new(FailureKind::Usage, message));
            }
            files.push(bytes(
                CONFIG,
                json(&json!({"backend_extensions": {"shared_library_path": extensions, "config_file_path": EXTENSION}})),
            ));
            let core = json!({"core_id": 0, "perf_profile": profile, "rpc_control_latency": RPC_CONTROL_LATENCY});
            let device = json!({"device_id": 0, "dsp_arch": format!("v{}", launch.device.htp_arch), "cores": [core]});
            files.push(bytes(EXTENSION, json(&json!({"devices": [device]}))));
        }
        let sizes: BTreeSet<u64> = graphs.iter().flat_map(|g| g.inputs.iter().map(|(_, size)| *size)).collect();
        files.extend(sizes.into_iter().map(|size| bytes(&graphs::zeros(size), vec![0; size as usize])));
        for graph in &graphs {
            files.push(StagedFile { name: graph.binary.clone(), source: Source::Artifact(graph.binary.clone()) });
            files.push(bytes(&list_name(graph), graph.input_list().into_bytes()));
        }
        let told = Told { graphs, executions: EXECUTIONS, options: options(launch) };
        files.push(bytes(graphs::FILE, serde_json::to_vec_pretty(&told).unwrap_or_default()));
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, _: &Paths) -> Vec<Step> {
        let htp = launch.installed.path(&library("libQnnHtp.so"));
        let libraries = htp.rsplit_once('/').map_or("", |(folder, _)| folder);
        let env = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), libraries.to_owned())]);
        let step = |name: String, program: &str, args: Vec<String>, outputs: Vec<String>| Step {
            name,
            invocation: Invocation { program: Program::Need(tool(program)), args, env: env.clone(), outputs },
        };
        let mut steps = Vec::new();
        for graph in graphs::from_artifact(launch.artifact).unwrap_or_default() {
            let outputs = [graphs::FILE.to_owned(), graph.log()].into_iter().chain(graph.results()).collect();
            steps.push(step(graph.step.clone(), "qnn-net-run", net_run(launch, &graph, htp), outputs));
            steps.push(step(viewer_name(&graph), "qnn-profile-viewer", vec!["--input_log".to_owned(), graph.log()], Vec::new()));
        }
        steps
    }

    fn excuse(&self, step: &str, captured: &Captured) -> Option<String> {
        let (ended, told) = (&captured.ended, told(captured).ok()?);
        let graph = told.graphs.iter().find(|g| g.step == step)?;
        // 139 is a shell's word for signal 11.
        let crashed = ended.reason == "exited" && (ended.signal == Some(11) || ended.code == Some(139));
        let whole = words(captured, "").contains(FINISHED) && captured.files.contains_key(&graph.log()) && has_results(graph, captured, "");
        (crashed && whole).then(|| format!("{step}: qnn-net-run crashed at exit, after whole results"))
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        let told = told(captured)?;
        let mut parsed = Parsed { notes: told.options.clone(), ..Parsed::default() };
        for graph in &told.graphs {
            // Steps after a failed one did not run.
            if !captured.files.contains_key(&format!("{}/stdout.txt", graph.step)) {
                break;
            }
            if let Some(failure) = run_of(graph, captured, &mut parsed) {
                parsed.failure = Some(failure);
                break;
            }
            let name = format!("{}/stdout.txt", viewer_name(graph));
            let Some(bytes) = captured.files.get(&name) else { break };
            let viewer = SourceFile { name, bytes: bytes.clone() };
            let reading = QnnReader.read(&[viewer]).map_err(|e| ParseError { file: e.file, message: e.message })?;
            if let Some(failure) = profile_of(graph, reading, told.executions, &mut parsed) {
                parsed.failure = Some(failure);
                break;
            }
        }
        Ok(parsed)
    }

    fn verify(&self, _: &Cell, _: &Expected, parsed: &Parsed, captured: &Captured) -> Checks {
        let mapped = captured.evidence.mapped.iter().any(|l| l.contains("libQnnHtp"));
        let mut reasons =
            vec!["no token loop: qnn-net-run times whole graphs, so that there are no tokens to count or to compare".to_owned()];
        if !mapped {
            reasons.push("libQnnHtp.so was not seen in the process".to_owned());
        }
        let whole = ["prefill", "decode"].iter().all(|phase| parsed.graphs.iter().any(|g| g.phase == *phase));
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

    fn knowledge(&self) -> &'static Table {
        &crate::codes::TABLE
    }

    fn explain(&self, failure: &Failure, launch: &Launch<'_>) -> Option<Hint> {
        crate::explain(self, failure, launch)
    }
}

fn list_name(graph: &Graph) -> String {
    format!("{}.list", graph.step)
}

fn viewer_name(graph: &Graph) -> String {
    format!("{}-viewer", graph.step)
}

/// Arguments of qnn-net-run for one graph.
fn net_run(launch: &Launch<'_>, graph: &Graph, backend: &str) -> Vec<String> {
    let (list, folder, executions) = (list_name(graph), graph.folder(), EXECUTIONS.to_string());
    let level = if launch.pass == Pass::Profile { "detailed" } else { "basic" };
    let mut args = vec!["--backend", backend, "--retrieve_context", &graph.binary, "--input_list", &list, "--output_dir", &folder];
    args.extend(["--use_native_input_files", "--use_native_output_files", "--profiling_level", level]);
    args.extend(["--num_inferences", &executions, "--keep_num_outputs", "1", "--log_level", "error"]);
    if shares_buffers(launch.device) {
        args.push("--shared_buffer");
    }
    if launch.cell.asked(Axis::PerfProfile).is_some() {
        args.extend(["--config_file", CONFIG]);
    }
    args.into_iter().map(str::to_owned).collect()
}

fn told(captured: &Captured) -> Result<Told, ParseError> {
    let error = |message: String| ParseError { file: graphs::FILE.to_owned(), message };
    let bytes = captured.files.get(graphs::FILE).ok_or_else(|| error("did not come back with the output".to_owned()))?;
    serde_json::from_slice(bytes).map_err(|e| error(e.to_string()))
}

/// Both output streams as one text: the tool's errors may be in either.
fn words(captured: &Captured, prefix: &str) -> String {
    let text = |name: &str| captured.text(&format!("{prefix}{name}")).unwrap_or_default();
    format!("{}\n{}", text("stdout.txt"), text("stderr.txt"))
}

fn has_results(graph: &Graph, captured: &Captured, prefix: &str) -> bool {
    let results = graph.results();
    results.is_empty() || results.iter().any(|name| captured.files.contains_key(&format!("{prefix}{name}")))
}

/// Whether one graph was run: exit status 0 alone is not enough, the tool must say that it finished and leave results.
fn run_of(graph: &Graph, captured: &Captured, parsed: &mut Parsed) -> Option<Failure> {
    let prefix = format!("{}/", graph.step);
    let text = words(captured, &prefix);
    let reading =
        QnnReader.read(&[SourceFile { name: format!("{prefix}stdout.txt"), bytes: text.clone().into_bytes() }]).unwrap_or_default();
    let version = text.lines().find_map(|l| l.strip_prefix("qnn-net-run build version:").or_else(|| l.strip_prefix("QNN SDK")));
    if let Some(version) = version {
        parsed.notes.insert("runtime_version".to_owned(), format!("QAIRT {}", version.trim()));
    }
    // That the tool prints no times is known: they come from the viewer.
    parsed.warnings.extend(reading.warnings.into_iter().filter(|w| !w.contains("prints no times")).map(|w| format!("{}: {w}", graph.step)));
    if let Some(mut failure) = reading.failure {
        failure.message = format!("{}: {}", graph.step, failure.message);
        return Some(failure);
    }
    let problem = if !text.contains(FINISHED) {
        let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("nothing");
        let last: String = last.trim().chars().filter(|c| !c.is_control()).take(200).collect();
        let code = captured.ended.code.filter(|c| *c != 0).map(|c| format!(" (exit status {c})")).unwrap_or_default();
        format!("ended without `{FINISHED}`{code}, its last words: {last}")
    } else if !has_results(graph, captured, &prefix) {
        format!("left no results in {}/Result_0", graph.folder())
    } else {
        return None;
    };
    Some(Failure::new(FailureKind::Runtime, format!("{}: qnn-net-run {problem}", graph.step)))
}

/// Takes time and operations of one graph from what the viewer printed.
fn profile_of(graph: &Graph, reading: Reading, executions: u32, parsed: &mut Parsed) -> Option<Failure> {
    let figure = |name: &str| reading.measurements.iter().filter_map(|m| m.metrics.get(name).and_then(Value::as_f64)).collect::<Vec<f64>>();
    let latencies = figure("latency_ms");
    let problem = match latencies.as_slice() {
        [] => Some("holds no time of an execution".to_owned()),
        [_] => None,
        several => Some(format!("holds {} graphs where one was run", several.len())),
    };
    parsed.warnings.extend(reading.warnings.iter().map(|w| format!("{}: {w}", graph.step)));
    if let Some(problem) = problem {
        return Some(Failure::new(FailureKind::Runtime, format!("{}: the profile {problem}", graph.step)));
    }
    if let Some(load) = figure("load_ms").first() {
        parsed.notes.insert(format!("init_{}_ms", graph.step), load.to_string());
    }
    let Graph { phase, tokens, part, parts, .. } = graph.clone();
    parsed.graphs.push(GraphTime { phase, tokens, part, parts, n: executions, latency_ms: latencies[0] });
    parsed.layers.extend(reading.layers.into_iter().map(|mut layer| {
        layer.phase.clone_from(&graph.phase);
        // The viewer averages over all executions and does not say of how many: we asked for them.
        layer.count = layer.count.or(Some(executions));
        layer
    }));
    None
}

#[cfg(test)]
mod tests;
