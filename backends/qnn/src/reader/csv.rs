//! The profiling CSV of qnn-profile-viewer and of the QNN execution provider of ONNX Runtime.
//!
//! `Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier[,ONNX Source Ops]`. Identifiers are not quoted although
//! they can hold commas, so that a row is split from the left; the time can be the word `UNKNOWN`; the file is opened in append mode, so that it can
//! hold several headers and runs.

use bench_backend_api::{ReadMeasurement, Reading, npu::merged, text::number};

use super::npu;
use super::ops::{Op, add_latencies, is_total, layers, phase_of, report, time, with_total, with_unit};

/// `Layer::method` of these profiles.
const METHOD: &str = "qnn-detailed";

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Line of the file, from 1.
    pub line: usize,
    /// `EXECUTE`, `NODE`, `BACKEND`, `FINALIZE`, `INIT`, ...
    pub message: String,
    /// `None` for `UNKNOWN`.
    pub time: Option<f64>,
    /// `US`, `CYCLES`, `COUNT`, `BYTES`, `OBJECT`.
    pub unit: String,
    /// `BACKEND`, `NETRUN`, ...
    pub source: String,
    /// `ROOT` or `SUB-EVENT`.
    pub level: String,
    /// Name of the event or the operation.
    pub identifier: String,
}

/// Whether the text holds such a table.
pub fn is_csv(text: &str) -> bool {
    text.lines().any(is_header) || text.lines().take(50).filter(|line| row(line, 0, false).is_some()).count() > 1
}

fn is_header(line: &str) -> bool {
    let line = line.trim().to_ascii_lowercase();
    line.starts_with("msg timestamp,") && line.contains("event identifier")
}

fn row(line: &str, number_of_line: usize, with_source_ops: bool) -> Option<Row> {
    let fields: Vec<&str> = line.splitn(7, ',').map(str::trim).collect();
    let [_, message, value, unit, source, level, rest] = fields.as_slice() else { return None };
    let levelled = level.eq_ignore_ascii_case("ROOT") || level.to_ascii_uppercase().starts_with("SUB");
    if !levelled {
        return None;
    }
    let identifier = if with_source_ops { before_source_ops(rest) } else { rest };
    Some(Row {
        line: number_of_line,
        message: message.to_ascii_uppercase(),
        time: number(value),
        unit: unit.to_ascii_uppercase(),
        source: source.to_ascii_uppercase(),
        level: level.to_ascii_uppercase(),
        identifier: identifier.trim_matches('"').trim().to_owned(),
    })
}

/// The identifier before the column of source operations: up to the comma behind `(cycles)`, since the identifier may hold commas itself.
fn before_source_ops(rest: &str) -> &str {
    let end = rest.find("(cycles),").map(|at| at + "(cycles)".len()).or_else(|| rest.find(','));
    &rest[..end.unwrap_or(rest.len())]
}

