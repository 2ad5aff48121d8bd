//! ONNX Runtime on a device that is another machine: our runner where it is built for it, else onnxruntime_perf_test over the two graphs,
//! which has no token loop (rule R11).

use std::sync::LazyLock;

use bench_backend_api::{
    Availability, Axis, Captured, Check, Checks, DeviceFacts, Failure, FailureKind, GraphTime, Installed, JOB_FILE, Launch, Need,
    ParseError, Parsed, Pass, Paths, Source, StagedFile, Step, note,
    tool::{self, Told, Tool, Words},
};
use bench_backend_qnn::context;
use serde_json::Value;

use super::PROFILES;
use crate::reader::OrtQnnReader;

static RUNNER: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../../device/bench-ort-qnn-runner.toml")).expect("the description is checked by a test"));
static PERF_TEST: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../../device/onnxruntime_perf_test.toml")).expect("the description is checked by a test"));

const RUNNER_NAME: &str = "bench-ort-qnn-runner";
const PERF_TEST_NAME: &str = "onnxruntime_perf_test";

/// The programs that `variant` can ask for; the first one runs on this machine too.
pub const PROGRAMS: [&str; 2] = [RUNNER_NAME, PERF_TEST_NAME];

/// Executions of each graph behind one average.
const EXECUTIONS: u32 = 20;

/// Name of the provider as perf_test and our runner register it.
const PROVIDER: &str = "QNNExecutionProvider";

/// The program of a launch, the best first.
fn best(device: &DeviceFacts, installed: &Installed) -> Result<&'static str, Availability> {
    tool::best(&[(RUNNER_NAME, &*RUNNER), (PERF_TEST_NAME, &*PERF_TEST)], device, installed)
}

