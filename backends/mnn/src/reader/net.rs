//! The tools for plain networks (`MNNV2Basic.out`, `ModuleBasic.out`, `timeProfile.out`, `benchmark.out`) and the operator tables that
//! `timeProfile.out` and `llm_bench --profile` share.

use bench_backend_api::{Failure, FailureKind, Layer, Unreadable, ValueMeans, text};

use super::{
    failures,
    row::{Place, Row, checked, number_value},
    value::{self, Bad},
};

/// What the plain-network tools printed.
#[derive(Debug, Default)]
pub(super) struct Net {
    /// One for each network.
    pub(super) rows: Vec<Row>,
    /// Operations.
    pub(super) layers: Vec<Layer>,
    /// What was odd.
    pub(super) warnings: Vec<String>,
}

/// A figure `key = 1.5 ms` of a line, in ms; `None` if the key is not there.
fn ms(line: &str, key: &str) -> Option<Result<f64, Bad>> {
    let (at, _) = line.match_indices(key).find(|(at, _)| {
        let before = line[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric()) && line[at + key.len()..].trim_start().starts_with(['=', ':'])
    })?;
    let rest = line[at + key.len()..].trim_start().trim_start_matches(['=', ':']).trim_start();
    let read = text::quantity(rest).and_then(|(value, unit)| text::to_ms(value, unit)).filter(|&ms| text::plausible_ms(ms));
    Some(read.ok_or_else(|| value::number(rest.split_whitespace().next().unwrap_or("").trim_end_matches(',')).err().unwrap_or(Bad::Text)))
}

/// Name of a model: the file's name without its folder and ending.
fn graph_name(path: &str) -> String {
    let name = path.trim().rsplit(['/', '\\']).next().unwrap_or("").trim();
    name.strip_suffix(".mnn").unwrap_or(name).to_owned()
}

