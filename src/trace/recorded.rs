//! Launches from their records and logs: times are `CLOCK_MONOTONIC` of the device.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::Path,
};

use bench_agent::spec::{Done, Reason};
use bench_backend_api::{Captured, Parsed, Pass, parsed_until_wrong};
use serde_json::{Value, json};

use super::{
    counters::{Counters, Row},
    launch::{Key, Launch, Mark},
    spans::{Span, ns},
    tables::rows,
    writer::{Args, Writer},
};
use crate::{
    analysis::soak::{Happening, Soak, Window},
    results::{
        boot::first_step,
        launches::{FILE, Record, Shared, StepRecord},
        start::Settled,
    },
    run::EVENTS,
};

/// Growth of `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC` that is a sleep (rule R17), ns.
const SLEPT_NS: i64 = 100_000_000;

/// Which launch a record is of.
pub fn key(record: &Record) -> Key {
    (record.cell.clone(), record.pass.to_string(), record.launch)
}

/// Begin and end of the process, as far as the agent or the runner told them.
pub fn ran(record: &Record) -> Option<(u64, Option<u64>)> {
    let told = || record.parsed.load_ns.map(|(begin, _)| begin).or_else(|| record.parsed.queries.first().map(|q| q.start_ns));
    let begin = first_step(record).map(|done| done.start_ns).or_else(told)?;
    Some((begin, record.steps.iter().filter_map(|step| Some(step.done.as_ref()?.end_ns)).max()))
}

/// Begin and end of a launch: of a process that cells shared, of this cell's part.
fn window(record: &Record) -> Option<(u64, Option<u64>)> {
    let part = |shared: &Shared| (shared.window_ns.0, Some(shared.window_ns.1));
    // What left no evidence has no place in time.
    let process = ran(record)?;
    Some(record.shared.as_ref().map_or(process, part))
}

/// The first cell of a process, which has what is of all of it.
pub fn is_first(record: &Record) -> bool {
    record.shared.as_ref().is_none_or(|shared| shared.place == 0)
}

/// Where the journal's lines about a launch enclose its process: begin for the first of its cells, end for the last.
pub fn enclosed(record: &Record) -> Option<(Option<i64>, Option<i64>)> {
    let last = record.shared.as_ref().is_none_or(|shared| shared.place + 1 == shared.cells);
    let (begin, end) = ran(record)?;
    Some((is_first(record).then(|| ns(begin)), end.filter(|_| last).map(ns)))
}

/// Bytes of what a launch would be drawn from.
pub fn bytes(dir: &Path, record: &Record) -> u64 {
    let events = (record.pass == Pass::Soak).then(|| dir.join(EVENTS));
    let files = record.telemetry_files(dir).into_iter().chain(events).chain([dir.join(FILE)]);
    files.filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum()
}

/// A launch. Queries and tokens of a soak are in its events alone.
pub fn launch(dir: &Path, record: &Record) -> Option<Launch> {
    let window = window(record)?;
    let mut parsed = record.parsed.clone();
    if record.pass == Pass::Soak {
        let soaked = soaked(dir);
        (parsed.queries, parsed.phases) = (soaked.queries, soaked.phases);
    }
    if let Some(shared) = &record.shared {
        parsed.phases.retain(|span| shared.holds(span.begin_ns));
    }
    let several = record.steps.len() > 1;
    let step = |step: &StepRecord| {
        let done = step.done.as_ref().filter(|_| several)?;
        Some(Span::new(format!("step {}", step.name), ns(done.start_ns), ns(done.end_ns)))
    };
    Some(Launch {
        key: key(record),
        boot: first_step(record).and_then(|done| done.boot_id.clone()),
        window,
        steps: record.steps.iter().filter_map(step).collect(),
        parsed,
        windows: record.soak.as_ref().map(windows).unwrap_or_default(),
        figures: record.soak.as_ref().map(figures).unwrap_or_default(),
        marks: marks(record, window),
        args: words(record),
    })
}

fn soaked(dir: &Path) -> Parsed {
    let files: BTreeMap<String, Vec<u8>> = fs::read(dir.join(EVENTS)).ok().map(|bytes| (EVENTS.to_owned(), bytes)).into_iter().collect();
    parsed_until_wrong(&Captured { files, ..Captured::default() }).map(|(parsed, _)| parsed).unwrap_or_default()
}