fn tool_of(launch: &Launch<'_>) -> &'static str {
    match launch.cell.asked(Axis::Variant) {
        Some(PERF_TEST_NAME) => PERF_TEST_NAME,
        Some(RUNNER_NAME) => RUNNER_NAME,
        _ => best(launch.device, launch.installed).unwrap_or(RUNNER_NAME),
    }
}

pub fn needs(device: &DeviceFacts) -> Vec<Need> {
    RUNNER.all_needs(device).into_iter().chain(PERF_TEST.all_needs(device)).collect()
}

pub fn probe(device: &DeviceFacts, installed: &Installed) -> Availability {
    let tool = match context::reachable(device).and_then(|()| best(device, installed)) {
        Ok(tool) => tool,
        Err(missing) => return missing,
    };
    let version = tool::version_of("onnxruntime", installed, &RUNNER.library("libonnxruntime.so", device));
    Availability::Ready { version: format!("{version}, {tool}") }
}

/// Everything but the artifact's files and the job, which is made as on this machine.
pub fn stage(launch: &Launch<'_>, job: impl FnOnce() -> Result<Vec<u8>, Failure>) -> Result<Vec<StagedFile>, Failure> {
    context::fits(launch)?;
    let (device, tool) = (launch.device, tool_of(launch));
    let mut told = Told { tool: tool.to_owned(), ..Told::default() };
    let mut note = |key: &str, value: String| told.notes.insert(key.to_owned(), value);
    note("engine", "graph".to_owned());
    note("perf_profile", launch.cell.asked(Axis::PerfProfile).unwrap_or("runtime-default").to_owned());
    let chunk = launch.cell.model.chunk.map(u64::from).or_else(|| launch.artifact.meta.pointer("/graphs/prefill/tokens")?.as_u64());
    if let Some(chunk) = chunk {
        note(note::CHUNK, chunk.to_string());
        note(note::CONTEXT, launch.cell.model.context.to_string());
    }
    let mut files = if tool == RUNNER_NAME {
        note("ttft_method", "token_event".to_owned());
        let mut files = tool::staged(&[&RUNNER], device, launch.installed)?;
        files.push(StagedFile { name: JOB_FILE.to_owned(), source: Source::Bytes(job()?) });
        files
    } else {
        note("executions", EXECUTIONS.to_string());
        graphs_are_there(launch)?;
        if chunk.is_none() {
            // A prefill is composed of as many executions as the prompt has chunks.
            let message = "the AR of prefill.onnx is unknown, without which no prefill can be composed".to_owned();
            let hint = format!("state `chunk` in [models.{}]", launch.cell.model.name);
            return Err(Failure { kind: FailureKind::Usage, message, hint: Some(hint) });
        }
        let mut files = tool::staged(&[&PERF_TEST], device, launch.installed)?;
        files.extend(PERF_TEST.stage_extra("plugin", "the provider", device, launch.installed).unwrap_or_default());
        files
    };
    files.push(told.staged());
    Ok(files)
}

/// Figures are composed over both graphs, or not at all.
fn graphs_are_there(launch: &Launch<'_>) -> Result<(), Failure> {
    let missing = PROFILES.iter().map(|(phase, _)| model_of(phase)).find(|model| !launch.artifact.files.contains(model));
    match missing {
        None => Ok(()),
        Some(model) => Err(Failure::new(
            FailureKind::Usage,
            format!("the artifact has no {model}: onnxruntime_perf_test runs prefill.onnx and decode.onnx, each a whole graph"),
        )),
    }
}

fn model_of(phase: &str) -> String {
    format!("{phase}.onnx")
}

pub fn steps(launch: &Launch<'_>, paths: &Paths, outputs: Vec<String>) -> Vec<Step> {
    let device = launch.device;
    let told = [Told::FILE.to_owned()];
    if tool_of(launch) == RUNNER_NAME {
        let outputs = told.into_iter().chain(outputs).collect();
        return vec![RUNNER.step("query", device, paths, &Words::from([("job", JOB_FILE.to_owned())]), outputs)];
    }
    let plugin = launch.installed.missing(&PERF_TEST.extra("plugin", device)).is_none();
    let step = |(phase, profile): &(&str, &str)| {
        let mut words = Words::from([
            ("executions", EXECUTIONS.to_string()),
            ("options", options(launch, profile)),
            ("model", model_of(phase)),
            ("result", format!("{phase}.csv")),
        ]);
        words.extend(if plugin { [("plugin", PROVIDER.to_owned())] } else { [("inside", "qnn".to_owned())] });
        let outputs = told.iter().cloned().chain(outputs.iter().filter(|o| o == profile).cloned()).collect();
        PERF_TEST.step(phase, device, paths, &words, outputs)
    };
    PROFILES.iter().map(step).collect()
}

/// The provider's options in perf_test's form.
fn options(launch: &Launch<'_>, profile: &str) -> String {
    let mut options = vec!["backend_path|libQnnHtp.so".to_owned()];
    options.extend(launch.cell.asked(Axis::PerfProfile).map(|mode| format!("htp_performance_mode|{mode}")));
    if launch.pass == Pass::Profile {
        options.push("profiling_level|detailed".to_owned());
        options.push(format!("profiling_file_path|{profile}"));
    }
    options.join(" ")
}

/// Whether a captured launch ran graphs without a token loop.
pub fn composes(captured: &Captured) -> bool {
    Told::of(captured).is_some_and(|told| told.tool == PERF_TEST_NAME)
}

/// What perf_test printed of both graphs. No exit status is trusted: an average has to be there.
pub fn read(captured: &Captured) -> Result<Parsed, ParseError> {
    let mut parsed = Parsed::default();
    let told = Told::of(captured).unwrap_or_default();
    let number = |key: &str| told.notes.get(key).and_then(|n| n.parse::<u32>().ok());
    for (phase, _) in PROFILES {
        let [stdout, stderr] = ["stdout.txt", "stderr.txt"].map(|name| format!("{phase}/{name}"));
        // Steps after a failed one did not run.
        let Some(reading) = tool::read(&OrtQnnReader, captured, &[&stdout, &stderr])? else { break };
        parsed.warnings.extend(reading.warnings.into_iter().map(|w| format!("{phase}: {w}")));
        if let Some(mut failure) = reading.failure {
            failure.message = format!("{phase}: {}", failure.message);
            parsed.failure = Some(failure);
            break;
        }
        let latency = reading.measurements.iter().find_map(|m| m.metrics.get("latency_ms").and_then(Value::as_f64));
        let Some(latency_ms) = latency else {
            parsed.failure = Some(Failure::new(FailureKind::Runtime, format!("{phase}: onnxruntime_perf_test printed no average")));
            break;
        };
        let tokens = if phase == "decode" { Some(1) } else { number("chunk") };
        let graph = GraphTime {
            phase: phase.to_owned(),
            // Composing refuses what is unknown.
            tokens: tokens.unwrap_or(0),
            part: 1,
            parts: 1,
            n: number("executions").unwrap_or(EXECUTIONS),
            latency_ms,
        };
        parsed.graphs.push(graph);
    }
    if parsed.failure.is_none() && parsed.graphs.len() < PROFILES.len() {
        parsed.failure = Some(Failure::new(FailureKind::Runtime, "onnxruntime_perf_test printed nothing for one of the graphs"));
    }
    Ok(parsed)
}

/// There is no token; the fallback to the CPU is forbidden, so that a session that was made is QNN's.
pub fn verify(parsed: &Parsed, captured: &Captured) -> Checks {
    let mapped = captured.evidence.mapped.iter().any(|l| l.contains("libQnnHtp"));
    let mut reasons =
        vec!["no token loop: onnxruntime_perf_test times whole graphs, so that there are no tokens to count or to compare".to_owned()];
    if !mapped {
        reasons.push("libQnnHtp.so was not seen in the process".to_owned());
    }
    let whole = PROFILES.iter().all(|(phase, _)| parsed.graphs.iter().any(|g| g.phase == *phase));
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
