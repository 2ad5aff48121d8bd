//! The profiling CSV of qnn-profile-viewer and of the QNN execution provider of ONNX Runtime.
//!
//! `Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier[,ONNX Source Ops]`. Identifiers are not quoted although
//! they can hold commas, so that a row is split from the left; the time can be the word `UNKNOWN`; the file is opened in append mode, so that it can
//! hold several headers and runs. It has a row for each operation of each execution, hence gigabytes where somebody profiled for long: rows are
//! added up as they come.

mod graph;
mod row;

use std::io::{self, BufRead};

use bench_backend_api::{
    Nest, NpuProfile, ReadMeasurement, Reading,
    npu::merged,
    text::{each_line, plausible_rate},
};

use self::{
    graph::{Event, Graph},
    row::{Row, is, is_header},
};
use super::npu;
use super::ops::{Op, phase_of, report, time, with_total, with_unit};

/// `Layer::method` of these profiles.
const METHOD: &str = "qnn-detailed";

/// Operations of one execution, and of all graphs.
const MOST_OPS: usize = 1 << 20;
/// Events of one execution, and of loading.
const MOST_EVENTS: usize = 256;
/// Graphs of one file.
const MOST_GRAPHS: usize = 256;
/// Warnings kept.
const MOST_WARNINGS: usize = 1000;

/// Whether the text holds such a table.
pub fn is_csv(text: &str) -> bool {
    text.lines().any(is_header) || text.lines().take(50).filter(|line| Row::of(line, false).is_some()).count() > 1
}

/// Reads CSV files of one run; each with its name without the extension, which tells the graphs of several files apart.
pub fn reading(files: &[(&str, &str)]) -> Reading {
    let mut reading = Reading::default();
    for (name, text) in files {
        let mut profile = Profile::default();
        text.lines().for_each(|line| profile.line(line));
        profile.finish(name, files.len() > 1, &mut reading);
    }
    reading
}

/// Reads one file of any size.
///
/// # Errors
/// As [`each_line`].
pub fn stream(name: &str, from: &mut dyn BufRead) -> io::Result<Reading> {
    let mut profile = Profile::default();
    each_line(from, |line| profile.line(line))?;
    let mut reading = Reading::default();
    profile.finish(name, false, &mut reading);
    Ok(reading)
}

/// One file, as far as it was read.
#[derive(Default)]
struct Profile {
    /// Lines so far.
    lines: usize,
    with_source_ops: bool,
    /// Lines that are no rows.
    skipped: usize,
    warnings: Vec<String>,
    /// An event names a part of the NPU.
    on_npu: bool,
    load: Load,
    current: Execution,
    graphs: Vec<Graph>,
    /// Operations of all of them.
    kept: usize,
    /// What did not fit.
    beyond: usize,
    npu: Option<NpuProfile>,
    /// Times of loading.
    nest: Nest,
    throughput: Option<f64>,
}

/// The execution that the rows tell of.
#[derive(Default)]
struct Execution {
    events: Vec<Event>,
    /// Those up to `used` are its own; the others keep their memory for the next execution.
    ops: Vec<Op>,
    used: usize,
}

impl Profile {
    fn line(&mut self, line: &str) {
        self.lines += 1;
        if line.trim().is_empty() {
            return;
        }
        let Some(row) = Row::of(line, self.with_source_ops).filter(|_| !is_header(line)) else {
            return self.no_row(line);
        };
        if row.time().is_none() && !is(row.value, "UNKNOWN") {
            self.warn(|line| format!("line {line}: `{}` is not a plain number, the value is left out", row.value));
        }
        self.on_npu |= !self.on_npu && (row.identifier.contains("HVX") || row.identifier.contains("ccelerator"));
        if row.is_op() {
            self.op(&row);
        } else if row.is_root() {
            let identifier = row.identifier.to_ascii_lowercase();
            if row.is_execution(&identifier) {
                self.event(&row);
            }
        }
        if row.is_root() {
            self.load.event(&row, self.lines, &mut self.warnings);
            if let Some(ms) = row.time().and_then(|value| time(row.identifier, value, row.unit).ok()) {
                self.nest.add_load(&row.identifier.to_ascii_lowercase(), ms * 1e3);
            }
        }
        if row.unit.get(..4).is_some_and(|begin| is(begin, "INF/")) {
            self.throughput = row.time().filter(|value| plausible_rate(*value)).or(self.throughput);
        }
    }

    fn no_row(&mut self, line: &str) {
        if is_header(line) {
            self.with_source_ops = line.to_ascii_lowercase().contains("source ops");
            return;
        }
        self.skipped += 1;
        if self.skipped <= 3 {
            self.warn(|line| format!("line {line}: not a row of a QNN profile, skipped"));
        }
    }

