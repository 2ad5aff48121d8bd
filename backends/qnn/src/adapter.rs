//! QNN without a framework: `qnn-net-run` of the user's own QAIRT SDK over the context binaries that Genie and ONNX Runtime run.
//!
//! It has no token loop: its figures are times of whole graphs, from which an upper bound is composed elsewhere (rule R11).

mod results;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure,
    FailureKind, Hint, Installed, Invocation, Launch, Need, ParseError, Parsed, Pass, Paths, Program, Reader, Recipe, Source, SourceFile,
    StagedFile, Step, Unit,
    knowledge::Table,
    note,
    tool::{self, Tool, Words, has_hexagon},
};
use serde_json::{Value, json};

use crate::{
    context,
    graphs::{self, Code, Graph, Told},
    htp,
    reader::QnnReader,
};
use results::{has_results, profile_of, run_of, told, traced, words};

/// QNN through the tools of the QAIRT SDK.
#[derive(Debug, Clone, Copy)]
pub struct Qnn;

static NET_RUN: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../device/qnn-net-run.toml")).expect("the description is checked by a test"));
static VIEWER: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../device/qnn-profile-viewer.toml")).expect("the description is checked by a test"));

/// Executions of each graph behind one average.
const EXECUTIONS: u32 = 20;

/// What only a run that went through prints, and without which nothing counts, whatever the exit status.
const FINISHED: &str = "Finished Executing Graphs";

/// Configuration of the tool, and of the library that carries performance profiles to the NPU.
const CONFIG: &str = "net_run.json";
const EXTENSION: &str = "htp_ext.json";

/// How the names of QHAS summaries end, as qnn-profile-viewer writes them (formats: QAIRT documentation, QHAS).
const TRACED: &str = "qnn_htp_analysis_summary.json";

/// Summaries of traces that the user made of the artifact's graphs: a trace needs files of the compilation that a binary does not hold, so that it
/// can't be made here. The profiling pass brings them to what it found.
fn traces<'a>(launch: &Launch<'a>) -> impl Iterator<Item = &'a String> {
    let profiling = launch.pass == Pass::Profile;
    launch.artifact.files.iter().filter(move |f| profiling && f.ends_with(TRACED))
}

/// Group of the library without which a performance profile is silently none (rule R10).
const PERF_PROFILE: &str = "perf-profile";

/// A library of the SDK on this machine.
fn local_library(name: &str, device: &DeviceFacts) -> Need {
    Need::QairtFile { path: format!("lib/{}/{name}", device.qairt_target()) }
}

fn extensions(device: &DeviceFacts) -> Need {
    let name = "libQnnHtpNetRunExtensions.so";
    if device.remote { NET_RUN.library(name, device) } else { local_library(name, device) }
}

/// Buffers that CPU and NPU share exist on a phone only: the emulator reads the process's own memory.
fn shares_buffers(device: &DeviceFacts) -> bool {
    device.os == "android" && has_hexagon(device)
}

fn options(launch: &Launch<'_>, graphs: &[Graph]) -> BTreeMap<String, String> {
    let mut options = htp::notes(launch.cell.asked(Axis::PerfProfile), launch.device);
    options.insert("engine".to_owned(), "graph".to_owned());
    options.insert("executions".to_owned(), EXECUTIONS.to_string());
    // A user's own binaries have no other description of it (rule R7).
    if let Some(prefill) = graphs.iter().find(|graph| graph.phase == "prefill") {
        options.insert("chunk".to_owned(), prefill.tokens.to_string());
    }
    options.insert(note::CONTEXT.to_owned(), launch.cell.model.context.to_string());
    let names: Vec<&str> = graphs.iter().map(|g| if g.name.is_empty() { g.step.as_str() } else { g.name.as_str() }).collect();
    options.insert(note::GRAPHS.to_owned(), names.join(", "));
    options.insert("shared_buffer".to_owned(), shares_buffers(launch.device).to_string());
    options
}

