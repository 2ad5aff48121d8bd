//! What bench itself did, from the journal: preparations, blocks, waits, launches. Pure, on this machine's clock.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    alignment::{Bounds, JOURNAL_NS},
    launch::Key,
    spans::Span,
    writer::Args,
};
use crate::{results::journal::Entry, run::events::Event};

/// A part of the journal in which the device did not boot: its times have one relation to the device's clock.
#[derive(Debug, Default, PartialEq)]
pub struct Part {
    /// Segment of the run.
    pub segment: u32,
    /// Boot of the device; `None` where no launch of the part tells it.
    pub boot: Option<String>,
    /// Stretches, Unix ns.
    pub spans: Vec<Span>,
    /// Moments, Unix ns.
    pub moments: Vec<(i64, String, Args)>,
    /// Launches with begin and end in the journal, Unix ns.
    pub launches: Vec<(Key, i64, i64)>,
    last: i64,
}

impl Part {
    /// What the launches say about the offset between the two clocks: each began and ended on the device between two lines.
    pub fn bounds(&self, device: &BTreeMap<(u32, Key), Enclosed>) -> Bounds {
        let bounds = |(key, begun, ended): &(Key, i64, i64)| {
            let (begin, end) = *device.get(&(self.segment, key.clone()))?;
            let low = end.map_or(i64::MIN, |end| end.saturating_sub(ended.saturating_add(JOURNAL_NS)));
            Some(Bounds { low, high: begin.map_or(i64::MAX, |begin| begin.saturating_sub(*begun)) })
        };
        self.launches.iter().filter_map(bounds).fold(Bounds::OPEN, Bounds::and)
    }
}

/// Begin and end of a process on the device, ns; each with the launch whose line in the journal is next to it, where cells shared it.
pub type Enclosed = (Option<i64>, Option<i64>);

/// What is open while the journal is read.
#[derive(Default)]
struct Open {
    began: Option<i64>,
    block: Option<(u32, Span)>,
    /// Begun and not ended; several where cells share a process.
    launches: Vec<(Key, i64)>,
}

impl Open {
    /// Ends what is open at the end of a part.
    fn close(&mut self, part: &mut Part) {
        part.spans.extend(self.block.take().map(|(_, span)| span));
        for (key, at) in self.launches.drain(..) {
            part.moments.push((at, format!("{} {}-{:03} begun, and no end is recorded", key.0, key.1, key.2), Args::new()));
        }
        if let Some(began) = self.began.take() {
            part.spans.push(Span::new(format!("segment {}", part.segment), began, part.last));
        }
    }
}

/// The parts of a journal. `boots` has the boot of each launch by its segment, where it is known.
pub fn parts(entries: &[Entry], boots: &BTreeMap<(u32, Key), String>) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut part, mut open) = (Part::default(), Open::default());
    for entry in entries {
        let Some(at) = unix_ns(&entry.utc) else { continue };
        if let Event::RunBegin { segment, .. } = entry.event {
            open.close(&mut part);
            parts.push(std::mem::replace(&mut part, Part { segment, ..Part::default() }));
            open.began = Some(at);
        }
        if let Event::LaunchBegin { cell, pass, launch, .. } = &entry.event {
            let boot = boots.get(&(part.segment, (cell.clone(), pass.to_string(), *launch)));
            if part.boot.is_some() && boot.is_some() && part.boot.as_ref() != boot {
                open.close(&mut part);
                let segment = part.segment;
                parts.push(std::mem::replace(&mut part, Part { segment, ..Part::default() }));
                open.began = Some(at);
            }
            part.boot = part.boot.take().or_else(|| boot.cloned());
        }
        part.last = at;
        take(&entry.event, at, &mut part, &mut open);
    }
    open.close(&mut part);
    parts.push(part);
    parts.retain(|part| !(part.spans.is_empty() && part.moments.is_empty()));
    parts
}

