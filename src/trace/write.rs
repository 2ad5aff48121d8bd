//! A run folder into one trace: from its journal and logs, or, where these are gone, from its tables.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::{Path, PathBuf},
};

use bench_backend_api::Backend;
use serde_json::{Value, json};
use thiserror::Error;

pub use super::writer::Count;
use super::{
    alignment::HostClock,
    choice::{Candidate, Wanted, choose},
    counters::Counters,
    frameworks,
    harness::{self, Enclosed, Part},
    launch::{HARNESS, Key, Launch},
    layers::laid,
    recorded,
    spans::{Span, nested, ns},
    tables,
    writer::{Track, Writer},
};
use crate::{
    registry,
    results::{
        boot::first_step,
        folder::{FolderError, id_of},
        journal,
        launches::{self, Record, Recorded},
        manifest::Manifest,
        read::TableError,
        schema::{TELEMETRY, TOKENS},
    },
    run::events::Status,
    scenario::Plan,
};

/// Why no trace could be written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The folder can't be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A table can't be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The trace, or a file that it is made of.
    #[error("the trace: {0}")]
    Io(#[from] io::Error),
    /// There is no launch in it.
    #[error(
        "{0}: no launch is recorded here, so that there is nothing to draw (a run folder has launches.csv, or logs/ and journal.jsonl)"
    )]
    Nothing(PathBuf),
    /// Nothing fits.
    #[error("no launch fits --cell and --launch; the first of {of}: {example}")]
    NoneFits {
        /// How many there are.
        of: usize,
        /// One of them.
        example: String,
    },
}

/// What was drawn.
#[derive(Debug)]
pub struct Drawn {
    /// Launches.
    pub launches: usize,
    /// Events by kind.
    pub count: Count,
    /// What a reader should know, in words; they are in the file too.
    pub notes: Vec<String>,
}

/// The trace while it is written.
struct Trace<W> {
    writer: Writer<W>,
    /// The next free process.
    next: u32,
    launches: usize,
    notes: Vec<String>,
    /// How the journal was placed, by segment.
    host: Vec<Value>,
}

const CLOCK: &str = "times are CLOCK_MONOTONIC of the device; between launches a counter's line only carries on its last value";
const OWN_ZERO: &str =
    "the folder has tables and no logs: each launch is a process of its own whose time 0 is its spawn, in the six digits of the tables";

/// Writes the trace of a run. Memory grows with tokens, operations and readings of power, not with the other samples.
///
/// # Errors
/// See [`TraceError`]; what is damaged in part is drawn in part, and said.
pub fn write<W: Write>(run: &Path, wanted: &Wanted, out: W) -> Result<Drawn, TraceError> {
    let mut trace = Trace { writer: Writer::begin(out)?, next: 1, launches: 0, notes: Vec::new(), host: Vec::new() };
    let manifest = Manifest::read(run).map_err(|e| trace.notes.push(e.to_string())).ok();
    let recorded = match &manifest {
        Some(manifest) if run.join("journal.jsonl").is_file() => launches::read(run, &manifest.device.name)?,
        _ => Recorded::default(),
    };
    let clock = if recorded.launches.is_empty() {
        trace.draw_tables(run, wanted)?;
        OWN_ZERO
    } else {
        trace.draw_logs(run, manifest.as_ref(), &recorded, wanted)?;
        CLOCK
    };
    let other = json!({
        "run": id_of(&run.canonicalize().unwrap_or_else(|_| run.to_path_buf())),
        "written_by": concat!("bench ", env!("CARGO_PKG_VERSION")),
        "clock": clock,
        "host_clock": trace.host,
        "notes": trace.notes,
    });
    let Value::Object(other) = other else { unreachable!("it is an object") };
    // A viewer that does not show the file's own words shows those of an event.
    let about = Track { pid: 1, tid: HARNESS };
    trace.writer.thread(about, "harness")?;
    trace.writer.instant(about, "about this trace", trace.writer.earliest.unwrap_or(0), other.clone())?;
    let count = trace.writer.end(other)?;
    Ok(Drawn { launches: trace.launches, count, notes: trace.notes })
}

impl<W: Write> Trace<W> {
    fn process(&mut self, name: &str) -> io::Result<u32> {
        let pid = self.next;
        self.next += 1;
        self.writer.process(pid, name)?;
        Ok(pid)
    }