/// Whether the tool is given a configuration: for a performance profile, and on another machine wherever it can be read.
fn configured(launch: &Launch<'_>) -> bool {
    let readable = launch.device.remote && launch.installed.get(&extensions(launch.device)).is_some();
    launch.cell.asked(Axis::PerfProfile).is_some() || readable
}

impl Backend for Qnn {
    fn id(&self) -> &'static str {
        "qnn"
    }

    fn describe(&self) -> Description {
        Description { name: "QNN (qnn-net-run)", default_unit: Unit::Npu, makes: context::MADE, layers: true }
    }

    fn needs(&self, device: &DeviceFacts) -> Vec<Need> {
        if device.remote {
            return NET_RUN.all_needs(device).into_iter().chain(VIEWER.all_needs(device)).collect();
        }
        let libraries = ["libQnnHtp.so", "libQnnSystem.so"].map(|name| local_library(name, device));
        [NET_RUN.program(device), VIEWER.program(device)].into_iter().chain(libraries).chain([extensions(device)]).collect()
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
        let version = || {
            let version = installed.get(&NET_RUN.program(device)).and_then(|f| f.version.clone());
            Availability::Ready { version: format!("QAIRT {}", version.as_deref().unwrap_or("unknown")) }
        };
        if device.remote {
            let tools = || NET_RUN.probe(device, installed).and_then(|()| VIEWER.probe(device, installed));
            return context::reachable(device).and_then(|()| tools()).map_or_else(|missing| missing, |()| version());
        }
        if device.os != "linux" || device.arch != "x86_64" {
            return Availability::Refused { reason: "on a PC qnn-net-run runs on Linux x86_64 only".to_owned() };
        }
        match installed.missing(&self.needs(device)) {
            None => version(),
            Some(Need::QairtFile { path }) => {
                Availability::Missing { what: format!("Qualcomm's QAIRT SDK ({path})"), remedy: NET_RUN.remedy.clone() }
            }
            Some(other) => Availability::Missing { what: format!("{other:?}"), remedy: "bench runtimes list".to_owned() },
        }
    }

    fn axis(&self, axis: Axis, value: &str) -> AxisFit {
        match (axis, value) {
            (Axis::Unit, "npu") => AxisFit::Settable,
            (Axis::Context | Axis::Variant, _) | (Axis::Kv, "8" | "16") => AxisFit::OfArtifact,
            (Axis::Unit, _) => AxisFit::Unsupported("context binaries run on the NPU only".to_owned()),
            (Axis::Kv, _) => AxisFit::Unsupported("the KV cache has 8 or 16 bits".to_owned()),
            (Axis::Batch, _) => AxisFit::Fixed("1"),
            (Axis::Threads, _) => AxisFit::NotApplicable,
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

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        let graphs = graphs::from_artifact(launch.artifact)?;
        context::fits(launch)?;
        let device = launch.device;
        let bytes = |name: &str, bytes: Vec<u8>| StagedFile { name: name.to_owned(), source: Source::Bytes(bytes) };
        let json = |value: &Value| serde_json::to_vec_pretty(value).unwrap_or_default();
        let mut files = Vec::new();
        if device.remote {
            files.extend(tool::staged(&[&NET_RUN, &VIEWER], device, launch.installed)?);
            for (group, wanted) in [
                ("online-prepare", !graphs.iter().all(|g| g.code() == Code::Context)),
                ("dlc", graphs.iter().any(|g| g.code() == Code::Dlc)),
            ] {
                if wanted {
                    files.extend(NET_RUN.stage_extra(group, "a model that is compiled on the device", device, launch.installed)?);
                }
            }
        }
        if configured(launch) {
            let profile = launch.cell.asked(Axis::PerfProfile);
            let found = launch.installed.path(&extensions(device));
            if let Some(profile) = profile.filter(|_| found.is_empty()) {
                let message =
                    format!("perf-profile = {profile}: without libQnnHtpNetRunExtensions.so the tool would run without it and not say so");
                return Err(Failure::new(FailureKind::Usage, message));
            }
            let library = if device.remote {
                files.extend(NET_RUN.stage_extra(PERF_PROFILE, "the HTP's configuration", device, launch.installed)?);
                "./libQnnHtpNetRunExtensions.so"
            } else {
                found
            };
            let outer = json!({"backend_extensions": {"shared_library_path": library, "config_file_path": EXTENSION}});
            let mut inner = json!({"devices": htp::devices(profile, device)});
            // VTCM is a matter of compiling: a context binary has its own.
            if let Some(vtcm_mb) = device.vtcm_mb.filter(|_| graphs.iter().all(|g| g.code() != Code::Context)) {
                let names: Vec<&String> = graphs.iter().map(|g| &g.name).collect();
                inner["graphs"] = json!([{"graph_names": names, "vtcm_mb": vtcm_mb}]);
            }
            files.push(bytes(CONFIG, json(&outer)));
            files.push(bytes(EXTENSION, json(&inner)));
        }
        let sizes: BTreeSet<u64> = graphs.iter().flat_map(|g| g.inputs.iter().map(|(_, size)| *size)).collect();
        files.extend(sizes.into_iter().map(|size| bytes(&graphs::zeros(size), vec![0; size as usize])));
        for graph in &graphs {
            files.push(StagedFile { name: graph.binary.clone(), source: Source::Artifact(graph.binary.clone()) });
            files.push(bytes(&list_name(graph), graph.input_list().into_bytes()));
        }
        files.extend(traces(launch).map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) }));
        let options = options(launch, &graphs);
        let told = Told { graphs, executions: EXECUTIONS, options };
        files.push(bytes(graphs::FILE, serde_json::to_vec_pretty(&told).unwrap_or_default()));
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, paths: &Paths) -> Vec<Step> {
        let device = launch.device;
        let htp = if device.remote { "libQnnHtp.so" } else { launch.installed.path(&local_library("libQnnHtp.so", device)) };
        let step = |name: String, tool: &Tool, words: &Words, outputs: Vec<String>| {
            if device.remote {
                return tool.step(&name, device, paths, words, outputs);
            }
            let libraries = htp.rsplit_once('/').map_or("", |(folder, _)| folder);
            let env = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), libraries.to_owned())]);
            Step {
                name,
                invocation: Invocation { program: Program::Need(tool.program(device)), args: tool.args(device, words), env, outputs },
            }
        };
        let mut steps = Vec::new();
        for graph in graphs::from_artifact(launch.artifact).unwrap_or_default() {
            let outputs = [graphs::FILE.to_owned(), graph.log()].into_iter().chain(graph.results()).collect();
            steps.push(step(graph.step.clone(), &NET_RUN, &net_run(launch, &graph, htp), outputs));
            steps.push(step(viewer_name(&graph), &VIEWER, &Words::from([("log", graph.log())]), Vec::new()));
        }
        if let Some(last) = steps.last_mut() {
            last.invocation.outputs.extend(traces(launch).cloned());
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
        traced(captured, &mut parsed);
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
            bos: None,
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

/// What the command line of qnn-net-run says of one graph.
fn net_run(launch: &Launch<'_>, graph: &Graph, backend: &str) -> Words {
    let level = if launch.pass == Pass::Profile { "detailed" } else { "basic" };
    let mut words = Words::from([
        ("backend", backend.to_owned()),
        (graph.code().word(), graph.binary.clone()),
        ("list", list_name(graph)),
        ("folder", graph.folder()),
        ("level", level.to_owned()),
        ("executions", EXECUTIONS.to_string()),
    ]);
    if shares_buffers(launch.device) {
        words.insert("shared_buffer", "--shared_buffer".to_owned());
    }
    if configured(launch) {
        words.insert("config", CONFIG.to_owned());
    }
    words
}

#[cfg(test)]
mod tests;
