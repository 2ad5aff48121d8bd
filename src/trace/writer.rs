//! The file: one JSON object of Chrome's "Trace Event Format" (Chromium's Catapult project), written event by event.
//!
//! Names come from devices and files: they go through [`crate::safe`] and `serde_json`.

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

use serde::Serialize;
use serde_json::{Map, Value};

use super::spans::Span;
use crate::safe::{printable, printable_lines};

/// Further words of an event.
pub type Args = Map<String, Value>;

/// A row in the viewer: a thread of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

/// Characters of a name that are kept: a viewer shows it in one line.
const LONGEST: usize = 300;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Stretches of time.
    pub spans: u64,
    /// Moments.
    pub instants: u64,
    /// Values of counters.
    pub counters: u64,
    /// Events that would lie before the device's boot, where its clock has no time.
    pub before_boot: u64,
}

/// Writes a trace.
pub struct Writer<W> {
    out: W,
    first: bool,
    named: BTreeSet<Track>,
    /// So far.
    pub count: Count,
    /// The earliest moment, ns.
    pub earliest: Option<i64>,
}

#[derive(Serialize)]
struct Event<'a> {
    ph: &'static str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    /// us; of a time in ns the double keeps every digit for 104 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    name: &'a str,
    /// Scope of an instant: the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    args: Args,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    pub fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        Ok(Self { out, first: true, named: BTreeSet::new(), count: Count::default(), earliest: None })
    }

    /// Names a process; processes are shown in the order of `pid`.
    pub fn process(&mut self, pid: u32, name: &str) -> io::Result<()> {
        self.meta("process_name", pid, None, "name", name.into())?;
        self.meta("process_sort_index", pid, None, "sort_index", pid.into())
    }

    /// Names a thread, once; threads are shown in the order of `tid`.
    pub fn thread(&mut self, track: Track, name: &str) -> io::Result<()> {
        if !self.named.insert(track) {
            return Ok(());
        }
        self.meta("thread_name", track.pid, Some(track.tid), "name", printable(name).into())?;
        self.meta("thread_sort_index", track.pid, Some(track.tid), "sort_index", track.tid.into())
    }

    fn meta(&mut self, what: &str, pid: u32, tid: Option<u32>, key: &str, value: Value) -> io::Result<()> {
        let args = [(key.to_owned(), value)].into_iter().collect();
        self.event(Event { ph: "M", pid, tid, ts: None, dur: None, name: what, s: None, args })
    }

    /// Stretches of one track, which must nest: see [`super::spans::nested`].
    pub fn spans(&mut self, track: Track, spans: Vec<Span>) -> io::Result<()> {
        for span in spans {
            if self.begins(span.from) {
                self.count.spans += 1;
                let (ts, dur) = (Some(us(span.from)), Some(us(span.to.saturating_sub(span.from))));
                self.event(Event { ph: "X", pid: track.pid, tid: Some(track.tid), ts, dur, name: &span.name, s: None, args: span.args })?;
            }
        }
        Ok(())
    }

    /// A moment.
    pub fn instant(&mut self, track: Track, name: &str, at_ns: i64, args: Args) -> io::Result<()> {
        if !self.begins(at_ns) {
            return Ok(());
        }
        self.count.instants += 1;
        self.event(Event { ph: "i", pid: track.pid, tid: Some(track.tid), ts: Some(us(at_ns)), dur: None, name, s: Some("t"), args })
    }

    /// A value of a counter of a process, in the unit that its series is named by.
    pub fn counter(&mut self, pid: u32, name: &str, unit: &str, at_ns: i64, value: f64) -> io::Result<()> {
        let number = serde_json::Number::from_f64(value);
        let Some(number) = number.filter(|_| self.begins(at_ns)) else { return Ok(()) };
        self.count.counters += 1;
        let args = [(printable(unit), Value::Number(number))].into_iter().collect();
        self.event(Event { ph: "C", pid, tid: None, ts: Some(us(at_ns)), dur: None, name, s: None, args })
    }

    /// Whether a moment can be drawn.
    fn begins(&mut self, at_ns: i64) -> bool {
        if at_ns < 0 {
            self.count.before_boot += 1;
            return false;
        }
        self.earliest = Some(self.earliest.map_or(at_ns, |earliest| earliest.min(at_ns)));
        true
    }

    fn event(&mut self, mut event: Event<'_>) -> io::Result<()> {
        let name: String = printable(event.name).chars().take(LONGEST).collect();
        event.args.values_mut().for_each(clean);
        self.out.write_all(if std::mem::take(&mut self.first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut self.out, &Event { name: &name, ..event })?;
        Ok(())
    }

    /// Ends the file with what is said about the whole of it.
    pub fn end(mut self, other: Args) -> io::Result<Count> {
        let mut other = Value::Object(other);
        clean(&mut other);
        self.out.write_all(b"\n],\"otherData\":")?;
        serde_json::to_writer(&mut self.out, &other)?;
        self.out.write_all(b"}\n")?;
        self.out.flush()?;
        Ok(self.count)
    }
}

/// Texts within a value, as a reader may see them.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = printable_lines(text),
        Value::Array(all) => all.iter_mut().for_each(clean),
        Value::Object(all) => all.values_mut().for_each(clean),
        _ => {}
    }
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_that_would_break_a_viewer() {
        let mut writer = Writer::begin(Vec::new()).unwrap();
        let track = Track { pid: 1, tid: 2 };
        writer.thread(track, "a\"\u{1b}[31m\u{202e}\n</script>").unwrap();
        let args: Args = [("why".to_owned(), Value::from("x\u{7}"))].into_iter().collect();
        writer.spans(track, vec![Span { name: "n".repeat(9999), from: 1_234_567_890_123_457, to: 1_234_567_890_123_458, args }]).unwrap();
        writer.instant(track, "early", -1, Args::new()).unwrap();
        writer.counter(1, "t", "C", 5, f64::NAN).unwrap();
        writer.counter(1, "t", "C", 5, 36.5).unwrap();
        assert_eq!(writer.count, Count { spans: 1, instants: 0, counters: 1, before_boot: 1 });
        let mut out = Vec::new();
        writer.out.iter().for_each(|b| out.push(*b));
        out.extend(b"]}");
        let value: Value = serde_json::from_slice(&out).unwrap();
        let events = value["traceEvents"].as_array().unwrap();
        assert_eq!(events[0]["args"]["name"], "a\" [31m\u{fffd} </script>");
        assert_eq!(events[2]["name"].as_str().unwrap().len(), LONGEST);
        // 14 days after boot a nanosecond is one.
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\"ts\":1234567890123.457,\"dur\":0.001,"), "{text}");
        assert_eq!((&events[2]["args"]["why"], &events[3]["args"]["C"]), (&Value::from("x "), &Value::from(36.5)));
    }
}