/// The rows of a file, and what was odd.
pub fn rows(text: &str) -> (Vec<Row>, Vec<String>) {
    let (mut rows, mut warnings, mut skipped) = (Vec::new(), Vec::new(), 0);
    let mut with_source_ops = false;
    for (index, line) in text.lines().enumerate() {
        if is_header(line) {
            with_source_ops = line.to_ascii_lowercase().contains("source ops");
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let Some(row) = row(line, index + 1, with_source_ops) else {
            skipped += 1;
            if skipped <= 3 {
                warnings.push(format!("line {}: not a row of a QNN profile, skipped", index + 1));
            }
            continue;
        };
        if row.time.is_none() && !value_of(line).eq_ignore_ascii_case("UNKNOWN") {
            warnings.push(format!("line {}: `{}` is not a plain number, the value is left out", index + 1, value_of(line)));
        }
        rows.push(row);
    }
    if skipped > 3 {
        warnings.push(format!("{} more lines are not rows of a QNN profile", skipped - 3));
    }
    (rows, warnings)
}

fn value_of(line: &str) -> &str {
    line.split(',').nth(2).unwrap_or("").trim()
}

/// One execution of a graph.
#[derive(Default)]
struct Execution {
    roots: Vec<Row>,
    ops: Vec<Op>,
}
impl Execution {
    /// Name, value and unit of what is told of the whole.
    fn events(&self) -> impl Iterator<Item = (&str, f64, &str)> {
        self.roots.iter().filter_map(|row| Some((row.identifier.as_str(), row.time?, row.unit.as_str())))
    }

    fn find(&self, wanted: impl Fn(&Row) -> bool) -> Option<&Row> {
        self.roots.iter().find(|row| wanted(row) && row.time.is_some())
    }
}

fn is_execution(row: &Row) -> bool {
    const MARKS: [&str; 5] = ["(execute", "hvx", "vtcm acquire", "num times yield", "execute"];
    let identifier = row.identifier.to_ascii_lowercase();
    row.message == "EXECUTE" || MARKS.iter().any(|mark| identifier.contains(mark))
}

fn is_netrun(row: &Row) -> bool {
    (row.source.contains("NETRUN") || row.identifier.to_ascii_uppercase().contains("NETRUN")) && row.unit != "INF/SEC"
}

/// Splits rows into executions: an event that comes again begins the next one.
fn executions(rows: &[Row]) -> Vec<Execution> {
    let mut all: Vec<Execution> = Vec::new();
    let mut current = Execution::default();
    for row in rows {
        if row.message == "NODE" || (row.level != "ROOT" && row.unit == "CYCLES") {
            current.ops.push(Op::new(&row.identifier, row.time, &row.unit));
        } else if row.level == "ROOT" && is_execution(row) {
            let again = current
                .roots
                .iter()
                .any(|old| (&old.message, &old.source, &old.identifier) == (&row.message, &row.source, &row.identifier));
            if again {
                all.push(std::mem::take(&mut current));
            }
            current.roots.push(row.clone());
        }
    }
    if !current.roots.is_empty() || !current.ops.is_empty() {
        all.push(current);
    }
    all
}

/// Reads CSV files of one run; each with its name without the extension, which tells the graphs of several files apart.
pub fn reading(files: &[(&str, &str)]) -> Reading {
    let mut reading = Reading::default();
    for (name, text) in files {
        let (rows, warnings) = rows(text);
        reading.warnings.extend(warnings);
        let unit = rows.iter().any(|row| row.identifier.contains("HVX") || row.identifier.contains("ccelerator")).then_some("npu");
        let (load, load_reported, load_warnings) = load(&rows);
        reading.warnings.extend(load_warnings);

        // Executions with the same operations are executions of the same graph.
        let mut graphs: Vec<(Vec<String>, Vec<Execution>)> = Vec::new();
        for execution in executions(&rows) {
            let names: Vec<String> = execution.ops.iter().map(|op| op.name.clone()).collect();
            match graphs.iter_mut().find(|(known, _)| *known == names) {
                Some((_, list)) => list.push(execution),
                None => graphs.push((names, vec![execution])),
            }
        }
        let executions = graphs.iter().flat_map(|(_, executions)| executions);
        let told = npu::of_executions(executions.map(Execution::events));
        reading.npu = merged(reading.npu.take(), told.as_ref());
        let several = graphs.len() > 1;
        for (number, (_, executions)) in graphs.iter().enumerate() {
            let graph = match (files.len() > 1, several) {
                (false, false) => String::new(),
                (false, true) => format!("graph {number}"),
                (true, false) => (*name).to_owned(),
                (true, true) => format!("{name} graph {number}"),
            };
            let mut measurement = ReadMeasurement::new(if graph.is_empty() { "inference" } else { &graph });
            latencies(&mut measurement, executions, &mut reading.warnings);
            if number == 0 {
                if let Some(load) = load {
                    measurement.metric("load_ms", load);
                }
                for (key, value) in &load_reported {
                    report(&mut measurement, key, *value);
                }
            }
            if !measurement.metrics.is_empty() || !measurement.reported.is_empty() {
                reading.measurements.push(measurement);
            }
            let lists: Vec<&[Op]> = executions.iter().map(|execution| execution.ops.as_slice()).collect();
            let mut rows = layers(&lists, &graph, unit, METHOD);
            let total = |execution: &Execution| execution.find(|row| is_total(&row.identifier, METHOD))?.time;
            with_total(&mut rows, executions.iter().map(total));
            // A single file's graph has no name, but the file may be called after its phase.
            rows.iter_mut().filter(|layer| layer.phase.is_empty()).for_each(|layer| phase_of(name).clone_into(&mut layer.phase));
            reading.layers.extend(rows);
        }
        if graphs.is_empty() && (load.is_some() || !load_reported.is_empty()) {
            let mut measurement = ReadMeasurement::new("inference");
            if let Some(load) = load {
                measurement.metric("load_ms", load);
            }
            for (key, value) in &load_reported {
                report(&mut measurement, key, *value);
            }
            reading.measurements.push(measurement);
        }
        for row in rows.iter().filter(|row| row.unit.starts_with("INF/")) {
            if let (Some(value), Some(measurement)) = (row.time.filter(|&value| value > 0.0), reading.measurements.last_mut()) {
                measurement.metric("throughput_inf_s", value);
            }
        }
    }
    reading
}

/// Time to get ready: NetRun's own initialisation, else what QNN took to load or to finalize its graphs.
fn load(rows: &[Row]) -> (Option<f64>, Vec<(String, f64)>, Vec<String>) {
    let mut reported: Vec<(String, f64)> = Vec::new();
    let mut sums = [None::<f64>; 3];
    let mut warnings = Vec::new();
    for row in rows.iter().filter(|row| row.level == "ROOT") {
        let identifier = row.identifier.to_ascii_lowercase();
        let place = if row.message == "INIT" && is_netrun(row) {
            0
        } else if identifier.starts_with("qnn (load binary)") || identifier.starts_with("qnn (init)") {
            1
        } else if identifier.starts_with("qnn (finalize)") {
            2
        } else {
            continue;
        };
        let Some(value) = row.time else { continue };
        match time(&row.identifier, value, &row.unit) {
            Ok(ms) => {
                sums[place] = Some(sums[place].unwrap_or(0.0) + ms);
                let key = with_unit(&row.identifier, &row.unit);
                match reported.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, sum)) => *sum += value,
                    None => reported.push((key, value)),
                }
            }
            Err(warning) => warnings.push(format!("line {}: {warning}", row.line)),
        }
    }
    let ready = match (sums[1], sums[2]) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
    };
    (sums[0].or(ready), reported, warnings)
}