    fn choose(&mut self, all: &[Candidate], wanted: &Wanted) -> Result<Vec<bool>, TraceError> {
        let (drawn, said) = choose(all, wanted);
        self.notes.extend(said);
        self.launches = drawn.iter().filter(|drawn| **drawn).count();
        match all.first().filter(|_| self.launches == 0) {
            Some(first) => {
                Err(TraceError::NoneFits { of: all.len(), example: format!("{} {}-{:03}", first.key.0, first.key.1, first.key.2) })
            }
            None => Ok(drawn),
        }
    }

    fn draw_logs(&mut self, run: &Path, manifest: Option<&Manifest>, recorded: &Recorded, wanted: &Wanted) -> Result<(), TraceError> {
        self.notes.extend(recorded.warnings.iter().cloned());
        if !recorded.unfinished.is_empty() {
            self.notes.push(format!("{} launches began and have no record: the harness shows their begins", recorded.unfinished.len()));
        }
        let candidate = |(dir, record): &(PathBuf, Record)| Candidate {
            key: recorded::key(record),
            ok: record.status == Status::Ok,
            bytes: recorded::bytes(dir, record),
        };
        let all: Vec<Candidate> = recorded.launches.iter().map(candidate).collect();
        let drawn = self.choose(&all, wanted)?;
        let device = manifest.map_or("device", |manifest| &manifest.device.name);
        let clocks = self.clocks(device, recorded)?;
        self.harness(run, manifest, recorded, &clocks)?;
        let plan = std::fs::read_to_string(run.join("plan.toml")).ok().and_then(|text| Plan::from_toml(&text).ok());
        let own = plan.as_ref().map(|plan| registry::commands(&plan.commands)).unwrap_or_default();
        let backends = registry::with(&own);
        let mut nowhere = 0;
        for ((dir, record), _) in recorded.launches.iter().zip(drawn).filter(|(_, drawn)| *drawn) {
            let Some(mut launch) = recorded::launch(dir, record) else {
                nowhere += 1;
                continue;
            };
            let class = manifest.and_then(|manifest| manifest.cells.get(&record.cell)).map(|cell| cell.device_class.as_str());
            launch.args.extend(class.map(|class| ("device_class".to_owned(), class.into())));
            let pid = clocks.get(&launch.boot).copied().unwrap_or(1);
            launch.draw(pid, &mut self.writer)?;
            recorded::telemetry(dir, record, pid, &mut self.writer)?;
            let planned = plan.iter().flat_map(|plan| &plan.cells).find(|planned| planned.id == record.cell);
            let backend: Option<&dyn Backend> =
                planned.and_then(|planned| backends.iter().copied().find(|backend| backend.id() == planned.cell.backend));
            frameworks::draw((dir, record), backend, &launch, &mut self.next, &mut self.writer, &mut self.notes)?;
            self.layers(&launch)?;
        }
        if nowhere > 0 {
            self.notes
                .push(format!("{nowhere} launches left no time of the device's clock (their programs never began): the harness has them"));
        }
        Ok(())
    }

    /// A process for each boot of the device: its clock begins anew.
    fn clocks(&mut self, device: &str, recorded: &Recorded) -> io::Result<BTreeMap<Option<String>, u32>> {
        let mut clocks = BTreeMap::new();
        for (_, record) in &recorded.launches {
            let boot = recorded::ran(record).and_then(|_| Some(first_step(record)?.boot_id.clone()));
            if let Some(boot) = boot.filter(|boot| !clocks.contains_key(boot)) {
                let name = match (clocks.len(), &boot) {
                    (0, _) => device.to_owned(),
                    (n, Some(_)) => format!("{device}, boot {} of the run (its clock began anew)", n + 1),
                    (_, None) => format!("{device}, boot not known (its clock is its own)"),
                };
                clocks.insert(boot, self.process(&name)?);
            }
        }
        if clocks.is_empty() {
            self.process(device)?;
        }
        Ok(clocks)
    }

