//! Reads `phase_begin` and `phase_end`: parts of the load and of queries, one after the other. Nothing about them fails a launch.

use std::collections::BTreeSet;

use bench_runner_protocol::{MAX_WARNINGS, Phase};
use serde::{Deserialize, Serialize};

/// The most parts of a launch that are kept: five queries of a thousand tokens have twenty thousand. A file of garbage may have millions.
const MAX_SPANS: usize = 100_000;
/// The most names of a program's own.
const MAX_OWN: usize = 16;
/// The longest name, in bytes.
const MAX_NAME: usize = 32;

/// A part of the load or of a query, as the runner timed it. Parts don't overlap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSpan {
    /// Number of the query; `None` for a part of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<u32>,
    /// The token that comes of it, where the runner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u32>,
    /// A word of [`Phase`], or a short name of the program's own.
    pub phase: String,
    /// Begin, CLOCK_MONOTONIC ns.
    pub begin_ns: u64,
    /// End, CLOCK_MONOTONIC ns.
    pub end_ns: u64,
}

/// The parts of a launch as they are read.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    open: Option<PhaseSpan>,
    /// Parts that began inside the open one and have not ended.
    inside: u32,
    over_ns: u64,
    own: BTreeSet<String>,
    spans: Vec<PhaseSpan>,
    warnings: Vec<String>,
    unsaid: usize,
}

impl Phases {
    pub fn begin(&mut self, query: Option<u32>, token: Option<u32>, phase: String, t_ns: u64) {
        if let Some(outer) = &self.open {
            self.inside = self.inside.saturating_add(1);
            let outer = outer.phase.clone();
            self.warn(&phase, &format!("begins inside `{}` and is not counted", short(&outer)));
        } else {
            self.open = Some(PhaseSpan { query, token, phase, begin_ns: t_ns, end_ns: t_ns });
        }
    }

    /// `window_ns`: when the program ran.
    pub fn end(&mut self, query: Option<u32>, phase: &str, t_ns: u64, window_ns: Option<(u64, u64)>) {
        if self.inside > 0 {
            self.inside -= 1;
            return;
        }
        let Some(span) = self.open.take() else { return self.warn(phase, "ends without a begin") };
        if (span.phase.as_str(), span.query) != (phase, query) {
            return self.warn(&span.phase, &format!("began, and `{}` ended: neither is counted", short(phase)));
        }
        let outside = window_ns.is_some_and(|(start, end)| span.begin_ns < start || t_ns > end);
        if outside || t_ns < span.begin_ns || span.begin_ns < self.over_ns {
            let why = if outside { "is not within the launch" } else { "goes back in time, or overlaps the one before" };
            return self.warn(phase, &format!("{why}: not counted"));
        }
        if !self.known(phase) {
            return;
        }
        if self.spans.len() == MAX_SPANS {
            return self.warn(phase, &format!("is over the limit of {MAX_SPANS} phases: not counted"));
        }
        self.over_ns = t_ns;
        self.spans.push(PhaseSpan { end_ns: t_ns, ..span });
    }

    /// Whether a name is one that can be shown; one of the program's own is told once.
    fn known(&mut self, phase: &str) -> bool {
        if Phase::ALL.iter().any(|known| known.as_str() == phase) || self.own.contains(phase) {
            return true;
        }
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
        let fits = (1..=MAX_NAME).contains(&phase.len()) && phase.bytes().all(plain) && self.own.len() < MAX_OWN;
        if fits {
            self.own.insert(phase.to_owned());
            self.warn(phase, "is none of the protocol's and is shown under its own name");
        } else {
            let rule = format!("is not counted: up to {MAX_OWN} names of one's own, each of up to {MAX_NAME} of a-z, 0-9, _ and -");
            self.warn(phase, &rule);
        }
        fits
    }

    fn warn(&mut self, phase: &str, what: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(format!("phase `{}` {what}", short(phase)));
        } else {
            self.unsaid += 1;
        }
    }

    /// What was read, and what was odd about it.
    pub fn finish(mut self) -> (Vec<PhaseSpan>, Vec<String>) {
        if let Some(open) = self.open.take() {
            self.warn(&open.phase, "never ended and is not counted");
        }
        if self.unsaid > 0 {
            self.warnings.push(format!("{} more about phases", self.unsaid));
        }
        (self.spans, self.warnings)
    }
}

