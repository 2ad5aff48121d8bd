//! `bench parse snpe`: the text of snpe-diagview, the lines of snpe-throughput-net-run, the CSV of snpe_bench.py, and failures.

mod bench_csv;
mod diagview;
mod throughput;

use bench_backend_api::{
    Reader, Reading, SourceFile, Unreadable,
    knowledge::{Heard, exit_status, settle},
    text,
};

use crate::TABLE;

const READS: &str = "`bench parse snpe` reads the text of snpe-diagview, what snpe-throughput-net-run, snpe-net-run and snpe-platform-validator print, \
    and the benchmark_stats CSV of snpe_bench.py";

/// Reads what SNPE's own tools print.
#[derive(Debug, Clone, Copy, Default)]
pub struct SnpeReader;

impl Reader for SnpeReader {
    fn id(&self) -> &'static str {
        "snpe"
    }

    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable> {
        let unreadable = |file: &str, message: &str| Unreadable { file: file.to_owned(), message: format!("{message}; {READS}") };
        let mut reading = Reading::default();
        let mut heard = Heard::default();
        let empty = files.iter().all(|file| file.bytes.iter().all(u8::is_ascii_whitespace));
        for file in files {
            if file.bytes.starts_with(b"\0") || file.bytes.iter().take(512).filter(|&&byte| byte == 0).count() > 4 {
                return Err(unreadable(&file.name, "a binary file: `snpe-diagview --input_log SNPEDiag.log` turns it into text"));
            }
            let content = text::of(file);
            let parts = [diagview::reading(&content), throughput::reading(&content), bench_csv::reading(&content)];
            let mut known = false;
            for part in parts.into_iter().flatten() {
                known = true;
                reading.measurements.extend(part.measurements);
                reading.layers.extend(part.layers);
                reading.warnings.extend(part.warnings);
            }
            let said = TABLE.heard(content.lines(), |line| wrapped_status(line).or_else(|| exit_status(line)));
            // Of this file: a log of a failure makes no other file one of ours.
            known |= said.anything();
            heard.add(said);
            if content.trim().is_empty() && !empty {
                reading.warnings.push(format!("{}: the file is empty", file.name));
            } else if !known {
                let message = if empty { "the file is empty" } else { "line 1: not the output of a tool of SNPE" };
                return Err(unreadable(&file.name, message));
            }
        }
        if files.is_empty() {
            return Err(unreadable("", "no file"));
        }
        let measured = reading.measurements.iter().any(|m| !m.metrics.is_empty());
        reading.failure = settle(&mut reading.warnings, std::iter::empty(), heard.marks, heard.status, measured);
        units(&mut reading);
        Ok(reading)
    }
}

/// The wrapper of Qualcomm's AI benchmark application: `DEBUG - Exit Code := 139`.
fn wrapped_status(line: &str) -> Option<i32> {
    line.split_once("Exit Code :=")?.1.trim().parse().ok()
}

/// SNPE's word for where something ran.
fn unit(runtime: &str) -> Option<&'static str> {
    let runtime = runtime.trim().to_ascii_lowercase();
    match runtime.split(['_', ' ']).next()? {
        "cpu" => Some("cpu"),
        "gpu" => Some("gpu"),
        "dsp" | "htp" | "aip" | "hta" => Some("npu"),
        _ => None,
    }
}

/// Says which layers of an accelerated network stayed on the CPU: SNPE does not.
fn units(reading: &mut Reading) {
    let mut graphs: Vec<&str> = reading.layers.iter().map(|layer| layer.graph.as_str()).collect();
    graphs.dedup();
    for graph in graphs {
        let of = |wanted: &str| reading.layers.iter().filter(|l| l.graph == graph && l.unit.as_deref() == Some(wanted)).count();
        let (cpu, other) = (of("cpu"), of("gpu") + of("npu"));
        if cpu > 0 && other > 0 {
            let name = if graph.is_empty() { String::new() } else { format!("{graph}: ") };
            reading.warnings.push(format!("{name}{cpu} of {} layers ran on the CPU", cpu + other));
        }
    }
}

#[cfg(test)]
mod tests;