    /// The journal, as far as its clock is known against the device's.
    fn harness(
        &mut self,
        run: &Path,
        manifest: Option<&Manifest>,
        recorded: &Recorded,
        clocks: &BTreeMap<Option<String>, u32>,
    ) -> Result<(), TraceError> {
        let (mut windows, mut boots) = (BTreeMap::new(), BTreeMap::new());
        for (_, record) in &recorded.launches {
            let of = (record.segment, recorded::key(record));
            let Some(done) = first_step(record) else { continue };
            boots.extend(done.boot_id.clone().map(|boot| (of.clone(), boot)));
            windows.extend(recorded::enclosed(record).map(|enclosed| (of, enclosed)));
        }
        let (entries, _) = journal::read(run)?;
        let last = recorded.segments.saturating_sub(1);
        for part in harness::parts(&entries, &boots) {
            // The readings in the manifest are of the last segment.
            let measured = manifest.and_then(|manifest| manifest.device_clock.as_ref()).filter(|_| part.segment == last);
            let placed = clocks.get(&part.boot).copied().zip(HostClock::of(measured, part.bounds(&windows)));
            let Some((pid, host)) = placed else {
                let said =
                    format!("what bench did in segment {} is left out: no launch tells what its clock is to the device's", part.segment);
                self.notes.push(said);
                continue;
            };
            self.host.push(host.words(part.segment));
            self.part(part, pid, &host, &windows)?;
        }
        Ok(())
    }

    fn part(&mut self, part: Part, pid: u32, host: &HostClock, windows: &BTreeMap<(u32, Key), Enclosed>) -> io::Result<()> {
        let track = Track { pid, tid: HARNESS };
        self.writer.thread(track, "harness")?;
        let mut spans: Vec<Span> = part.spans;
        for span in &mut spans {
            (span.from, span.to) = (host.device_ns(span.from), host.device_ns(span.to));
        }
        for (key, begun, ended) in part.launches {
            let (begin, end) = windows.get(&(part.segment, key)).copied().unwrap_or_default();
            let before = begin.map(|begin| Span::new("until its program starts (staging)", host.device_ns(begun), begin));
            spans.extend(before);
            spans.extend(end.map(|end| Span::new("after its end (fetching, judging)", end, host.device_ns(ended))));
        }
        self.writer.spans(track, nested(spans))?;
        for (at, name, args) in part.moments {
            self.writer.instant(track, &name, host.device_ns(at), args)?;
        }
        Ok(())
    }

    /// Operations of a profile pass, in a process of their own: their lengths are means, their places are nobody's.
    fn layers(&mut self, launch: &Launch) -> io::Result<()> {
        let laid = laid(&launch.parsed.layers, ns(launch.window.0));
        if laid.in_cycles > 0 {
            self.notes.push(format!(
                "{}: {} operations are told in cycles and are left out: without a known clock they have no length in time; layers.csv has them",
                launch.title(),
                laid.in_cycles
            ));
        }
        if laid.tracks.is_empty() {
            return Ok(());
        }
        let pid = self.process(&format!("operations of {}, means laid end to end (not when they ran)", launch.title()))?;
        for (tid, (name, spans)) in (1..).zip(laid.tracks) {
            self.writer.thread(Track { pid, tid }, &name)?;
            self.writer.spans(Track { pid, tid }, spans)?;
        }
        Ok(())
    }

    fn draw_tables(&mut self, run: &Path, wanted: &Wanted) -> Result<(), TraceError> {
        let tables = tables::launches(run)?;
        self.notes.extend(tables.problems);
        if tables.launches.is_empty() {
            return Err(TraceError::Nothing(run.to_path_buf()));
        }
        self.notes.push("what bench did is left out: the journal is not here".to_owned());
        // A table is of all launches: each is taken to have its part.
        let size = |file: &str| std::fs::metadata(run.join(file)).map_or(0, |m| m.len());
        let bytes = (size(TELEMETRY.file) + size(TOKENS.file)) / tables.launches.len() as u64;
        let candidate = |launch: &Launch| Candidate {
            key: launch.key.clone(),
            ok: launch.args.get("status").is_some_and(|status| status == Status::Ok.as_str()),
            bytes,
        };
        let all: Vec<Candidate> = tables.launches.values().map(candidate).collect();
        let drawn = self.choose(&all, wanted)?;
        let mut pids = BTreeMap::new();
        for (launch, _) in tables.launches.values().zip(drawn).filter(|(_, drawn)| *drawn) {
            let pid = self.process(&format!("{} (from its own start)", launch.title()))?;
            launch.draw(pid, &mut self.writer)?;
            self.layers(launch)?;
            pids.insert(launch.key.clone(), (pid, Counters::default()));
        }
        let writer = &mut self.writer;
        tables::telemetry(run, |key, row| match pids.get_mut(key) {
            Some((pid, counters)) => counters.take(writer, *pid, row),
            None => Ok(()),
        })?;
        for (pid, counters) in pids.into_values() {
            counters.end(&mut self.writer, pid)?;
        }
        Ok(())
    }
}
