//! QHAS: the HTP analysis summary (JSON) of qnn-profile-viewer's optrace reader.

use bench_backend_api::{
    DramTraffic, Layer, ReadMeasurement, Reading, ValueMeans,
    text::{plausible_ms, plausible_rate},
};
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
    traffic(&overall[0], model, &mut measurement, &mut reading);
    layers(data, overall[0]["qnn_nodes"].as_u64(), model, &mut reading);
    reading.measurements.push(measurement);
    reading
}

/// Bytes between the HTP and the DRAM, and the bandwidth that they make over the time of the inference: counted, not estimated (rule R25).
fn traffic(overall: &Value, model: &str, measurement: &mut ReadMeasurement, reading: &mut Reading) {
    let bytes = |key: &str| overall[key].as_f64().filter(|bytes| (0.0..1e15).contains(bytes));
    let (Some(read), Some(write)) = (bytes("total_dram_read"), bytes("total_dram_write")) else { return };
    let Some(time_us) = overall["time_us"].as_f64().filter(|us| plausible_ms(us / 1e3)) else { return };
    let traffic =
        DramTraffic { phase: phase_of(model).to_owned(), read_bytes: read, write_bytes: write, time_us, source: "qnn-optrace".to_owned() };
    measurement.metric("dram_read_mb", read / 1e6).metric("dram_write_mb", write / 1e6).metric("dram_gb_s", traffic.gb_s());
    reading.dram.push(traffic);
}

/// Operations of the graph, else, where the summary has none, types of them.
fn layers(data: &Value, nodes: Option<u64>, model: &str, reading: &mut Reading) {
    let list = |key: &str| data[key]["data"].as_array().map_or(&[][..], Vec::as_slice);
    let (ops, types) = (list("qnn_op_instances_nodes"), list("qnn_op_types"));
    let (rows, name, method) = if ops.is_empty() { (types, "op", "qnn-optrace-by-type") } else { (ops, "qnn_op", "qnn-optrace") };
    if let Some(nodes) = nodes.filter(|nodes| !ops.is_empty() && *nodes > ops.len() as u64) {
        reading.warnings.push(format!("the summary lists {} of the graph's {nodes} operations", ops.len()));
    }
    for (index, row) in rows.iter().enumerate() {
        let Some(name) = row[name].as_str() else { continue };
        let details = DETAILS.iter().filter_map(|(key, name)| Some(((*name).to_owned(), row[key].as_f64()?.to_string())));
        reading.layers.push(Layer {
            graph: model.to_owned(),
            phase: phase_of(model).to_owned(),
            index: index as u32,
            name: name.to_owned(),
            op_type: row["qnn_op_type"].as_str().or(row["op"].as_str()).map(str::to_owned),
            unit: Some("npu".to_owned()),
            value: row["cycles"].as_f64(),
            value_unit: "cycles".to_owned(),
            count: Some(1),
            method: method.to_owned(),
            value_means: Some(ValueMeans::ThreadCycles),
            details: details.collect(),
            ..Layer::default()
        });
    }
}

/// What the summary says of an operation, and our name of it.
const DETAILS: [(&str, &str); 6] = [
    ("num_htp_ops", "htp_ops"),
    ("num_dominant_path_cycles_htp_0", "dominant_path_cycles"),
    ("dram_read", "dram_read_bytes"),
    ("dram_write", "dram_write_bytes"),
    ("vtcm_read", "vtcm_read_bytes"),
    ("vtcm_write", "vtcm_write_bytes"),
];