fn words(record: &Record) -> Args {
    let done = first_step(record);
    let all = json!({
        "status": record.status.as_str(),
        "why": record.failure.as_ref().map(ToString::to_string),
        "block": record.block,
        "segment": record.segment,
        "exit_code": record.steps.last().and_then(|step| step.done.as_ref()?.ended.code),
        "peak_rss_kb": done.and_then(|done| done.peak_rss_kb),
        "unit_reported": record.parsed.unit_reported,
        "queries_without_times": record.parsed.queries.iter().filter(|q| q.aggregate_n.is_some()).count(),
        "graphs_without_times": record.parsed.graphs.len(),
    });
    all.as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null() && **value != 0)
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// Moments of a launch that the agent, the device's log or bench saw.
fn marks(record: &Record, (begin, end): (u64, Option<u64>)) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut say = |at: u64, name: String| marks.push(Mark { at, name });
    let end = end.unwrap_or(begin);
    let first = is_first(record);
    if first && record.start.settle == Settled::Marked {
        say(begin, format!("begun although the device was not as asked: {}", record.start.lacks.join("; ")));
    }
    if let Some(others) = record.start.contended_by.as_ref().filter(|others| first && !others.is_empty()) {
        say(begin, format!("contended before its block: {}", others.join("; ")));
    }
    for done in record.steps.iter().filter(|_| first).filter_map(|step| step.done.as_ref()) {
        ended(done, &mut say);
    }
    if let Some(yields) = record.parsed.npu.as_ref().and_then(|npu| npu.yields).filter(|yields| yields.sum > 0.0) {
        say(end, format!("contended: graphs gave way {} times", yields.sum));
    }
    if let Some(kills) = record.lmkd_kills.filter(|kills| first && *kills > 0) {
        say(end, format!("Android's low memory killer ended {kills} processes in its time"));
    }
    if let Some(failure) = &record.failure {
        say(end, format!("{}: {failure}", record.status.as_str()));
    }
    if let Some(soak) = &record.soak {
        marks.extend(happened(soak));
    }
    marks
}

fn ended(done: &Done, say: &mut impl FnMut(u64, String)) {
    let slept = done.boottime_minus_monotonic_ns[1].saturating_sub(done.boottime_minus_monotonic_ns[0]);
    if slept > SLEPT_NS {
        say(done.end_ns, format!("the device slept for {:.1} s, which this clock does not count", slept as f64 / 1e9));
    }
    let what = match done.ended.reason {
        Reason::ThermalTrip => "thermal trip",
        Reason::Timeout => "time-out",
        Reason::OutputLimit => "too much output",
        Reason::Cancelled => "cancelled",
        Reason::SpawnFailed => "it could not be started",
        Reason::Exited => return,
    };
    say(done.end_ns, [Some(what), done.ended.message.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(": "));
}

/// The first measured query of a soak, from which its seconds are counted, ns.
fn zero(soak: &Soak) -> Option<u64> {
    let first = soak.windows.first()?;
    Some(first.start_ns.saturating_sub((first.start_s.max(0.0) * 1e9) as u64))
}

fn happened(soak: &Soak) -> Vec<Mark> {
    let Some(zero) = zero(soak) else { return Vec::new() };
    let mark = |h: &Happening| Mark { at: zero.saturating_add_signed((h.t_s * 1e9) as i64), name: format!("{}: {}", h.kind, h.what) };
    soak.happenings.iter().map(mark).collect()
}

fn windows(soak: &Soak) -> Vec<Span> {
    let span = |(number, w): (usize, &Window)| {
        let from = ns(w.start_ns);
        let mut span = Span::new(format!("window {number}"), from, from.saturating_add((w.length_s * 1e9) as i64));
        let known = |(_, value): &(&String, &Value)| !value.is_null();
        let all = serde_json::to_value(w).unwrap_or_default();
        span.args = all.as_object().into_iter().flatten().filter(known).map(|(k, v)| (k.clone(), v.clone())).collect();
        span
    };
    soak.windows.iter().enumerate().map(span).collect()
}

/// Means of windows, each from its begin on.
fn figures(soak: &Soak) -> Vec<(u64, &'static str, &'static str, f64)> {
    let of = |w: &Window| {
        let all = [
            Some(("soak: tokens, mean of the window", "tok/s", w.tok_s)),
            w.watts.map(|watts| ("soak: power of the device, mean of the window", "W", watts)),
            w.throttled.map(|share| ("soak: share of the window throttled", "share", share)),
        ];
        let at = w.start_ns;
        all.into_iter().flatten().map(move |(name, unit, value)| (at, name, unit, value))
    };
    soak.windows.iter().flat_map(of).collect()
}

/// What the agent sampled in a launch.
pub fn telemetry<W: Write>(dir: &Path, record: &Record, pid: u32, writer: &mut Writer<W>) -> io::Result<()> {
    let mut counters = Counters::default();
    for path in record.telemetry_files(dir).into_iter().filter(|path| path.is_file()) {
        rows(&path, false, |row| {
            let (Some(at), Some(value)) = (row.get(0).and_then(|t| t.parse().ok()), row.get(3).and_then(|v| v.parse().ok())) else {
                return Ok(());
            };
            if record.shared.as_ref().is_some_and(|shared| !shared.holds(at)) {
                return Ok(());
            }
            let [source, name, unit] = [1, 2, 4].map(|column| row.get(column).unwrap_or_default());
            counters.take(writer, pid, Row { at: ns(at), source, name, value, unit })
        })?;
    }
    counters.end(writer, pid)
}