/// A program's word, cut so that a warning stays readable.
fn short(text: &str) -> String {
    text.chars().take(2 * MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Captured, Ended, Parsed, parsed_from_events};

    fn read(lines: &str) -> Parsed {
        const AROUND: [&str; 2] = [
            r#"{"v":1,"event":"load_begin","t_ns":10}
{"v":1,"event":"load_end","t_ns":20}
{"v":1,"event":"prompt","t_ns":30,"query":0,"tokens":4}
{"v":1,"event":"token","t_ns":40,"query":0,"i":0}
"#,
            r#"{"v":1,"event":"query_end","t_ns":50,"query":0,"finish":"length"}
{"v":1,"event":"end","t_ns":60}
"#,
        ];
        let files = [("events.jsonl".to_owned(), [AROUND[0], lines, AROUND[1]].concat().into_bytes())].into();
        let ended = Ended { window_ns: Some((5, 70)), ..Ended::default() };
        parsed_from_events(&Captured { files, ended, ..Captured::default() }).expect("phases fail nothing")
    }

    fn begin(phase: &str, t_ns: u64) -> String {
        format!("{{\"v\":1,\"event\":\"phase_begin\",\"phase\":\"{phase}\",\"query\":0,\"i\":0,\"t_ns\":{t_ns}}}\n")
    }

    fn end(phase: &str, t_ns: u64) -> String {
        format!("{{\"v\":1,\"event\":\"phase_end\",\"phase\":\"{phase}\",\"query\":0,\"t_ns\":{t_ns}}}\n")
    }

    #[test]
    fn parts_follow_each_other() {
        let load = r#"{"v":1,"event":"phase_begin","phase":"library","t_ns":11}
{"v":1,"event":"phase_end","phase":"library","t_ns":14}
"#;
        let parsed = read(&[load, &begin("h2d", 30), &end("h2d", 31), &begin("execute", 31), &end("execute", 39)].concat());
        let span = |query, token, phase: &str, begin_ns, end_ns| PhaseSpan { query, token, phase: phase.to_owned(), begin_ns, end_ns };
        let wanted =
            [span(None, None, "library", 11, 14), span(Some(0), Some(0), "h2d", 30, 31), span(Some(0), Some(0), "execute", 31, 39)];
        assert_eq!((parsed.phases.as_slice(), parsed.warnings.len(), parsed.ended), (&wanted[..], 0, true));
    }

    #[test]
    fn what_is_odd_is_told_and_not_counted() {
        for (lines, kept, words) in [
            (begin("execute", 30) + &begin("h2d", 31) + &end("h2d", 32) + &end("execute", 39), 1, "`h2d` begins inside `execute`"),
            (begin("execute", 30), 0, "`execute` never ended"),
            (end("execute", 30), 0, "`execute` ends without a begin"),
            (begin("execute", 30) + &end("sample", 31), 0, "`execute` began, and `sample` ended"),
            (begin("execute", 31) + &end("execute", 30), 0, "`execute` goes back in time"),
            (begin("execute", 30) + &end("execute", 35) + &begin("sample", 34) + &end("sample", 36), 1, "overlaps the one before"),
            (begin("execute", 30) + &end("execute", 71), 0, "is not within the launch"),
            (begin("kv-copy", 30) + &end("kv-copy", 31) + &begin("kv-copy", 31) + &end("kv-copy", 32), 2, "under its own name"),
            (begin("KV copy", 30) + &end("KV copy", 31), 0, "up to 16 names"),
            (begin("", 30) + &end("", 31), 0, "up to 16 names"),
        ] {
            let parsed = read(&lines);
            assert_eq!((parsed.phases.len(), parsed.warnings.len(), parsed.ended), (kept, 1, true), "{words}: {:?}", parsed.warnings);
            assert!(parsed.warnings[0].contains(words), "{words} in {:?}", parsed.warnings);
        }
    }

    #[test]
    fn floods_are_cut() {
        let mut phases = Phases::default();
        for t in 0..MAX_SPANS as u64 + 100 {
            phases.begin(None, None, "execute".to_owned(), t);
            phases.end(None, "execute", t, None);
        }
        let (spans, warnings) = phases.finish();
        assert_eq!((spans.len(), warnings.len(), warnings.last().unwrap().as_str()), (MAX_SPANS, 21, "80 more about phases"));
        let mut phases = Phases::default();
        for t in 0..100_u64 {
            phases.begin(None, None, format!("own-{t}"), t);
            phases.end(None, &format!("own-{t}"), t, None);
        }
        for _ in 0..1000 {
            phases.begin(None, None, "x".repeat(60_000), 200);
        }
        let (spans, warnings) = phases.finish();
        assert_eq!((spans.len(), warnings.len()), (MAX_OWN, 21));
        assert!(warnings.iter().all(|w| w.len() < 300));
    }
}
