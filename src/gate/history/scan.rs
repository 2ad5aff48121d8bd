//! Which folders of a folder are runs that count, in the order in which they began. Everything else is named with its reason.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;
use thiserror::Error;

use crate::{
    gate::{busy::busy, run::UNFINISHED},
    results::{
        folder::id_of,
        manifest::FILE,
        read::visible,
        schema::{CELLS, FORMAT_VERSION, LAUNCHES},
    },
};

/// Why a folder has no history.
#[derive(Debug, Error)]
pub enum ScanError {
    /// It can't be listed.
    #[error("{path}: {source}: name the folder that holds the run folders")]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is itself a run.
    #[error("{0} is one run folder: name the folder that holds it")]
    ARun(PathBuf),
}

/// A run that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its folder.
    pub folder: PathBuf,
    /// Its id.
    pub id: String,
    /// Name of its scenario.
    pub scenario: String,
    /// Name of its device.
    pub device: String,
    /// Processor of the device, since a name may pass to another one (every PC is `local`): a PC's by its name, of others QNN's `soc_model`. Empty
    /// where it is not stated.
    pub chip: String,
    /// When it began.
    pub started: Timestamp,
    /// Cells that its manifest names.
    pub cells: usize,
    /// It shared its computer, in words ([`busy`]).
    pub busy: Option<String>,
}

/// Something in the folder that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the file or folder.
    pub name: String,
    /// Why, with what to do.
    pub why: String,
    /// It can't be read; else it can, and is no night.
    pub unreadable: bool,
}
impl LeftOut {
    /// What can be read and is no night, by its folder.
    pub fn no_night(path: &Path, why: impl Into<String>) -> Self {
        Self { name: id_of(path), why: why.into(), unreadable: false }
    }

    /// What can't be read, by its folder.
    pub fn unreadable(path: &Path, why: impl Into<String>) -> Self {
        Self { unreadable: true, ..Self::no_night(path, why) }
    }
}

/// What a folder holds, as far as it looks like runs.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Runs, the oldest first.
    pub runs: Vec<Run>,
    /// The rest.
    pub left_out: Vec<LeftOut>,
}

/// Lists the runs directly in a folder; it does not look deeper, so that no loop of links can hold it.
pub fn scan(folder: &Path) -> Result<Scan, ScanError> {
    let unreadable = |source| ScanError::Unreadable { path: folder.to_owned(), source };
    let mut paths =
        fs::read_dir(folder).map_err(unreadable)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(unreadable)?;
    paths.sort();
    if folder.join(FILE).is_file() && folder.join(CELLS.file).is_file() {
        return Err(ScanError::ARun(folder.to_owned()));
    }
    let mut found = Scan::default();
    for path in paths {
        match look(&path) {
            Ok(run) => found.runs.push(run),
            Err(left_out) if is_like_a_run(&path) => found.left_out.push(left_out),
            Err(_) => {}
        }
    }
    let Scan { runs, left_out } = &mut found;
    // Of copies the one in the folder with the run's name counts, else the first.
    runs.sort_by_key(|run| (run.id.clone(), id_of(&run.folder) != run.id));
    let mut kept: Vec<Run> = Vec::new();
    for run in runs.drain(..) {
        match kept.last().filter(|last| last.id == run.id) {
            Some(last) => {
                let why = format!("has the id of {}, `{}`: a copy, of which one counts; delete the other", id_of(&last.folder), run.id);
                left_out.push(LeftOut::no_night(&run.folder, why));
            }
            None => kept.push(run),
        }
    }
    kept.sort_by(|a, b| (a.started, &a.id).cmp(&(b.started, &b.id)));
    left_out.sort_by(|a, b| a.name.cmp(&b.name));
    *runs = kept;
    Ok(found)
}

/// Whether something that is no run that counts looks as if it were meant to be one; a README beside the runs is nobody's loss. So is what can't be
/// looked into.
fn is_like_a_run(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(found) => {
            found.is_dir() && [FILE, CELLS.file, LAUNCHES.file, "plan.toml", "journal.jsonl"].iter().any(|name| is_there(&path.join(name)))
        }
        Err(_) => true,
    }
}

fn is_there(path: &Path) -> bool {
    // What may not be looked at is there.
    fs::symlink_metadata(path).map_or_else(|e| e.kind() != io::ErrorKind::NotFound, |_| true)
}

/// What is read of a manifest, whatever type it has in a newer one; the rest is skipped over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    format_version: Value,
    run: Value,
    scenario: Value,
    device: Value,
    host: Value,
    started_utc: Value,
    finished_utc: Value,
    ab: Value,
    #[serde(deserialize_with = "count")]
    cells: usize,
}

/// Number of entries of an object.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    struct Count;
    impl<'de> Visitor<'de> for Count {
        type Value = usize;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the cells by id")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<usize, A::Error> {
            let mut entries = 0;
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                entries += 1;
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(Count)
}

/// One folder. The error says why it does not count.
pub fn look(path: &Path) -> Result<Run, LeftOut> {
    let wrong = |why: String| LeftOut::unreadable(path, why);
    // Follows links: a lab may keep its runs elsewhere. A loop of links is an error here.
    if !fs::metadata(path).map_err(|e| wrong(format!("can't be read: {e}")))?.is_dir() {
        return Err(wrong("is a file".to_owned()));
    }
    let bytes = match regular(&path.join(FILE)) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(wrong(format!("is no run folder: it has no {FILE}"))),
        Err(e) => return Err(wrong(format!("{FILE} can't be read: {e}"))),
    };
    let head: Head =
        serde_json::from_slice(&bytes).map_err(|e| wrong(format!("{FILE} is damaged ({e}): put the file back, or remove the folder")))?;
    if let Some(version) = head.format_version.as_i64().filter(|version| *version > i64::from(FORMAT_VERSION)) {
        return Err(wrong(format!("format {version} is newer than this bench knows ({FORMAT_VERSION}): update bench")));
    }
    let word = |value: &Value| value.as_str().map(str::to_owned);
    if word(&head.finished_utc).is_none() {
        return Err(LeftOut::no_night(path, UNFINISHED));
    }
    if !head.ab.is_null() {
        return Err(LeftOut::no_night(path, "is a side of an A/B run, which is no night: `bench compare` sets it against the other side"));
    }
    let started = head.started_utc.as_str().and_then(|text| text.parse().ok());
    Ok(Run {
        folder: path.to_owned(),
        id: word(&head.run).unwrap_or_else(|| id_of(path)),
        scenario: word(&head.scenario["name"]).unwrap_or_default(),
        device: word(&head.device["name"]).unwrap_or_default(),
        chip: chip(&head.device),
        busy: busy(&head.device, &head.host),
        started: started.ok_or_else(|| wrong(format!("{FILE} has no readable started_utc: its place in the order is unknown")))?,
        cells: head.cells,
    })
}

/// The processor in a manifest's `device`, as [`Run::chip`] and the differences that bar a comparison (`gate::unlike`) have it.
pub fn chip(device: &Value) -> String {
    let of_pc = || device["cpu"].as_str().map(visible);
    let model = || device["soc_model"].as_u64().filter(|model| *model > 0).map(|model| format!("soc_model {model}"));
    let chip = if device["class"] == "pc" { of_pc() } else { model() };
    chip.unwrap_or_default()
}

/// The bytes of a regular file: a pipe would be waited for, a device read for ever.
pub(super) fn regular(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.is_file() { fs::read(path) } else { Err(io::Error::other("is not a file")) }
}
