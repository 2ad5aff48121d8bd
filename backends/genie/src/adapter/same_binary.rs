//! Operations of Genie's graphs (rule R12). Its profile has none, so that the profiling pass first runs the same context binaries under a tool
//! that tells them, in steps of their own: on this machine our runner of ONNX Runtime over the wrappers that were made with the binaries, on
//! another one qnn-net-run, whose libraries are those of Genie. Nothing of these steps is Genie's time: they give layers, whose method says
//! `same binary`, and no more.

use bench_backend_api::{Availability, Backend, Captured, DeviceFacts, JOB_FILE, Launch, Need, Parsed, Pass, Paths, StagedFile, Step};
use bench_backend_ort_qnn::{OrtQnn, profiles};
use bench_backend_qnn::Qnn;

/// The other tool's job, beside Genie's.
const JOB: &str = "operations.json";
/// The step of ONNX Runtime.
const STEP: &str = "operations";
/// What the method of such a layer begins with.
const METHOD: &str = "same binary";

/// What the other tool needs. Without it there are no layers, and nothing else is missing.
pub fn needs(device: &DeviceFacts) -> Vec<Need> {
    other(device).needs(device)
}

/// Versions of two sets of QNN libraries never meet in one folder: on another machine Genie's come from the SDK, as qnn-net-run's do.
fn other(device: &DeviceFacts) -> &'static dyn Backend {
    if device.remote { &Qnn } else { &OrtQnn }
}

/// Files and steps of the other tool. `None` outside of the profiling pass, and where it or what it runs is not there.
fn made(launch: &Launch<'_>, paths: &Paths) -> Option<(Vec<StagedFile>, Vec<Step>)> {
    let other = other(launch.device);
    let ready = matches!(other.probe(launch.device, launch.installed), Availability::Ready { .. });
    let wrapped =
        launch.device.remote || ["prefill.onnx", "decode.onnx", "meta.json"].iter().all(|f| launch.artifact.files.iter().any(|a| a == f));
    if launch.pass != Pass::Profile || !ready || !wrapped {
        return None;
    }
    Some((other.stage(launch).ok()?, other.steps(launch, paths)))
}

/// The launch's own files with those of the other tool, each once.
pub fn staged(launch: &Launch<'_>, mut own: Vec<StagedFile>) -> Vec<StagedFile> {
    let nowhere = Paths { work: String::new(), events: String::new() };
    for mut file in made(launch, &nowhere).map_or_else(Vec::new, |(files, _)| files) {
        if file.name == JOB_FILE {
            JOB.clone_into(&mut file.name);
        }
        if !own.iter().any(|known| known.name == file.name) {
            own.push(file);
        }
    }
    own
}

/// The other tool's steps, to be run before Genie's: what is left under a name of both is Genie's.
pub fn steps(launch: &Launch<'_>, paths: &Paths) -> Vec<Step> {
    let mut steps = made(launch, paths).map_or_else(Vec::new, |(_, steps)| steps);
    for step in &mut steps {
        if step.name == super::QUERY {
            STEP.clone_into(&mut step.name);
        }
        step.invocation.args.iter_mut().filter(|word| *word == JOB_FILE).for_each(|word| JOB.clone_into(word));
    }
    steps
}

/// Genie is measured whatever became of them.
pub fn excuse(step: &str, captured: &Captured) -> String {
    let ended = &captured.ended;
    let how = ended
        .signal
        .map_or_else(|| ended.code.map_or_else(|| ended.reason.clone(), |code| format!("exit status {code}")), |n| format!("signal {n}"));
    let said = captured.last_words(1);
    format!(
        "{step}: the tool that tells the operations of Genie's binaries failed ({how}{}{said})",
        if said.is_empty() { "" } else { ": " }
    )
}

/// Adds the layers that the other tool told.
pub fn layers(captured: &Captured, parsed: &mut Parsed) {
    let mut told = Parsed::default();
    profiles(captured, &mut told);
    if captured.files.contains_key(bench_backend_qnn::GRAPHS_FILE) {
        match Qnn.parse(captured) {
            Ok(other) => {
                told.layers.extend(other.layers);
                parsed.dram.extend(other.dram);
                told.warnings.extend(other.failure.map(|failure| failure.message));
            }
            Err(error) => told.warnings.push(error.to_string()),
        }
    }
    parsed.warnings.extend(told.warnings.into_iter().map(|warning| format!("{METHOD}: {warning}")));
    parsed.layers.extend(told.layers.into_iter().map(|mut layer| {
        layer.method = format!("{METHOD}, {}", layer.method);
        layer
    }));
}