/// Columns of the operator tables: split at tabs, or at wide gaps where a copy turned the tabs into spaces.
fn columns(line: &str) -> Vec<&str> {
    let parts: Vec<&str> = if line.contains('\t') { line.split('\t').collect() } else { line.split("  ").collect() };
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[derive(Default)]
struct State {
    graph: String,
    unit: Option<&'static str>,
    forward: Option<String>,
    fell_back: bool,
    info: Vec<(String, String)>,
}

/// Reads all lines; a file of other tools gives nothing.
pub(super) fn read(file: &str, lines: &[&str]) -> Result<Net, Unreadable> {
    let mut net = Net::default();
    let mut state = State::default();
    let mut table: Option<Vec<String>> = None;
    let (mut by_name, mut by_type) = (Vec::new(), Vec::new());
    let profiler = lines.iter().any(|line| line.contains("Operator Profile Results"));
    for (at, line) in lines.iter().enumerate() {
        let place = Place { file, line: at + 1 };
        note(&mut state, line);
        if line.contains("Node Name") || line.contains("Node Type") {
            let names: Vec<String> = columns(line).into_iter().map(str::to_owned).collect();
            table = names.iter().any(|name| name == "Avg(ms)").then_some(names);
            continue;
        }
        if let Some(header) = &table {
            if let Some(layer) = profiled(header, line, &state, profiler) {
                let typed = header.first().is_some_and(|name| name == "Node Type");
                if typed {
                    by_type.push(layer);
                } else {
                    by_name.push(layer);
                }
                continue;
            }
            if line.trim_start().starts_with("Sort by") || line.trim_start().starts_with("Print <=") {
                table = None;
            }
        }
        if let Some(layer) = averaged(line, &state) {
            net.layers.push(layer);
        } else if line.trim_start().starts_with("total time") && line.contains("flops") {
            // llama.cpp ends its timings with a `total time` too.
            table = None;
            if !profiler && let Some(read) = ms(line, "total time") {
                let mut row = network(&state);
                if let Some(total) = checked(read, line, place, &mut net.warnings)? {
                    row.measurement.metric("latency_ms", total);
                }
                row.report("latency_is", "sum of the operations' averages");
                row.report("total time", line.trim());
                net.rows.push(row);
            }
        } else if let Some(read) = ms(line, "Avg") {
            net.rows.push(network_row(&state, line, "Avg", read, place, &mut net.warnings)?);
        } else if let Some((name, _)) = line.split("[ - ]").nth(1).and_then(|rest| rest.trim().split_once(char::is_whitespace))
            && let Some(read) = ms(line, "avg")
        {
            state.graph = graph_name(name);
            net.rows.push(network_row(&state, line, "avg", read, place, &mut net.warnings)?);
        }
    }
    // Both tables hold the same time: one by operation, one by kind.
    net.layers.extend(if by_name.is_empty() { by_type } else { by_name });
    for (index, layer) in net.layers.iter_mut().enumerate() {
        layer.index = index as u32;
    }
    if !net.layers.is_empty() && state.unit.is_some_and(|unit| unit != "cpu") {
        net.warnings.push("MNN runs operations asynchronously on a GPU or NPU: times of single operations mean nothing there".to_owned());
    }
    Ok(net)
}

/// Remembers the model, where it ran, and what the tool says about its session.
fn note(state: &mut State, line: &str) {
    let line = line.trim();
    if let Some(path) = line.strip_prefix("Open Model ") {
        state.graph = graph_name(path);
    } else if let Some((path, _)) = line.strip_prefix("Test ").and_then(|rest| rest.split_once(" from input info")) {
        state.graph = graph_name(path);
    } else if let Some(number) = line.strip_prefix("Use extra forward type:") {
        state.forward = Some(number.trim().to_owned());
        state.unit = failures::forward_type(number).and_then(|(_, unit)| unit);
    } else if let Some(rest) = line.strip_prefix("Session Info:") {
        state.info.push(("Session Info".to_owned(), rest.trim().to_owned()));
        let ran = rest.split("backendType is").nth(1).map(str::trim);
        if ran.is_some_and(|ran| matches!(ran, "0" | "13")) && state.unit.is_some_and(|unit| unit != "cpu") {
            state.fell_back = true;
        }
    } else if let Some(rest) = line.strip_prefix("memoryInMB=f") {
        state.info.push(("memoryInMB".to_owned(), rest.split_whitespace().next().unwrap_or("").to_owned()));
    } else if let Some(rest) = line.strip_prefix("Forward type:") {
        state.info.push(("Forward type".to_owned(), rest.trim().to_owned()));
    } else if line.starts_with("Can't Find type=") {
        state.fell_back = true;
    }
}

fn network(state: &State) -> Row {
    let mut row = Row::new(state.graph.clone());
    if let Some(forward) = &state.forward {
        row.report_cell("forward type", forward);
    }
    for (name, text) in &state.info {
        row.report_cell(name, text);
    }
    row
}

fn network_row(
    state: &State,
    line: &str,
    avg: &str,
    read: Result<f64, Bad>,
    place: Place<'_>,
    warnings: &mut Vec<String>,
) -> Result<Row, Unreadable> {
    let mut row = network(state);
    if let Some(mean) = checked(read, line, place, warnings)? {
        row.measurement.metric("latency_ms", mean);
        row.report(avg, number_value(mean).unwrap_or_default());
    }
    if let Some(least) = ms(line, "min")
        && let Some(least) = checked(least, line, place, warnings)?
    {
        row.measurement.metric("latency_min_ms", least);
    }
    for name in ["max", "OpSum"] {
        if let Some(Ok(value)) = ms(line, name) {
            row.report(name, number_value(value).unwrap_or_default());
        }
    }
    if state.fell_back {
        let asked = state.forward.as_deref().and_then(failures::forward_type).map_or("another backend", |(name, _)| name);
        row.report("backend_used", "CPU");
        row.void(Failure {
            kind: FailureKind::Runtime,
            message: format!("{asked} was asked for and the session is the CPU's"),
            hint: Some("this build or device lacks the backend: put its library beside libMNN.so".to_owned()),
        });
    }
    Ok(row)
}

/// `NAME [Type] run 10 average cost 0.4526 ms, 8.1 %, FlopsRate: 6.4 %`.
fn averaged(line: &str, state: &State) -> Option<Layer> {
    let (left, right) = line.split_once("average cost")?;
    let (name, kind) = left.rsplit_once('[')?;
    let (kind, runs) = kind.split_once(']')?;
    let runs = runs.trim().strip_prefix("run")?.trim().parse().ok()?;
    let (value, unit) = text::quantity(right)?;
    let us = text::to_ms(value, unit).filter(|ms| (0.0..1e9).contains(ms))? * 1e3;
    Some(layer(state, name.trim(), Some(kind.trim()), us, Some(runs), "mnn-v2basic"))
}

/// A line of an operator table.
fn profiled(header: &[String], line: &str, state: &State, profiler: bool) -> Option<Layer> {
    let cells = columns(line);
    let cell = |name: &str| header.iter().position(|column| column == name).and_then(|at| cells.get(at)).copied();
    let ms = text::number(cell("Avg(ms)")?).filter(|ms| (0.0..1e9).contains(ms))?;
    let by_name = cell("Node Name");
    let kind = cell("Op Type").or_else(|| cell("Node Type"))?;
    let calls = cell("Called times").and_then(text::count).map(|count| count as u32);
    let method = match (profiler, by_name.is_some()) {
        (true, true) => "mnn-llm-bench-profile",
        (true, false) => "mnn-llm-bench-profile-by-type",
        (false, true) => "mnn-time-profile",
        (false, false) => "mnn-time-profile-by-type",
    };
    Some(layer(state, by_name.unwrap_or(kind), Some(kind), ms * 1e3, calls, method))
}

fn layer(state: &State, name: &str, op_type: Option<&str>, us: f64, count: Option<u32>, method: &str) -> Layer {
    Layer {
        graph: state.graph.clone(),
        phase: String::new(),
        index: 0,
        name: name.to_owned(),
        op_type: op_type.map(str::to_owned),
        unit: state.unit.map(str::to_owned),
        // Away with the binary noise of 0.0393 * 1000.
        value: Some((us * 1e6).round() / 1e6),
        value_unit: "us".to_owned(),
        count,
        method: method.to_owned(),
        value_means: Some(if method.ends_with("-by-type") { ValueMeans::WallTimeOfType } else { ValueMeans::WallTime }),
        ..Layer::default()
    }
}
