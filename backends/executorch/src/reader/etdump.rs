//! An ETDump: the events of a run, as pytorch/executorch `devtools/etdump/etdump_schema_flatcc.fbs` lays them out.
//!
//! Field numbers: `ETDump{version, run_data}`, `RunData{name, bundled_input_index, allocators, events}`, `Event{profile_event, ..}`,
//! `ProfileEvent{name, chain_index, instruction_id, delegate_debug_id_int, delegate_debug_id_str, metadata, start_time, end_time}`.
//!
//! The file does not tell its clock. The runtime's platform layer for Linux and Android counts nanoseconds (`runtime/platform/default/posix.cpp`).
//! What a delegate logs is in the delegate's own unit; QNN's names say `(cycles)`.

use std::collections::HashMap;

use bench_backend_api::{Layer, ReadMeasurement, Reading, ValueMeans, text::plausible_ms};
use bench_backend_qnn::ops::phase_of;

use super::{
    flatbuffer::{Table, Vector},
    operation,
};

const IDENTIFIER: &[u8] = b"ED00";
const METHOD: &str = "etdump";

/// Whether the bytes are an ETDump, with the size before it or without.
pub(super) fn is_dump(bytes: &[u8]) -> bool {
    body(bytes).is_some()
}

/// The buffer without the size that the runtime writes before it.
fn body(bytes: &[u8]) -> Option<&[u8]> {
    [bytes.get(4..), Some(bytes)].into_iter().flatten().find(|body| body.get(4..8) == Some(IDENTIFIER))
}

/// One event, by what it is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    block: String,
    instruction: i32,
    delegate: bool,
    name: String,
}

/// Sum and number of the events of one kind, in ticks or cycles.
struct Sum {
    key: Key,
    ticks: f64,
    count: u32,
}

/// Kinds of events that are kept; a model has some ten thousand operations.
const MOST_KINDS: usize = 1 << 18;

/// Reads the dump. `Err` for a file that holds no event that can be reached.
pub(super) fn reading(bytes: &[u8]) -> Result<Reading, String> {
    let damaged = || "a damaged ETDump: its tables lead nowhere".to_owned();
    let root = body(bytes).and_then(Table::root).ok_or_else(damaged)?;
    let runs = root.vector(1).ok_or_else(damaged)?;
    let mut reading = Reading::default();
    let (mut sums, mut places): (Vec<Sum>, HashMap<Key, usize>) = (Vec::new(), HashMap::new());
    let (mut lost, mut beyond) = (0_usize, 0_usize);
    // Tables of a hostile file may lead to each other: of any file, no more events than its bytes can hold.
    let mut room = bytes.len() / 8;
    for run in runs.tables() {
        let (Some(run), Some(next)) = (run, room.checked_sub(1)) else {
            lost += 1;
            continue;
        };
        room = next;
        let block = run.text(0).unwrap_or_default();
        for event in run.vector(3).into_iter().flat_map(Vector::tables) {
            let Some(next) = room.checked_sub(1) else { return Err(damaged()) };
            room = next;
            let Some(event) = event else {
                lost += 1;
                continue;
            };
            // Events of memory and of values are no times.
            let Some(event) = event.table(0) else { continue };
            let (Some(from), Some(to)) = (event.u64(6).or(Some(0)), event.u64(7)) else { continue };
            let Some(ticks) = to.checked_sub(from) else {
                lost += 1;
                continue;
            };
            let id = event.text(4).or_else(|| event.i32(3).filter(|id| *id >= 0).map(|id| format!("delegate event {id}")));
            let key = Key {
                block: block.clone(),
                instruction: event.i32(2).unwrap_or(-1),
                delegate: id.is_some(),
                name: id.or_else(|| event.text(0)).unwrap_or_default(),
            };
            if places.len() >= MOST_KINDS && !places.contains_key(&key) {
                beyond += 1;
                continue;
            }
            let place = *places.entry(key.clone()).or_insert(sums.len());
            if place == sums.len() {
                sums.push(Sum { key, ticks: 0.0, count: 0 });
            }
            sums[place].ticks += ticks as f64;
            sums[place].count += 1;
        }
    }
    if sums.is_empty() {
        return Err(if lost > 0 {
            damaged()
        } else {
            "an ETDump without an event of a time: build the runtime with its event tracer".to_owned()
        });
    }
    if lost > 0 {
        reading.warnings.push(format!("{lost} events of the ETDump can't be read: it is damaged"));
    }
    if beyond > 0 {
        reading.warnings.push(format!("{beyond} events are left out: over {MOST_KINDS} kinds of them"));
    }
    whole(&sums, &mut reading);
    layers(&sums, &mut reading);
    reading.warnings.push("an ETDump does not tell its clock: read as ns, which the runtime counts on Linux and Android".to_owned());
    Ok(reading)
}

fn whole(sums: &[Sum], reading: &mut Reading) {
    let mut measurement = ReadMeasurement::new("inference");
    for (name, metric) in [("Method::execute", "latency_ms"), ("Program::load_method", "load_ms")] {
        let of = sums.iter().filter(|sum| !sum.key.delegate && sum.key.name == name);
        let (ticks, count) = of.fold((0.0, 0), |(ticks, count), sum| (ticks + sum.ticks, count + sum.count));
        if count > 0 && plausible_ms(ticks / f64::from(count) / 1e6) {
            measurement.metric(metric, ticks / f64::from(count) / 1e6);
            measurement.report(format!("{name} events"), f64::from(count));
        }
    }
    if !measurement.metrics.is_empty() {
        reading.measurements.push(measurement);
    }
}

fn layers(sums: &[Sum], reading: &mut Reading) {
    let mut sizes: HashMap<String, u32> = HashMap::new();
    for sum in sums {
        let (Key { block, instruction, delegate, name }, value) = (&sum.key, sum.ticks / f64::from(sum.count));
        let layer = if *delegate {
            inside(name, *instruction, value)
        } else {
            // Several instructions of one kernel are told apart by their place in the program.
            operation(block, name, Some(value / 1e3), METHOD).map(|layer| {
                let name = if *instruction >= 0 { format!("{name} #{instruction}") } else { name.clone() };
                Layer { name, ..layer }
            })
        };
        let Some(layer) = layer else { continue };
        let size = sizes.entry(layer.graph.clone()).or_default();
        let index = *size;
        *size += 1;
        reading.layers.push(Layer { index, count: Some(sum.count), phase: phase_of(block).to_owned(), ..layer });
    }
}

/// An event of a delegate: an operation of its graph, in cycles where its name says so. Any other unit is the delegate's own and not in the file: such a
/// number is no time. What QNN says of a whole execution is no operation.
fn inside(name: &str, instruction: i32, value: f64) -> Option<Layer> {
    let cycles = name.contains("(cycles)");
    let of_the_whole = ["(execute)", "HVX", "VTCM", "Num times yield", "NetRun"].iter().any(|word| name.contains(word));
    if of_the_whole {
        return None;
    }
    let bare = name.trim().trim_end_matches("(cycles)").trim_end();
    Some(Layer {
        graph: format!("delegate of #{instruction}"),
        name: bare.to_owned(),
        unit: cycles.then(|| "npu".to_owned()),
        value: cycles.then_some(value),
        value_unit: if cycles { "cycles" } else { "us" }.to_owned(),
        method: METHOD.to_owned(),
        value_means: cycles.then_some(ValueMeans::ThreadCycles),
        details: (!cycles).then(|| ("ticks_of_unknown_unit".to_owned(), value.to_string())).into_iter().collect(),
        ..Layer::default()
    })
}
