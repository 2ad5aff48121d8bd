//! QHAS: the HTP analysis summary (JSON) of qnn-profile-viewer's optrace reader.

use bench_backend_api::{Layer, ReadMeasurement, Reading, ValueMeans, text::plausible_rate};
use serde_json::Value;

use super::ops::{phase_of, report, time};

/// Whether a JSON value is such a summary.
pub fn is_summary(value: &Value) -> bool {
    value["header"]["artifact_type"] == "QHAS" || value["data"]["htp_overall_summary"].is_object()
}

/// Reads the summary. Its time is of one traced inference on the HTP alone: without the host, and with tracing on.
pub fn reading(value: &Value) -> Reading {
    let mut reading = Reading::default();
    let data = &value["data"];
    let model = value["model_id"].as_str().unwrap_or("").trim();
    let mut measurement = ReadMeasurement::new(if model.is_empty() { "inference" } else { model });
    let overall = &data["htp_overall_summary"]["data"];
    let cores = overall.as_array().map_or(0, Vec::len);
    if cores > 1 {
        reading.warnings.push(format!("the summary has {cores} HTP cores: the figures are those of the first"));
    }
    if let Some(us) = overall[0]["time_us"].as_f64() {
        match time("time_us", us, "us") {
            Ok(ms) => {
                measurement.metric("latency_ms", ms);
            }
            Err(warning) => reading.warnings.push(warning),
        }
    }
    if let Some(rate) = overall[0]["inf_per_s"].as_f64().filter(|&rate| plausible_rate(rate)) {
        measurement.metric("throughput_inf_s", rate);
    }
    if let Some(entries) = overall[0].as_object() {
        entries
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_f64()?)))
            .for_each(|(key, value)| report(&mut measurement, key, value));
    }
    if measurement.metrics.is_empty() {
        reading.warnings.push("the summary has no `time_us`".to_owned());
    } else {
        reading
            .warnings
            .push("a traced inference on the HTP alone: the host's part is not in this latency, and tracing slows the graph".to_owned());
    }
    let ops = data["qnn_op_instances_nodes"]["data"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, op) in ops.iter().enumerate() {
        let Some(name) = op["qnn_op"].as_str() else { continue };
        reading.layers.push(Layer {
            graph: model.to_owned(),
            phase: phase_of(model).to_owned(),
            index: index as u32,
            name: name.to_owned(),
            op_type: op["qnn_op_type"].as_str().map(str::to_owned),
            unit: Some("npu".to_owned()),
            value: op["cycles"].as_f64(),
            value_unit: "cycles".to_owned(),
            count: Some(1),
            method: "qnn-optrace".to_owned(),
            value_means: Some(ValueMeans::ThreadCycles),
            ..Layer::default()
        });
    }
    reading.measurements.push(measurement);
    reading
}
