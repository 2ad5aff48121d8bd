//! ONNX Runtime's trace (`-p`, `enable_profiling`): a JSON array of Chrome trace events, one a line, times in us. It has no end after a crash.

use std::collections::HashMap;

use bench_backend_api::{Layer, ReadMeasurement, Reading, ValueMeans, text::plausible_ms};
use bench_backend_qnn::ops::{add_latencies, report};
use serde_json::Value;

/// Whether the text begins like a trace.
pub fn is_trace(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('[') && text.contains("\"ph\"") && text.contains("\"cat\"")
        || (text.starts_with('{') && text.contains("\"traceEvents\"") && !text.contains("GENIE"))
}

/// The provider of this backend.
pub(super) const QNN: &str = "QNNExecutionProvider";

/// Where a node ran, by its provider.
pub(super) fn unit(provider: &str) -> Option<&'static str> {
    match provider {
        "CPUExecutionProvider" | "XnnpackExecutionProvider" => Some("cpu"),
        QNN => Some("npu"),
        "CUDAExecutionProvider" | "DmlExecutionProvider" | "WebGpuExecutionProvider" => Some("gpu"),
        _ => None,
    }
}

/// Events, and whether the array was cut.
fn events(text: &str) -> Result<(Vec<Value>, bool), String> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(events)) => return Ok((events, false)),
        Ok(Value::Object(mut object)) => {
            return match object.remove("traceEvents") {
                Some(Value::Array(events)) => Ok((events, false)),
                _ => Err("JSON without an array of trace events".to_owned()),
            };
        }
        Ok(_) => return Err("JSON, but no trace".to_owned()),
        Err(_) => {}
    }
    // One event a line: those that are whole are kept.
    let (mut events, mut bad) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim().trim_start_matches('[').trim_end_matches(']').trim().trim_end_matches(',');
        if line.is_empty() {
            continue;
        }
        match serde_json::from_str::<Value>(line) {
            Ok(event) => events.push(event),
            Err(error) => bad = bad.or(Some(format!("line {}: {error}", index + 1))),
        }
    }
    if events.is_empty() {
        return Err(format!("the trace holds no whole event: {}", bad.unwrap_or_else(|| "it is cut".to_owned())));
    }
    Ok((events, true))
}

/// Reads the trace. With `generative`, the first run is a prompt's and the others are a token's: they are no executions of the same thing, so that
/// there is no latency, and operations are told apart by phase.
pub fn reading(text: &str, generative: bool) -> Result<Reading, String> {
    let (events, cut) = events(text)?;
    let mut reading = Reading::default();
    if cut {
        reading.warnings.push("the trace is not closed: the process ended before its end, what is whole is read".to_owned());
    }
    let (mut load, mut runs) = (0.0, Vec::new());
    let mut nodes: Vec<(Layer, f64, u32)> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    let mut on_cpu = 0_usize;
    for event in &events {
        let (Some(name), Some(us)) = (event["name"].as_str(), event["dur"].as_f64()) else { continue };
        if us < 0.0 {
            continue;
        }
        match event["cat"].as_str() {
            Some("Session") if name.starts_with("model_loading") || name == "session_initialization" => load += us / 1e3,
            Some("Session") if name == "model_run" => runs.push(us / 1e3),
            Some("Node") => {
                let Some(node) = name.strip_suffix("_kernel_time") else { continue };
                let args = &event["args"];
                let unit = args["provider"].as_str().and_then(unit);
                on_cpu += usize::from(unit == Some("cpu"));
                // A run's own event stands behind those of its nodes.
                let phase = match (generative, runs.is_empty()) {
                    (false, _) => "",
                    (true, true) => "prefill",
                    (true, false) => "decode",
                };
                let place = *places.entry((phase, node)).or_insert(nodes.len());
                if let Some((_, sum, count)) = nodes.get_mut(place) {
                    *sum += us;
                    *count += 1;
                    continue;
                }
                let layer = Layer {
                    graph: String::new(),
                    phase: phase.to_owned(),
                    index: nodes.iter().filter(|(layer, ..)| layer.phase == phase).count() as u32,
                    name: node.to_owned(),
                    op_type: args["op_name"].as_str().map(str::to_owned),
                    unit: unit.map(str::to_owned),
                    value: None,
                    value_unit: "us".to_owned(),
                    count: None,
                    method: "ort-trace".to_owned(),
                    value_means: Some(ValueMeans::WallTime),
                    ..Layer::default()
                };
                nodes.push((layer, us, 1));
            }
            _ => {}
        }
    }
    let total: u32 = nodes.iter().map(|(_, _, count)| count).sum();
    if total > 0 && on_cpu == total as usize {
        reading.warnings.push("every node of the trace ran on the CPU: the NPU did nothing".to_owned());
    } else if on_cpu > 0 {
        reading.warnings.push(format!("{on_cpu} of {total} node runs were on the CPU"));
    }
    // The mean of a node's runs, like the operations of QNN's own profile.
    reading.layers =
        nodes.into_iter().map(|(layer, sum, count)| Layer { value: Some(sum / f64::from(count)), count: Some(count), ..layer }).collect();
    let mut measurement = ReadMeasurement::new("inference");
    if !generative {
        add_latencies(&mut measurement, &runs);
    }
    if plausible_ms(load) {
        measurement.metric("load_ms", load);
    }
    if !runs.is_empty() {
        report(&mut measurement, "model_run events", runs.len() as f64);
    }
    if !measurement.metrics.is_empty() {
        reading.measurements.push(measurement);
    }
    Ok(reading)
}
