//! The text of `snpe-diagview`, of SNPE 1 and 2 (`Layer Times:`, no names) and of QAIRT (`Per-Layer Execution Times:`, with names).
//!
//! A layer is `INDEX: [NAME :] VALUE UNIT : RUNTIME`. Names hold colons, so that a line is split from the right. Layers on the CPU and the
//! GPU are in us, those on the DSP in cycles, which are summed over its threads and are no time.

use bench_backend_api::{
    Layer, ReadMeasurement, Reading, ValueMeans,
    text::{number, plausible_ms, to_ms},
};

use super::unit;

/// Lines under which the figures of the whole stand.
const TIMES: [&str; 15] = [
    "Load",
    "Deserialize",
    "Create",
    "Init",
    "De-Init",
    "Create Network(s)",
    "RPC Init Time",
    "Snpe Accelerator Init Time",
    "Accelerator Init Time",
    "Total Inference Time",
    "Forward Propagate Time",
    "RPC Execute Time",
    "Snpe Accelerator Time",
    "Accelerator Time",
    "Misc Accelerator Time",
];

/// Reads the text; `None` when it is not diagview's.
pub(super) fn reading(content: &str) -> Option<Reading> {
    let known = content.contains("Statistics") && ["Total Inference Time:", "Deserialize:"].iter().any(|key| content.contains(key));
    if !known {
        return None;
    }
    let mut reading = Reading::default();
    let mut measurement = ReadMeasurement::new("inference");
    let (mut layers, mut inside, mut subnets) = (None, "", Vec::new());
    for (at, line) in content.lines().enumerate() {
        let text = line.trim();
        match text {
            "Layer Times:" | "Per-Layer Execution Times:" => {
                inside = "layers";
                layers.get_or_insert((at + 1, 0_usize));
                continue;
            }
            "Per-Subnet Execution Times:" => {
                inside = "subnets";
                continue;
            }
            _ => {}
        }
        if let Some(version) = text.strip_prefix("Software library version:") {
            measurement.reported.insert("Software library version".to_owned(), version.trim().into());
        } else if inside == "layers" && text == ".." {
            reading.warnings.push(format!("line {}: the list of layers is not whole (`..`)", at + 1));
        } else if let Some(layer) = (inside == "layers").then(|| layer(text)).flatten() {
            // Of a list with gaps, a layer's own number is its place.
            layers = layers.map(|(line, n)| (line, n + 1));
            reading.layers.push(layer);
        } else if let Some((key, value)) = text.rsplit_once(':').map(|(key, value)| (key.trim(), value.trim())) {
            let subnet = inside == "subnets" && key.starts_with("Subnet");
            if subnet {
                let mut words = value.split_whitespace();
                subnets.push((words.next().and_then(number), words.next().unwrap_or("").to_owned()));
            }
            if subnet || TIMES.contains(&key) {
                figure(&mut measurement, key, value, at + 1, &mut reading.warnings);
            } else if key == "Num times yield occurred" {
                number(value).map(|n| measurement.report(key, n));
            }
        }
    }
    if let Some((line, 0)) = layers {
        reading.warnings.push(format!("line {line}: no layer under the heading"));
    }
    if !measurement.metrics.contains_key("latency_ms") {
        reading.warnings.push("the log holds no time of an inference".to_owned());
    }
    // Which layers belong to which of several subnets is not told.
    if let [(Some(total), unit)] = subnets.as_slice() {
        reading.layers.iter_mut().filter(|layer| layer.value_unit == *unit).for_each(|layer| layer.graph_total = Some(*total));
    }
    reading.measurements.push(measurement);
    Some(reading)
}

/// `VALUE UNIT`, `0 NONE`, or `0` without a unit: what does not apply to this runtime.
fn figure(measurement: &mut ReadMeasurement, key: &str, value: &str, line: usize, warnings: &mut Vec<String>) {
    let (value, unit) = value.split_once(char::is_whitespace).map_or((value, ""), |(value, unit)| (value, unit.trim()));
    let Some(n) = number(value) else {
        warnings.push(format!("line {line}: `{value}` is not a plain number, {key} is left out"));
        return;
    };
    if n <= 0.0 {
        return;
    }
    measurement.report(format!("{key} ({unit})"), n);
    let metric = match key {
        "Total Inference Time" => "latency_ms",
        "Init" => "load_ms",
        _ => return,
    };
    match to_ms(n, unit).filter(|ms| plausible_ms(*ms)) {
        Some(ms) => {
            measurement.metric(metric, ms);
        }
        None => warnings.push(format!("line {line}: {key}: {value} {unit} can not be a measurement, the value is left out")),
    }
}

fn layer(text: &str) -> Option<Layer> {
    let (rest, runtime) = text.rsplit_once(':')?;
    let (rest, value) = rest.rsplit_once(':')?;
    let (index, name) = rest.split_once(':').map_or((rest, ""), |(index, name)| (index, name.trim()));
    let index: u32 = index.trim().parse().ok()?;
    let mut words = value.split_whitespace();
    let (value, value_unit) = (number(words.next()?)?, words.next().unwrap_or("NONE"));
    let (value, value_unit) = match value_unit {
        "us" | "cycles" => (Some(value), value_unit),
        // Not in this profile.
        _ => (None, "us"),
    };
    let name = name.strip_suffix("(cycles)").unwrap_or(name).trim_end();
    Some(Layer {
        index,
        name: if name.is_empty() { format!("layer {index}") } else { name.to_owned() },
        unit: unit(runtime).map(str::to_owned),
        value: value.filter(|value| *value >= 0.0),
        value_unit: value_unit.to_owned(),
        // No `count`: the log's average is over executions that it does not number.
        method: "snpe-diagview".to_owned(),
        value_means: Some(if value_unit == "cycles" { ValueMeans::ThreadCycles } else { ValueMeans::WallTime }),
        ..Layer::default()
    })
}
