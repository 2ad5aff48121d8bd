//! A framework's own record of what it did when: Chrome's trace events, or a profile with time stamps.

use std::{collections::BTreeMap, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// One piece of work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slice {
    /// What it belongs to: a thread, a kind of call.
    pub track: String,
    /// Its name as written.
    pub name: String,
    /// Begin on the record's clock, in us.
    pub start_us: f64,
    /// Length in us.
    pub dur_us: f64,
    /// What else is written of it.
    pub args: Map<String, Value>,
}

/// What is known of a record's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC` of the device. Whoever draws it has to see that all of it lies within its launch.
    Monotonic,
    /// Begins at a moment that is not written. All slices lie within this time of `CLOCK_MONOTONIC`, begin and end in us.
    Within(f64, f64),
    /// Nothing.
    Own,
}

/// One record.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// What it is, for a reader.
    pub title: String,
    /// Its clock.
    pub clock: Clock,
    /// In the order of the file.
    pub slices: Vec<Slice>,
    /// Events that are no slices (counters, instants, flows) or can't be read: not counted among them.
    pub skipped: usize,
    /// The file ends before its end; what is whole is read.
    pub cut: bool,
}

impl Timeline {
    /// First begin and last end on the record's clock, in us.
    pub fn extent(&self) -> Option<(f64, f64)> {
        let ends = self.slices.iter().map(|s| (s.start_us, s.start_us + s.dur_us));
        ends.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }
}

/// Reads Chrome's trace events: an array of them, which has no end after a crash, or an object with `traceEvents`. `None` for anything else.
///
/// Format: "Trace Event Format" of Chromium's Catapult project. Complete events (`X`) and pairs (`B`, `E`) become slices; a thread has the name that
/// the file gives it, or its number.
pub fn chrome(bytes: &[u8]) -> Option<Timeline> {
    let mut events = Events::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let whole = Top(&mut events).deserialize(&mut json).is_ok();
    if events.slices.is_empty() {
        return None;
    }
    let name = |thread: &Thread| events.names.get(thread).cloned().unwrap_or_else(|| format!("thread {}", thread.1));
    let unended: usize = events.open.values().map(Vec::len).sum();
    let slices = std::mem::take(&mut events.slices).into_iter();
    let slices = slices.map(|(thread, slice)| Slice { track: name(&thread), ..slice }).collect();
    Some(Timeline { title: String::new(), clock: Clock::Own, slices, skipped: events.skipped + unended, cut: !whole })
}

/// Process and thread as written.
type Thread = (String, String);

#[derive(Default)]
struct Events {
    slices: Vec<(Thread, Slice)>,
    /// Begun and not ended, by thread.
    open: BTreeMap<Thread, Vec<Slice>>,
    names: BTreeMap<Thread, String>,
    skipped: usize,
}

impl Events {
    fn take(&mut self, mut event: Value) {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let thread = (word(&event["pid"]), word(&event["tid"]));
        let args = match event.get_mut("args").map(Value::take) {
            Some(Value::Object(args)) => args,
            _ => Map::new(),
        };
        let (name, ts) = (word(&event["name"]), event["ts"].as_f64());
        let slice = |start_us: f64, dur_us: f64, args| Slice { track: String::new(), name, start_us, dur_us, args };
        match (event["ph"].as_str(), ts, event["dur"].as_f64()) {
            (Some("X"), Some(ts), Some(dur)) if dur >= 0.0 => self.slices.push((thread, slice(ts, dur, args))),
            (Some("B"), Some(ts), _) => self.open.entry(thread).or_default().push(slice(ts, 0.0, args)),
            (Some("E"), Some(ts), _) => match self.open.get_mut(&thread).and_then(Vec::pop) {
                Some(begun) if begun.start_us <= ts => {
                    self.slices.push((thread, Slice { dur_us: ts - begun.start_us, ..begun }));
                }
                _ => self.skipped += 1,
            },
            (Some("M"), ..) if event["name"] == "thread_name" => {
                self.names.extend(args.get("name").and_then(Value::as_str).map(|name| (thread, name.to_owned())));
            }
            (Some("M"), ..) => {}
            _ => self.skipped += 1,
        }
    }
}

/// The whole file: an array of events, or an object that has one.
struct Top<'a>(&'a mut Events);

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("trace events")
    }
    // Event by event, so that those before the place where a file is cut are there.
    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<Value>()? {
            self.0.take(event);
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            if key == "traceEvents" {
                object.next_value_seed(Top(&mut *self.0))?;
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a trace of ONNX Runtime, which is cut.
    const CUT: &str = r#"[
{"cat" : "Session","pid" :34368,"tid" :39520,"dur" :698,"ts" :11,"ph" : "X","name" :"model_loading_array","args" : {}},
{"cat" : "Session","pid" :34368,"tid" :39520,"dur" :15496,"ts" :869,"ph" : "X","name" :"session_initialization","args" : {}},
{"cat" : "Node","pid" :34368,"tid" :39520,"dur" :0,"ts" :59304,"ph" : "X","name" :"Pad_fence_be"#;

    #[test]
    fn a_cut_array_keeps_what_is_whole() {
        let read = chrome(CUT.as_bytes()).unwrap();
        let found: Vec<_> = read.slices.iter().map(|s| (s.name.as_str(), s.start_us, s.dur_us, s.track.as_str())).collect();
        assert_eq!(
            found,
            [("model_loading_array", 11.0, 698.0, "thread 39520"), ("session_initialization", 869.0, 15496.0, "thread 39520")]
        );
        assert_eq!((read.cut, read.extent(), read.clock), (true, Some((11.0, 16365.0)), Clock::Own));
    }

    #[test]
    fn pairs_nest_and_what_is_none_is_counted() {
        let text = r#"{"displayTimeUnit":"ms","traceEvents":[
            {"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"main"}},
            {"ph":"B","pid":1,"tid":2,"ts":1,"name":"out"},{"ph":"B","pid":1,"tid":2,"ts":2,"name":"in","args":{"n":3}},
            {"ph":"E","pid":1,"tid":2,"ts":5},{"ph":"E","pid":1,"tid":2,"ts":9},{"ph":"E","pid":1,"tid":2,"ts":10},
            {"ph":"B","pid":1,"tid":2,"ts":11,"name":"never ended"},{"ph":"C","pid":1,"ts":1,"name":"c","args":{"v":1}},7]}"#;
        let read = chrome(text.as_bytes()).unwrap();
        let found: Vec<_> = read.slices.iter().map(|s| (s.name.as_str(), s.start_us, s.dur_us, s.track.as_str())).collect();
        assert_eq!(found, [("in", 2.0, 3.0, "main"), ("out", 1.0, 8.0, "main")]);
        // An end without a begin, a begin without an end, a counter, a number.
        assert_eq!((read.skipped, read.cut, &read.slices[0].args["n"]), (4, false, &Value::from(3)));
    }

    #[test]
    fn other_json_is_no_trace() {
        for text in ["", "{", "[]", "[1,2]", r#"{"components":[]}"#, r#"{"traceEvents":7}"#, "\u{0}[", &"[".repeat(9999)] {
            assert_eq!(chrome(text.as_bytes()), None, "{text:.20}");
        }
        for end in 0..CUT.len() {
            let _ = chrome(&CUT.as_bytes()[..end]);
        }
    }
}
