//! `bench parse executorch`: the statistics of llama_main and its kin, the lines of qnn_executor_runner, QNN's events of a load, an ETDump, and
//! the table that ExecuTorch's Inspector makes of one.

mod etdump;
mod flatbuffer;
mod inspector;
mod runner;
mod stats;

use bench_backend_api::{
    Layer, Reader, Reading, SourceFile, Unreadable, ValueMeans,
    knowledge::{Heard, exit_status, settle},
    text,
};

use crate::TABLE;

const READS: &str = "`bench parse executorch` reads the PyTorchObserver line of llama_main and the other runners of language models, the log of \
    qnn_executor_runner, an ETDump (*.etdp), and the table of Inspector.save_data_to_tsv or print_data_tabular";

/// Reads what ExecuTorch's own tools leave.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExecuTorchReader;

impl Reader for ExecuTorchReader {
    fn id(&self) -> &'static str {
        "executorch"
    }

    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable> {
        let unreadable = |file: &str, message: &str| Unreadable { file: file.to_owned(), message: format!("{message}; {READS}") };
        let mut reading = Reading::default();
        let mut heard = Heard::default();
        let empty = files.iter().all(|file| file.bytes.iter().all(u8::is_ascii_whitespace));
        for file in files {
            if etdump::is_dump(&file.bytes) {
                let part = etdump::reading(&file.bytes).map_err(|message| unreadable(&file.name, &message))?;
                add(&mut reading, part);
                continue;
            }
            let content = text::of(file);
            let mut known = false;
            for part in [stats::reading(&content), runner::reading(&content), inspector::reading(&content)].into_iter().flatten() {
                known = true;
                add(&mut reading, part);
            }
            // What a model wrote is no log: it may hold any word of one.
            let spoken = content.contains(stats::MARK);
            let said = TABLE.heard(content.lines().filter(|line| !spoken || runner::is_log(line)), exit_status);
            // Of this file: a log of a failure makes no other file one of ours.
            known |= said.anything();
            heard.add(said);
            if content.trim().is_empty() && !empty {
                reading.warnings.push(format!("{}: the file is empty", file.name));
            } else if !known {
                let message = if empty { "the file is empty" } else { "line 1: not the output of a tool of ExecuTorch" };
                return Err(unreadable(&file.name, message));
            }
        }
        if files.is_empty() {
            return Err(unreadable("", "no file"));
        }
        let measured = reading.measurements.iter().any(|m| !m.metrics.is_empty());
        reading.failure = settle(&mut reading.warnings, std::iter::empty(), heard.marks, heard.status, measured);
        Ok(reading)
    }
}

/// Adds one reading to another. Figures of a load have no measurement of their own where there is another one.
fn add(into: &mut Reading, from: Reading) {
    for measurement in from.measurements {
        match into.measurements.iter_mut().find(|known| known.label == measurement.label) {
            Some(known) => {
                known.metrics.extend(measurement.metrics);
                known.reported.extend(measurement.reported);
            }
            None => into.measurements.push(measurement),
        }
    }
    into.layers.extend(from.layers);
    into.warnings.extend(from.warnings);
}

/// An operation as an event of a profile names it; `None` for events of the whole, and of operators with another name inside.
fn operation(graph: &str, name: &str, us: Option<f64>, method: &str) -> Option<Layer> {
    // The Inspector leaves OPERATOR_CALL out, too: a native_call_* stands in each.
    if ["Method::", "Program::", "OPERATOR_CALL"].iter().any(|start| name.starts_with(start)) {
        return None;
    }
    let native = name.strip_prefix("native_call_");
    Some(Layer {
        graph: graph.to_owned(),
        name: name.to_owned(),
        op_type: native.map(str::to_owned),
        // Where a delegate computes is the delegate's affair.
        unit: native.map(|_| "cpu".to_owned()),
        value: us,
        value_unit: "us".to_owned(),
        method: method.to_owned(),
        value_means: Some(ValueMeans::WallTime),
        ..Layer::default()
    })
}

#[cfg(test)]
mod tests;