    fn warn(&mut self, words: impl FnOnce(usize) -> String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(words(self.lines));
        }
    }

    fn op(&mut self, row: &Row<'_>) {
        let Execution { ops, used, .. } = &mut self.current;
        let room = ops.len() < MOST_OPS;
        match ops.get_mut(*used) {
            Some(op) => op.set(row.identifier, row.time(), row.unit),
            None if room => ops.push(Op::new(row.identifier, row.time(), row.unit)),
            None => {
                self.beyond += 1;
                return;
            }
        }
        *used += 1;
    }

    /// An event that comes again begins the next execution.
    fn event(&mut self, row: &Row<'_>) {
        if self.current.events.iter().any(|event| event.is(row)) {
            self.close();
        }
        if self.current.events.len() < MOST_EVENTS {
            self.current.events.push(Event::of(row, self.lines));
        } else {
            self.beyond += 1;
        }
    }

    fn close(&mut self) {
        let Execution { events, ops, used } = &mut self.current;
        let ops = &ops[..*used];
        let told = events.iter().filter_map(|event| Some((event.identifier.as_str(), event.value?, event.unit.as_str())));
        self.npu = merged(self.npu.take(), npu::of_executions(std::iter::once(told)).as_ref());
        let room = self.graphs.len() < MOST_GRAPHS && self.kept + *used <= MOST_OPS;
        // Mostly it is the graph of the execution before.
        match self.graphs.iter_mut().rev().find(|graph| graph.has(ops)) {
            Some(graph) => graph.add(ops, events),
            None if room => {
                self.kept += ops.len();
                self.graphs.push(Graph::new(ops, events));
            }
            None => self.beyond += 1,
        }
        events.clear();
        *used = 0;
    }

    fn finish(mut self, name: &str, several_files: bool, reading: &mut Reading) {
        if !self.current.events.is_empty() || self.current.used > 0 {
            self.close();
        }
        reading.warnings.append(&mut self.warnings);
        if self.skipped > 3 {
            reading.warnings.push(format!("{} more lines are not rows of a QNN profile", self.skipped - 3));
        }
        if self.beyond > 0 {
            reading.warnings.push(format!(
                "{} rows or executions are left out: over {MOST_GRAPHS} graphs, {MOST_OPS} operations or {MOST_EVENTS} events of one",
                self.beyond
            ));
        }
        let npu = self.npu.map(|npu| NpuProfile { load: self.nest, ..npu });
        reading.npu = merged(reading.npu.take(), npu.as_ref());
        let (unit, several) = (self.on_npu.then_some("npu"), self.graphs.len() > 1);
        let none = self.graphs.is_empty() && self.load.told();
        for (number, mut graph) in self.graphs.into_iter().enumerate() {
            let called = match (several_files, several) {
                (false, false) => String::new(),
                (false, true) => format!("graph {number}"),
                (true, false) => name.to_owned(),
                (true, true) => format!("{name} graph {number}"),
            };
            let mut measurement = ReadMeasurement::new(if called.is_empty() { "inference" } else { &called });
            graph.measure(&mut measurement, &mut reading.warnings);
            if number == 0 {
                self.load.measure(&mut measurement);
            }
            if !measurement.metrics.is_empty() || !measurement.reported.is_empty() {
                reading.measurements.push(measurement);
            }
            let total = graph.total();
            let mut rows = graph.ops.layers(&called, unit, METHOD);
            with_total(&mut rows, [total]);
            // A single file's graph has no name, but the file may be called after its phase.
            rows.iter_mut().filter(|layer| layer.phase.is_empty()).for_each(|layer| phase_of(name).clone_into(&mut layer.phase));
            reading.layers.extend(rows);
        }
        if none {
            let mut measurement = ReadMeasurement::new("inference");
            self.load.measure(&mut measurement);
            reading.measurements.push(measurement);
        }
        if let (Some(value), Some(measurement)) = (self.throughput, reading.measurements.last_mut()) {
            measurement.metric("throughput_inf_s", value);
        }
    }
}

/// Time to get ready: NetRun's own initialisation, else what QNN took to load or to finalize its graphs.
#[derive(Default)]
struct Load {
    /// ms of the three.
    sums: [Option<f64>; 3],
    reported: Vec<(String, f64)>,
}

impl Load {
    fn event(&mut self, row: &Row<'_>, line: usize, warnings: &mut Vec<String>) {
        let identifier = row.identifier.to_ascii_lowercase();
        let place = if is(row.message, "INIT") && row.is_netrun(&identifier) {
            0
        } else if identifier.starts_with("qnn (load binary)") || identifier.starts_with("qnn (init)") {
            1
        } else if identifier.starts_with("qnn (finalize)") {
            2
        } else {
            return;
        };
        let Some(value) = row.time() else { return };
        match time(row.identifier, value, row.unit) {
            Ok(ms) => {
                self.sums[place] = Some(self.sums[place].unwrap_or(0.0) + ms);
                let key = with_unit(row.identifier, row.unit);
                let room = self.reported.len() < MOST_EVENTS;
                match self.reported.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, sum)) => *sum += value,
                    None if room => self.reported.push((key, value)),
                    None => {}
                }
            }
            Err(warning) if warnings.len() < MOST_WARNINGS => warnings.push(format!("line {line}: {warning}")),
            Err(_) => {}
        }
    }

    fn told(&self) -> bool {
        self.sums.iter().any(Option::is_some)
    }

    fn measure(&self, measurement: &mut ReadMeasurement) {
        let [netrun, ready, finalized] = self.sums;
        let made = (ready.is_some() || finalized.is_some()).then(|| ready.unwrap_or(0.0) + finalized.unwrap_or(0.0));
        if let Some(ms) = netrun.or(made) {
            measurement.metric("load_ms", ms);
        }
        for (key, value) in &self.reported {
            report(measurement, key, *value);
        }
    }
}