/// Latency: NetRun, else QNN's own execution time on the host, else the deepest of what is left.
fn latencies(measurement: &mut ReadMeasurement, executions: &[Execution], warnings: &mut Vec<String>) {
    let named = |wanted: &'static str| move |row: &Row| row.identifier.to_ascii_lowercase().starts_with(wanted) && row.unit != "CYCLES";
    let netrun = |row: &Row| row.message == "EXECUTE" && is_netrun(row);
    let pick = |wanted: &dyn Fn(&Row) -> bool| -> Vec<&Row> { executions.iter().filter_map(|execution| execution.find(wanted)).collect() };
    let sources: [(&str, Vec<&Row>); 5] = [
        ("NetRun", pick(&netrun)),
        ("QNN (execute) time", pick(&named("qnn (execute)"))),
        ("RPC (execute) time", pick(&named("rpc (execute)"))),
        ("QNN accelerator (execute) time", pick(&named("qnn accelerator (execute)"))),
        ("Accelerator (execute) time", pick(&named("accelerator (execute)"))),
    ];
    let Some((source, found)) = sources.into_iter().find(|(_, found)| !found.is_empty()) else { return };
    let mut values = Vec::new();
    for row in found {
        match time(source, row.time.unwrap_or(0.0), &row.unit) {
            Ok(ms) => values.push(ms),
            Err(warning) => warnings.push(format!("line {}: {warning}", row.line)),
        }
    }
    if !matches!(source, "NetRun" | "QNN (execute) time") {
        warnings.push(format!("the latency is `{source}`: the profile has no time of the whole execution"));
    }
    if let [first, rest @ ..] = values.as_slice()
        && rest.len() > 1
        && *first > 1.5 * rest.iter().sum::<f64>() / rest.len() as f64
    {
        warnings.push(format!("the first execution took {first:.3} ms, far more than the others (powering up); the mean includes it"));
    }
    add_latencies(measurement, &values);
    // Means of the parts of an execution, as the tool names them.
    let mut keys: Vec<String> = Vec::new();
    for row in executions.iter().flat_map(|execution| &execution.roots).filter(|row| row.time.is_some()) {
        let key = with_unit(&row.identifier, &row.unit);
        if row.unit != "INF/SEC" && !row.identifier.is_empty() && !keys.contains(&key) {
            let all: Vec<f64> = executions
                .iter()
                .flat_map(|execution| &execution.roots)
                .filter(|other| other.identifier == row.identifier && other.unit == row.unit)
                .filter_map(|other| other.time)
                .collect();
            report(measurement, &key, all.iter().sum::<f64>() / all.len() as f64);
            keys.push(key);
        }
    }
    report(measurement, "executions", executions.len() as f64);
}