fn take(event: &Event, at: i64, part: &mut Part, open: &mut Open) {
    let lasted = |seconds: f64| at.saturating_sub((seconds.clamp(0.0, 1e9) * 1e9) as i64);
    let mut say = |text: String, args: Value| part.moments.push((at, text, words(args)));
    match event {
        Event::Prepared { what, seconds, cached } => {
            let mut span = Span::new(format!("prepare {what}"), lasted(*seconds), at);
            span.args = words(json!({"cached": cached}));
            part.spans.push(span);
        }
        Event::Ready { cells, launches, .. } => say("ready".to_owned(), json!({"cells": cells, "launches": launches})),
        Event::BlockBegin { block, launches } => {
            let span = Span { args: words(json!({"launches": launches})), ..Span::new(format!("block {block}"), at, at) };
            part.spans.extend(open.block.replace((*block, span)).map(|(_, span)| span));
        }
        Event::Settled { block, seconds, waited_for, lacks, why } => {
            let args = json!({"waited_for": waited_for, "lacks": lacks, "why": why});
            part.spans.push(Span { args: words(args), ..Span::new("settle", lasted(*seconds), at) });
            reaches(open, *block, at);
        }
        Event::LaunchBegin { cell, pass, launch, .. } => open.launches.push(((cell.clone(), pass.to_string(), *launch), at)),
        Event::LaunchEnd { cell, pass, launch, block, status, failure, .. } => {
            let key = (cell.clone(), pass.to_string(), *launch);
            if let Some(place) = open.launches.iter().rposition(|(begun, _)| *begun == key) {
                let (_, begun) = open.launches.remove(place);
                let args = json!({"status": status.as_str(), "failure": failure.as_ref().map(ToString::to_string)});
                part.spans.push(Span { args: words(args), ..Span::new(format!("{cell} {pass}-{launch:03}"), begun, at) });
                part.launches.push((key, begun, at));
            }
            reaches(open, *block, at);
        }
        Event::CellSkipped { cell, reason } => say(format!("skipped: {cell}"), json!({"reason": reason})),
        Event::CellFailed { cell, failure } => say(format!("failed: {cell}"), json!({"failure": failure.to_string()})),
        Event::CellDone { cell, stop } => say(format!("done: {cell}"), json!({"stop": stop})),
        Event::SoakSkipped { cell, reason, .. } => say(format!("not soaked: {cell}"), json!({"reason": reason})),
        Event::Ask { text } => say(format!("asked: {text}"), Value::Null),
        Event::Warning { text } => say(format!("warning: {text}"), Value::Null),
        Event::Interrupted { by } => say(format!("interrupted by {by}"), Value::Null),
        Event::RunEnd { ok, failed, skipped, unverified } => {
            say("end".to_owned(), json!({"ok": ok, "failed": failed, "skipped": skipped, "unverified": unverified}));
        }
        Event::RunBegin { .. } | Event::Preparing { .. } | Event::SettleBegin { .. } => {}
    }
}

/// A block lasts until its last launch or wait is over.
fn reaches(open: &mut Open, block: u32, at: i64) {
    if let Some((_, span)) = open.block.as_mut().filter(|(number, _)| *number == block) {
        span.to = at;
    }
}

/// The fields of an object that are there.
fn words(value: Value) -> Args {
    match value {
        Value::Object(all) => all.into_iter().filter(|(_, value)| !value.is_null() && *value != json!([])).collect(),
        _ => Args::new(),
    }
}

