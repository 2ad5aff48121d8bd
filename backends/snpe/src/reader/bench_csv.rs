//! The `benchmark_stats` CSV of `snpe_bench.py`: a table whose columns are groups of four (average, max, min, runtime), one group for each
//! runtime that was tried, and whose rows are figures of the whole and `layer_000 (Name:X Type:Y)`.

use bench_backend_api::{
    Layer, ReadMeasurement, Reading, ValueMeans,
    text::{number, plausible_ms},
};

use super::unit;

/// One runtime's columns.
struct Group {
    /// `GPU_ub_float`.
    name: String,
    /// Runs that the averages are of.
    runs: Option<u32>,
    /// The first of the four columns.
    column: usize,
}

/// Reads the table; `None` when the text has none.
pub(super) fn reading(content: &str) -> Option<Reading> {
    // Rows are of any length: settings first, then the table.
    let rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(content.as_bytes()).into_records();
    let mut groups: Vec<Group> = Vec::new();
    let (mut unit_of_time, mut version) = (None, None);
    let mut measurements: Vec<ReadMeasurement> = Vec::new();
    let mut reading = Reading::default();
    for row in rows.map_while(Result::ok) {
        let cell = |column: usize| row.get(column).unwrap_or("").trim();
        let line = row.position().map_or(0, csv::Position::line);
        if cell(0).starts_with("SNPE SDK version") {
            version = Some(cell(1).to_owned());
        } else if groups.is_empty() {
            groups = row.iter().enumerate().filter_map(|(column, text)| group(text, column)).collect();
            measurements = groups.iter().map(|group| ReadMeasurement::new(&group.name)).collect();
        } else if let Some(unit) = cell(groups[0].column).strip_prefix("avg (").and_then(|rest| rest.strip_suffix(')')) {
            unit_of_time = Some(unit.to_owned());
        } else if !cell(2).is_empty() && unit_of_time.as_deref() == Some("us") {
            for (group, measurement) in groups.iter().zip(&mut measurements) {
                let [average, _, min] = [0, 1, 2].map(|n| number(cell(group.column + n)).filter(|us| *us >= 0.0));
                let runtime = cell(group.column + 3);
                let Some(us) = average else {
                    if !cell(group.column).is_empty() {
                        reading
                            .warnings
                            .push(format!("line {line}: `{}` is not a plain number, the value is left out", cell(group.column)));
                    }
                    continue;
                };
                match layer_of(cell(2)) {
                    Some((index, name, kind)) => reading.layers.push(layer(group, index, name, kind, us, runtime)),
                    None => whole(measurement, cell(2), us, min, runtime),
                }
            }
        }
    }
    if groups.is_empty() {
        return None;
    }
    if unit_of_time.as_deref() != Some("us") {
        reading.warnings.push("the table's head does not say `avg (us)`: its figures are left out".to_owned());
    }
    for measurement in &mut measurements {
        measurement.reported.extend(version.as_ref().map(|version| ("SNPE SDK version".to_owned(), version.as_str().into())));
    }
    // Layers of a runtime together, as in the other profiles.
    let place = |graph: &str| groups.iter().position(|group| group.name == graph);
    reading.layers.sort_by_key(|layer| (place(&layer.graph), layer.index));
    reading.measurements = measurements;
    Some(reading)
}

/// `GPU_ub_float_timing(2 runs)`.
fn group(text: &str, column: usize) -> Option<Group> {
    let (name, rest) = text.trim().split_once("_timing")?;
    let runs = rest.trim().trim_start_matches('(').split_whitespace().next().and_then(|n| n.parse().ok());
    Some(Group { name: name.to_owned(), runs, column })
}

/// What is told of the whole. A 0 is what does not apply to the runtime.
fn whole(measurement: &mut ReadMeasurement, name: &str, us: f64, min: Option<f64>, runtime: &str) {
    if !plausible_ms(us / 1e3) {
        return;
    }
    measurement.report(format!("{name} (us)"), us);
    match name {
        "Total Inference Time" => {
            measurement.metric("latency_ms", us / 1e3);
            min.filter(|us| plausible_ms(us / 1e3)).map(|us| measurement.metric("latency_min_ms", us / 1e3));
            measurement.reported.insert("runtime".to_owned(), runtime.into());
        }
        "Init" => {
            measurement.metric("load_ms", us / 1e3);
        }
        _ => {}
    }
}

/// `layer_001 (Name:Conv_0 Type:convolutional)`.
fn layer_of(text: &str) -> Option<(u32, &str, Option<&str>)> {
    let (index, rest) = text.strip_prefix("layer_")?.split_once(' ')?;
    let rest = rest.trim().strip_prefix("(Name:")?.strip_suffix(')')?;
    let (name, kind) = rest.rsplit_once(" Type:").map_or((rest, None), |(name, kind)| (name, Some(kind)));
    Some((index.parse().ok()?, name, kind))
}

fn layer(group: &Group, index: u32, name: &str, kind: Option<&str>, us: f64, runtime: &str) -> Layer {
    Layer {
        graph: group.name.clone(),
        index,
        name: name.to_owned(),
        op_type: kind.map(str::to_owned),
        unit: unit(runtime).map(str::to_owned),
        value: Some(us),
        value_unit: "us".to_owned(),
        count: group.runs,
        method: "snpe-bench".to_owned(),
        value_means: Some(ValueMeans::WallTime),
        ..Layer::default()
    }
}
