//! Writing the events file.

use std::{
    env,
    fs::File,
    io::{self, Write},
    path::Path,
};

use serde::Serialize;

use crate::{EVENTS_ENV, Event, VERSION};

/// Writes events in the order in which they are given, one `write(2)` a line.
///
/// [`EventWriter::now`] writes at once: what is said before a crash stays. [`EventWriter::defer`] costs no system call, for
/// events inside a timed stretch; they are written by the next call of `now` or [`EventWriter::flush`], or when the writer is dropped.
#[derive(Debug)]
pub struct EventWriter<W: Write = File> {
    out: W,
    deferred: Vec<Event>,
    compact: bool,
}

/// Tokens in one line of a compact file: its bytes stay far under [`crate::MAX_LINE`].
const IN_A_LINE: usize = 1024;

#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    #[serde(flatten)]
    event: &'a Event,
}

impl EventWriter {
    /// Creates the file that [`EVENTS_ENV`] names.
    ///
    /// # Errors
    /// The variable is not set, or the file cannot be created.
    pub fn from_env() -> io::Result<Self> {
        let path = env::var_os(EVENTS_ENV)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("the environment has no {EVENTS_ENV}")))?;
        Self::create(Path::new(&path))
    }

    /// Creates the events file, or empties it.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self::new).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
    }
}

impl<W: Write> EventWriter<W> {
    /// Writes to something that is already open; it must not be a buffer of its own.
    pub fn new(out: W) -> Self {
        Self { out, deferred: Vec::new(), compact: false }
    }

    /// Writes the event, after those deferred before it.
    ///
    /// # Errors
    /// The write failed.
    pub fn now(&mut self, event: &Event) -> io::Result<()> {
        self.flush()?;
        self.line(event)
    }

    /// Keeps the event for later. Room for the events of a query is made by [`EventWriter::reserve`].
    pub fn defer(&mut self, event: Event) {
        self.deferred.push(event);
    }

    /// Keeps several events for later.
    pub fn defer_all(&mut self, events: impl IntoIterator<Item = Event>) {
        self.deferred.extend(events);
    }

    /// From here on deferred tokens that follow each other are written as [`Event::Tokens`]: 15 bytes a token instead of 70. For soaks.
    pub fn compact(&mut self) {
        self.compact = true;
    }

    /// Makes room for `n` deferred events, so that none of them has to wait for memory.
    pub fn reserve(&mut self, n: usize) {
        self.deferred.reserve(n);
    }

    /// Writes the deferred events.
    ///
    /// # Errors
    /// The write failed; the events from there on are lost.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.deferred);
        let result = if self.compact { self.compacted(&events) } else { events.iter().try_for_each(|event| self.line(event)) };
        events.clear();
        self.deferred = events; // keeps its capacity
        result
    }

    fn compacted(&mut self, events: &[Event]) -> io::Result<()> {
        let mut rest = events;
        while let Some(first) = rest.first() {
            let (line, taken) = together(rest);
            self.line(line.as_ref().unwrap_or(first))?;
            rest = &rest[taken..];
        }
        Ok(())
    }

    fn line(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line { v: VERSION, event })?;
        line.push(b'\n');
        self.out.write_all(&line)
    }
}

/// The tokens at the start of a list that one line can say, and how many events those are; `None` for an event that stays as it is.
fn together(events: &[Event]) -> (Option<Event>, usize) {
    let Some(Event::Token { query, i, id, t_ns }) = events.first() else { return (None, 1) };
    let (mut ids, mut gaps_ns, mut last) = (Vec::from_iter(*id), Vec::new(), *t_ns);
    for (event, place) in events.iter().take(IN_A_LINE).zip(*i..).skip(1) {
        match event {
            Event::Token { query: q, i, id: token, t_ns }
                if q == query && *i == place && token.is_some() == id.is_some() && *t_ns >= last =>
            {
                ids.extend(*token);
                gaps_ns.push(t_ns - last);
                last = *t_ns;
            }
            _ => break,
        }
    }
    let taken = gaps_ns.len() + 1;
    (Some(Event::Tokens { query: *query, i: *i, t_ns: *t_ns, gaps_ns, ids }), taken)
}

impl<W: Write> Drop for EventWriter<W> {
    fn drop(&mut self) {
        // Nobody is left to be told; the reader sees that the run has no end.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_events;

    /// Counts the writes, as strace would.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);
    impl Write for Writes {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0.push(buf.to_vec());
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_write_a_line_and_in_order() {
        let mut w = EventWriter::new(Writes::default());
        w.now(&Event::LoadBegin { t_ns: 1 }).unwrap();
        w.reserve(2);
        w.defer(Event::Token { query: 0, i: 0, id: Some(7), t_ns: 2 });
        w.defer(Event::note("engine", "a\nb"));
        assert_eq!(w.out.0.len(), 1);
        w.now(&Event::End { t_ns: 3 }).unwrap();
        assert_eq!(w.out.0.len(), 4);
        assert_eq!(
            w.out.0[1],
            br#"{"v":1,"event":"token","query":0,"i":0,"id":7,"t_ns":2}
"#
        );
        let (events, warnings) = parse_events(&w.out.0.concat());
        assert_eq!((events.len(), warnings.len()), (4, 0));
        assert!(matches!(&events[2], Event::Note { value, .. } if value == "a\nb"));
    }

    #[test]
    fn a_compact_file_reads_as_the_same_events() {
        let token = |query, i, id, t_ns| Event::Token { query, i, id, t_ns };
        let mut events: Vec<Event> = (0..1500).map(|i| token(0, i, Some(i % 7), 100 + u64::from(i) * 3)).collect();
        events.push(Event::note("k", "v"));
        events.extend([
            token(1, 0, None, 9000),
            token(1, 1, None, 9000),
            token(2, 0, Some(1), 9100),
            token(2, 2, Some(1), 9200),
            token(2, 3, Some(1), 9000),
        ]);
        let mut w = EventWriter::new(Writes::default());
        w.compact();
        events.iter().cloned().for_each(|e| w.defer(e));
        w.flush().unwrap();
        // 1024 and 476 tokens, the note, query 1, and query 2 in three: a place is missing, then the time goes backwards.
        assert_eq!(w.out.0.len(), 7);
        assert!(w.out.0.iter().all(|line| line.len() < crate::MAX_LINE));
        let (back, warnings) = parse_events(&w.out.0.concat());
        assert_eq!((back, warnings.len()), (events, 0));
    }

    #[test]
    fn dropping_writes_what_was_deferred() {
        let path = env::temp_dir().join(format!("bench-events-{}", std::process::id()));
        let mut w = EventWriter::create(&path).unwrap();
        w.defer(Event::End { t_ns: 9 });
        drop(w);
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"v\":1,\"event\":\"end\",\"t_ns\":9}\n");
        std::fs::remove_file(path).unwrap();
    }
}