fn unix_ns(utc: &str) -> Option<i64> {
    i64::try_from(utc.parse::<jiff::Timestamp>().ok()?.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(lines: &str) -> Vec<Entry> {
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// From a journal of a run on a PC, shortened; the second segment was resumed after the device had booted, and was killed.
    const JOURNAL: &str = r#"{"v":1,"utc":"2026-11-30T14:36:33.000Z","event":"run_begin","run":"r","scenario":"s","segment":0,"folder":"r"}
{"v":1,"utc":"2026-11-30T14:36:35.500Z","event":"prepared","what":"qnn-context","seconds":1.5,"cached":false}
{"v":1,"utc":"2026-11-30T14:36:36.000Z","event":"block_begin","block":0,"launches":1}
{"v":1,"utc":"2026-11-30T14:36:39.000Z","event":"settled","block":0,"seconds":2.0,"waited_for":["skin"],"lacks":[],"why":null}
{"v":1,"utc":"2026-11-30T14:36:40.000Z","event":"launch_begin","cell":"a","pass":"measure","launch":0,"block":0}
{"v":1,"utc":"2026-11-30T14:36:43.000Z","event":"launch_end","cell":"a","pass":"measure","launch":0,"block":0,"segment":0,"status":"ok","failure":null,"ttft_ms":1.0,"decode_tok_s":2.0}
{"v":1,"utc":"2026-11-30T14:36:44.000Z","event":"interrupted","by":"the user"}
{"v":1,"utc":"2026-11-30T15:00:00.000Z","event":"run_begin","run":"r","scenario":"s","segment":1,"folder":"r"}
{"v":1,"utc":"2026-11-30T15:00:01.000Z","event":"launch_begin","cell":"a","pass":"measure","launch":1,"block":1}"#;

    #[test]
    fn a_journal_by_hand() {
        let key = ("a".to_owned(), "measure".to_owned(), 0);
        let boots = [((0, key.clone()), "boot".to_owned())].into_iter().collect();
        let all = parts(&entries(JOURNAL), &boots);
        let zero = unix_ns("2026-11-30T14:36:33Z").unwrap();
        let told: Vec<_> = all[0].spans.iter().map(|s| (s.name.as_str(), (s.from - zero) / 1_000_000, (s.to - zero) / 1_000_000)).collect();
        let wanted = [
            ("prepare qnn-context", 1000, 2500),
            ("settle", 4000, 6000),
            ("a measure-000", 7000, 10000),
            ("block 0", 3000, 10000),
            ("segment 0", 0, 11000),
        ];
        assert_eq!(told, wanted);
        assert_eq!((all[0].boot.as_deref(), all[0].segment, all.len()), (Some("boot"), 0, 2));
        assert_eq!((all[1].boot.as_deref(), all[1].segment), (None, 1));
        assert_eq!(all[1].moments[0].1, "a measure-001 begun, and no end is recorded");
        // The launch ran from 50 to 52 s on the device: begun after 7 s, ended before 10.001 s of the host.
        let windows = [((0, key), (Some(50_000_000_000), Some(52_000_000_000)))].into_iter().collect();
        let bounds = all[0].bounds(&windows);
        assert_eq!((bounds.low + zero, bounds.high + zero), (41_999_000_000, 43_000_000_000));
        assert_eq!(all[1].bounds(&windows), Bounds::OPEN);
    }

    fn line(t: u32, what: &str, cell: &str, n: u32) -> String {
        let tail = r#","segment":0,"status":"ok","failure":null,"ttft_ms":null,"decode_tok_s":null"#;
        let tail = if what == "launch_end" { tail } else { "" };
        format!(
            r#"{{"v":1,"utc":"2026-11-30T00:00:{t:02}Z","event":"{what}","cell":"{cell}","pass":"measure","launch":{n},"block":0{tail}}}"#
        )
    }

    #[test]
    fn cells_that_share_a_process_bound_it_together() {
        let lines = [(1, "launch_begin", "a"), (1, "launch_begin", "b"), (9, "launch_end", "a"), (9, "launch_end", "b")];
        let text = lines.map(|(t, what, cell)| line(t, what, cell, 0)).join("\n");
        let all = parts(&entries(&text), &BTreeMap::new());
        assert_eq!((all[0].launches.len(), all[0].moments.len()), (2, 0));
        let key = |cell: &str| (0, (cell.to_owned(), "measure".to_owned(), 0));
        // The first has the begin of the process, the last its end: 100 to 107 s of the device.
        let windows = [(key("a"), (Some(100_000_000_000), None)), (key("b"), (None, Some(107_000_000_000)))].into_iter().collect();
        let (zero, bounds) = (unix_ns("2026-11-30T00:00:00Z").unwrap(), all[0].bounds(&windows));
        assert_eq!((bounds.low + zero, bounds.high + zero), (97_999_000_000, 99_000_000_000));
    }

    #[test]
    fn a_reboot_within_a_segment_begins_a_part() {
        let line = |t: u32, what: &str, n: u32| line(t, what, "a", n);
        let text = [line(1, "launch_begin", 0), line(2, "launch_end", 0), line(3, "launch_begin", 1), line(4, "launch_end", 1)].join("\n");
        let boot = |n: u32| ((0, ("a".to_owned(), "measure".to_owned(), n)), n.to_string());
        let all = parts(&entries(&text), &[boot(0), boot(1)].into_iter().collect());
        let told: Vec<_> = all.iter().map(|p| (p.boot.as_deref(), p.launches.len())).collect();
        assert_eq!(told, [(Some("0"), 1), (Some("1"), 1)]);
    }
}
