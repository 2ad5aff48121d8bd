//! `journal.jsonl`: append-only, one event a line, flushed per event: the truth after a crash.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};

use serde::{Deserialize, Serialize};

use super::{folder::FolderError, schema::FORMAT_VERSION};
use crate::run::events::Event;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the format.
    pub v: u32,
    /// Wall time, RFC 3339.
    pub utc: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The open journal of a run.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens for appending; an unfinished last line (a crash while writing) is cut off and told.
    pub fn open(run: &Path) -> Result<(Self, Option<String>), FolderError> {
        let path = run.join("journal.jsonl");
        let io = || FolderError::io(&path);
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).map_err(io())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io())?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        let torn = (whole < bytes.len()).then(|| format!("{}: an unfinished last line was dropped", path.display()));
        file.set_len(whole as u64).map_err(io())?;
        drop(file);
        let file = OpenOptions::new().append(true).open(&path).map_err(io())?;
        Ok((Self { path, file: Mutex::new(file) }, torn))
    }

    /// Appends one event. The end of a launch is also forced to the disk.
    pub fn append(&self, event: &Event) -> Result<(), FolderError> {
        let entry = Entry { v: FORMAT_VERSION, utc: crate::utc_now(), event: event.clone() };
        let mut line = serde_json::to_vec(&entry).map_err(|e| FolderError::Damaged { path: self.path.clone(), message: e.to_string() })?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = file.metadata().map(|m| m.len()).ok();
        let written = file.write_all(&line).and_then(|()| if matches!(event, Event::LaunchEnd { .. }) { file.sync_data() } else { Ok(()) });
        if written.is_err()
            && let Some(length) = before
        {
            // A full disk may have taken half a line; the journal must stay readable.
            let _ = file.set_len(length);
        }
        written.map_err(FolderError::io(&self.path))
    }
}

/// Reads a journal; lines that are no events (of a newer version, or torn) are named, not fatal.
pub fn read(run: &Path) -> Result<(Vec<Entry>, Vec<String>), FolderError> {
    let path = run.join("journal.jsonl");
    let text = std::fs::read(&path).map_err(FolderError::io(&path))?;
    let mut warnings = Vec::new();
    let mut entries = Vec::new();
    for (number, line) in text.split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
        match serde_json::from_slice::<Entry>(line) {
            Ok(entry) => entries.push(entry),
            Err(e) => warnings.push(format!("{}:{}: not an event of this version, skipped ({e})", path.display(), number + 1)),
        }
    }
    Ok((entries, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_cut_and_the_rest_kept() {
        let dir = tempfile::tempdir().unwrap();
        let warning = |n: u32| Event::Warning { text: format!("w{n}") };
        let (journal, torn) = Journal::open(dir.path()).unwrap();
        assert_eq!(torn, None);
        journal.append(&warning(1)).unwrap();
        journal.append(&warning(2)).unwrap();
        let path = dir.path().join("journal.jsonl");
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let lines = whole[..cut].split(|b| *b == b'\n').count() - 1;
            let (journal, torn) = Journal::open(dir.path()).unwrap();
            assert_eq!(torn.is_some(), cut > 0 && whole[cut - 1] != b'\n', "cut at {cut}");
            journal.append(&warning(3)).unwrap();
            let (entries, warnings) = read(dir.path()).unwrap();
            assert_eq!((entries.len(), warnings.len()), (lines + 1, 0));
        }
    }
}
