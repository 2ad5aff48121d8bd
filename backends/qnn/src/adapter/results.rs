//! What one graph's run and its profile say. No exit status is trusted: the tool must say that it finished, and leave results.

use bench_backend_api::{Captured, Failure, FailureKind, GraphTime, ParseError, Parsed, Reader, Reading, SourceFile, npu::merged};
use serde_json::Value;

use super::{FINISHED, TRACED};
use crate::{
    graphs::{self, Graph, Told},
    reader::{QnnReader, ops::phase_of},
};

pub(super) fn told(captured: &Captured) -> Result<Told, ParseError> {
    let error = |message: String| ParseError { file: graphs::FILE.to_owned(), message };
    let bytes = captured.files.get(graphs::FILE).ok_or_else(|| error("did not come back with the output".to_owned()))?;
    serde_json::from_slice(bytes).map_err(|e| error(e.to_string()))
}

/// Both output streams as one text: the tool's errors may be in either.
pub(super) fn words(captured: &Captured, prefix: &str) -> String {
    let text = |name: &str| captured.text(&format!("{prefix}{name}")).unwrap_or_default();
    format!("{}\n{}", text("stdout.txt"), text("stderr.txt"))
}

pub(super) fn has_results(graph: &Graph, captured: &Captured, prefix: &str) -> bool {
    let results = graph.results();
    results.is_empty() || results.iter().any(|name| captured.files.contains_key(&format!("{prefix}{name}")))
}

/// Whether one graph was run: exit status 0 alone is not enough, the tool must say that it finished and leave results.
pub(super) fn run_of(graph: &Graph, captured: &Captured, parsed: &mut Parsed) -> Option<Failure> {
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

/// Takes the DRAM traffic of the user's own traces (rule R25), by the phase that the graph's or the file's name tells.
pub(super) fn traced(captured: &Captured, parsed: &mut Parsed) {
    // Every output stands there twice: under its own name, and behind its step's.
    let own = |name: &str| {
        name.ends_with(TRACED) && !captured.files.keys().any(|k| k.len() < name.len() && k.ends_with(TRACED) && name.ends_with(k))
    };
    for (name, bytes) in captured.files.iter().filter(|(name, _)| own(name)) {
        match QnnReader.read(&[SourceFile { name: name.clone(), bytes: bytes.clone() }]) {
            Ok(reading) => parsed.dram.extend(reading.dram.into_iter().map(|mut traffic| {
                if traffic.phase.is_empty() {
                    phase_of(name).clone_into(&mut traffic.phase);
                }
                traffic.source = format!("{} of {name}", traffic.source);
                traffic
            })),
            Err(error) => parsed.warnings.push(error.to_string()),
        }
    }
}

/// Takes time and operations of one graph from what the viewer printed.
pub(super) fn profile_of(graph: &Graph, reading: Reading, executions: u32, parsed: &mut Parsed) -> Option<Failure> {
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
    // The viewer gives means of the executions that we asked for.
    let npu = reading.npu.map(|npu| npu.times(executions));
    parsed.parts.extend(npu.iter().flat_map(|npu| npu.parts(&graph.phase)));
    parsed.npu = merged(parsed.npu.take(), npu.as_ref());
    parsed.layers.extend(reading.layers.into_iter().map(|mut layer| {
        layer.phase.clone_from(&graph.phase);
        // The viewer averages over all executions and does not say of how many: we asked for them.
        layer.count = layer.count.or(Some(executions));
        layer
    }));
    None
}
