//! What is kept of one launch: `launch.json` in its folder, written last and by rename, so that a folder that has it is complete.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use bench_agent::spec::Done;
use bench_backend_api::{Checks, Failure, Parsed, Pass, Source};
use serde::{Deserialize, Serialize};

use super::{
    folder::{FolderError, launch_dir, write_whole},
    journal,
    schema::FORMAT_VERSION,
    start::Start,
};
use crate::{
    analysis::soak::Soak,
    run::events::{Event, Status},
    words,
};

/// File name of a launch's record.
pub const FILE: &str = "launch.json";

/// The record of one finished launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format.
    pub format_version: u32,
    /// The cell.
    pub cell: String,
    /// The pass.
    pub pass: Pass,
    /// Number within the cell and pass.
    pub launch: u32,
    /// Block.
    pub block: u32,
    /// Segment of the run.
    pub segment: u32,
    /// How it went.
    pub status: Status,
    /// Why it is not ok.
    pub failure: Option<Failure>,
    /// The checks, when there was something to check.
    pub checks: Option<Checks>,
    /// What the captured output says.
    pub parsed: Parsed,
    /// The agent's evidence, one for each step.
    pub steps: Vec<StepRecord>,
    /// Bytes of the files in its work folder.
    #[serde(default)]
    pub staged: Staged,
    /// Kills by Android's low memory killer that the device's log tells; `None` where there was no log to read.
    #[serde(default)]
    pub lmkd_kills: Option<u32>,
    /// Requests made to the device; 0 on this machine.
    #[serde(default)]
    pub round_trips: u64,
    /// The state in which it began.
    #[serde(default)]
    pub start: Start,
    /// Its part of the process, where cells shared one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Shared>,
    /// Windows and figures of a soak; its single queries and tokens are in `events.jsonl` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Soak>,
}

/// The part of one cell in a process that answered the queries of several (rule R2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// Id of the cell whose queries came first: with the number of the launch the name of the process.
    pub process: String,
    /// Place of this cell's queries among those of all, from 0.
    pub place: u32,
    /// Cells that shared the process.
    pub cells: u32,
    /// From the cell's first query to that of the next one, `CLOCK_MONOTONIC` ns; the first cell has the process from its start, and the last one to
    /// its end.
    pub window_ns: (u64, u64),
}

impl Shared {
    /// Whether a moment is in the cell's part: every moment is in the part of exactly one cell.
    pub fn holds(&self, t_ns: u64) -> bool {
        let (from, to) = self.window_ns;
        (self.place == 0 || t_ns >= from) && (self.place + 1 == self.cells || t_ns < to)
    }
}

impl Record {
    /// Time in it by the agent's clock; of a process that cells shared, in this cell's part.
    pub fn took(&self) -> Duration {
        let between = |(from, to): (u64, u64)| Duration::from_nanos(to.saturating_sub(from));
        let steps = self.steps.iter().filter_map(|step| step.done.as_ref());
        self.shared
            .as_ref()
            .map_or_else(|| steps.map(|done| between((done.start_ns, done.end_ns))).sum(), |shared| between(shared.window_ns))
    }

    /// What the agent sampled, one file for each step; `dir` is the folder of the launch. A step that never began has left none.
    pub fn telemetry_files(&self, dir: &Path) -> Vec<PathBuf> {
        let folder = |step: &StepRecord| if self.steps.len() == 1 { dir.to_path_buf() } else { dir.join(&step.name) };
        self.steps.iter().map(|step| folder(step).join("telemetry.csv")).collect()
    }

    /// What was timed: of a soak its first and its last measured query, since the others are in `events.jsonl` alone.
    pub fn timed(&self) -> Cow<'_, Parsed> {
        match self.soak.as_ref().and_then(|soak| soak.worked.as_ref()) {
            Some(worked) => Cow::Owned(Parsed { queries: worked.ends(), ..self.parsed.clone() }),
            None => Cow::Borrowed(&self.parsed),
        }
    }
}

/// Bytes of the files that a launch had in its work folder, by what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staged {
    /// Libraries and programs; 0 where they run from where they are installed.
    pub runtime: u64,
    /// Weights, graphs and configurations.
    pub model: u64,
    /// The tokenizer.
    pub tokenizer: u64,
}
impl Staged {
    /// Counts one file.
    pub fn count(&mut self, source: &Source, bytes: u64) {
        match source {
            Source::Need(_) => self.runtime += bytes,
            Source::Artifact(name) if name.rsplit('/').next().is_some_and(|n| n.starts_with("tokenizer")) => self.tokenizer += bytes,
            Source::Artifact(_) => self.model += bytes,
            // What adapters make: jobs and lists.
            Source::Bytes(_) => {}
        }
    }
}

/// One step of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Name.
    pub name: String,
    /// Exact command line.
    pub argv: Vec<String>,
    /// The agent's evidence, when the agent could be started.
    pub done: Option<Done>,
}

impl Record {
    /// Writes the record as the last file of its folder.
    pub fn save(&self, dir: &Path) -> Result<(), FolderError> {
        let bytes = serde_json::to_vec(self).map_err(|e| FolderError::Damaged { path: dir.join(FILE), message: e.to_string() })?;
        write_whole(&dir.join(FILE), &bytes)
    }

