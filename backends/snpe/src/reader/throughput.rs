//! The lines of `snpe-throughput-net-run`, one a thread:
//! `[Thread 0 - dsp_fixed8_tf] 1581.96 infs/sec - Number of images processed: 15803 - Build time: 657077 microseconds - ...`.

use bench_backend_api::{
    ReadMeasurement, Reading,
    text::{count, number, plausible_ms, plausible_rate},
};

/// Two figures of one line may differ by so much and still be the same.
const SAME: f64 = 0.02;

/// Reads the lines; `None` without one of them.
pub(super) fn reading(content: &str) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut total = None;
    for (at, line) in content.lines().enumerate() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("[Thread ").and_then(|rest| rest.split_once(']')) {
            reading.measurements.push(thread(rest, at + 1, &mut reading.warnings));
        } else if let Some(rest) = line.strip_prefix("Total throughput:") {
            total = rest.split_whitespace().next().and_then(number);
        }
    }
    if reading.measurements.is_empty() {
        return None;
    }
    match total.filter(|rate| plausible_rate(*rate)) {
        None => reading.warnings.push("no line `Total throughput`: the run was cut off".to_owned()),
        Some(rate) if reading.measurements.len() > 1 => {
            let mut all = ReadMeasurement::new("all threads");
            all.metric("throughput_inf_s", rate);
            reading.measurements.push(all);
        }
        Some(_) => {}
    }
    Some(reading)
}

fn thread((name, rest): (&str, &str), line: usize, warnings: &mut Vec<String>) -> ReadMeasurement {
    let mut measurement = ReadMeasurement::new(format!("thread {name}"));
    let mut printed = rest.split_whitespace();
    let printed = printed.next().and_then(number).filter(|rate| plausible_rate(*rate) && printed.next() == Some("infs/sec"));
    let fields: Vec<(&str, &str)> =
        rest.split(" - ").skip(1).filter_map(|part| part.split_once(':')).map(|(key, value)| (key.trim(), value.trim())).collect();
    let field = |wanted: &str| fields.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
    let us =
        |wanted: &str| field(wanted)?.strip_suffix("microseconds").and_then(|us| number(us.trim())).filter(|us| plausible_ms(us / 1e3));
    if let Some(us) = us("Build time") {
        measurement.metric("load_ms", us / 1e3);
    }
    for (key, value) in fields.iter().filter_map(|(key, value)| Some((key, value.split_whitespace().next().and_then(number)?))) {
        let unit = if field(key).is_some_and(|value| value.ends_with("microseconds")) { " (us)" } else { "" };
        measurement.report(format!("{key}{unit}"), value);
    }
    let counted = field("Number of images processed").and_then(count).zip(us("Real time")).map(|(n, us)| n / us * 1e6);
    let rate = counted.filter(|rate| plausible_rate(*rate)).or(printed);
    match rate {
        Some(rate) => {
            measurement.metric("throughput_inf_s", rate);
        }
        None => warnings.push(format!("line {line}: no throughput that can be a measurement")),
    }
    if let Some(printed) = printed {
        measurement.report("infs/sec", printed);
        if let Some(counted) = counted.filter(|counted| (printed - counted).abs() > SAME * printed) {
            warnings.push(format!(
                "line {line}: {printed} infs/sec are printed, its images over its real time are {counted:.2}: the latter is taken"
            ));
        }
    }
    measurement
}