    fn load(path: &Path) -> Result<Self, FolderError> {
        let bytes = std::fs::read(path).map_err(FolderError::io(path))?;
        let record: Self =
            serde_json::from_slice(&bytes).map_err(|e| FolderError::Damaged { path: path.to_path_buf(), message: e.to_string() })?;
        if record.format_version > FORMAT_VERSION {
            let message = format!("format {} is newer than this bench knows ({FORMAT_VERSION}): update bench", record.format_version);
            return Err(FolderError::Damaged { path: path.to_path_buf(), message });
        }
        Ok(record)
    }
}

/// Everything a run folder says about its launches.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Finished launches in order, each with its folder.
    pub launches: Vec<(PathBuf, Record)>,
    /// Launches that began and never ended.
    pub unfinished: Vec<PathBuf>,
    /// Cells skipped, with the reason of the last segment.
    pub skipped: Vec<(String, String)>,
    /// Cells whose artifact could not be made.
    pub failed: Vec<(String, Failure)>,
    /// Cells that could not be soaked, with the reason of the last segment that tried.
    pub unsoaked: Vec<(String, String)>,
    /// Those of them that a resume tries again.
    pub soak_again: Vec<String>,
    /// What ended the repetitions of each cell.
    pub stops: Vec<(String, String)>,
    /// Number of segments so far.
    pub segments: u32,
    /// What was odd.
    pub warnings: Vec<String>,
}

impl Recorded {
    /// Folders in which a killed bench may have left something running: of the launches that never ended, tried again or not.
    pub fn in_flight(&self) -> Vec<PathBuf> {
        self.unfinished.iter().flat_map(|dir| [dir.clone(), again(dir)]).collect()
    }
}

/// Where a launch that already has a record runs, until its new record replaces the old one.
pub fn again(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    dir.with_file_name(format!("{name}.again"))
}

/// Sees that the journal names every launch whose record is in `logs/`.
///
/// # Errors
/// It does not: a launch is named before it is begun, so that the journal was cut, and what is made of it would lack what was measured.
pub fn all_named(run: &Path) -> Result<(), FolderError> {
    let place = |dir: &Path| -> Vec<OsString> { dir.iter().rev().take(2).map(OsStr::to_owned).collect() };
    let named: BTreeSet<Vec<OsString>> = journal::read(run)?
        .0
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::LaunchBegin { cell, pass, launch, .. } | Event::LaunchEnd { cell, pass, launch, .. } => {
                Some(place(&launch_dir(run, "device", cell, *pass, *launch)))
            }
            _ => None,
        })
        .collect();
    let inside = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let dirs = inside(run.join("logs")).flat_map(inside).flat_map(inside).filter(|dir| dir.join(FILE).is_file());
    // Of a launch that is tried again the first record counts.
    let lost = dirs.filter(|dir| dir.extension().is_none_or(|end| end != "again") && !named.contains(&place(dir))).count();
    if lost == 0 {
        return Ok(());
    }
    let records = words::count(lost, "launch");
    let message = format!("does not name {records} whose records are in logs/: it was cut; put it back, or start a new run");
    Err(FolderError::Damaged { path: run.join("journal.jsonl"), message })
}

/// Reads the journal and the records that it names.
pub fn read(run: &Path, device: &str) -> Result<Recorded, FolderError> {
    let (entries, warnings) = journal::read(run)?;
    let mut recorded = Recorded { warnings, ..Recorded::default() };
    let mut begun: Vec<PathBuf> = Vec::new();
    for entry in entries {
        match entry.event {
            Event::RunBegin { segment, .. } => {
                recorded.segments = segment + 1;
                recorded.skipped.clear();
                recorded.stops.clear();
                recorded.failed.clear();
            }
            Event::CellSkipped { cell, reason } => recorded.skipped.push((cell, reason)),
            Event::SoakSkipped { cell, reason, again } => {
                recorded.unsoaked.retain(|(known, _)| *known != cell);
                recorded.soak_again.retain(|known| *known != cell);
                recorded.soak_again.extend(again.then(|| cell.clone()));
                recorded.unsoaked.push((cell, reason));
            }
            Event::CellFailed { cell, failure } => recorded.failed.push((cell, failure)),
            Event::CellDone { cell, stop } => recorded.stops.push((cell, stop)),
            Event::Warning { text } => recorded.warnings.push(text),
            Event::LaunchBegin { cell, pass, launch, .. } => begun.push(launch_dir(run, device, &cell, pass, launch)),
            Event::LaunchEnd { cell, pass, launch, .. } => {
                let dir = launch_dir(run, device, &cell, pass, launch);
                begun.retain(|d| *d != dir);
                // A launch that was tried again replaces its first record.
                recorded.launches.retain(|(d, _)| *d != dir);
                match Record::load(&dir.join(FILE)) {
                    Ok(record) => recorded.launches.push((dir, record)),
                    Err(e) => {
                        recorded.warnings.push(format!("a launch is not complete and will be repeated by --resume: {e}"));
                        recorded.unfinished.push(dir);
                    }
                }
            }
            _ => {}
        }
    }
    recorded.unfinished.extend(begun);
    let unprepared =
        recorded.failed.iter().map(|(cell, f)| (cell, &f.message)).chain(recorded.skipped.iter().map(|(cell, why)| (cell, why)));
    let counts = |cell: &str| recorded.launches.iter().any(|(_, r)| r.cell == cell && r.pass == Pass::Measure && r.status == Status::Ok);
    let kept = |(cell, why): (&String, &String)| format!("{cell}: its launches count, though a later segment could not go on: {why}");
    let kept: Vec<String> = unprepared.filter(|(cell, _)| counts(cell)).map(kept).collect();
    recorded.warnings.extend(kept);
    Ok(recorded)
}
