//! Facts that stand in files of this machine: the only reader of the checks.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    process::{Command, Stdio},
};

use bench_agent::spec::SourceReport;
use bench_backend_api::{Installed, Need, tool::file_of};
use serde_json::Value;

use super::build::Build;
use crate::import::{Chip, Told, small_text};

/// Build ids stand in the names at the beginning, or in the text at the end; weights of gigabytes lie between.
const END: u64 = 16 << 20;

/// A runtime library for a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// File name.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// What it was built with, if its text tells.
    pub build: Option<Build>,
}

/// A context binary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binary {
    /// Path in the artifact's folder.
    pub name: String,
    /// What it was made with, if its text tells.
    pub build: Option<Build>,
    /// What it was made for, if its text tells.
    pub chip: Option<Chip>,
    /// Context lengths of its graphs, as their names tell.
    pub contexts: Vec<u32>,
}

/// The build id of a file; `None` when its text does not tell or can't be read.
pub fn build(path: &Path) -> Option<Build> {
    let read = || -> io::Result<Option<Build>> {
        let mut file = File::open(path)?;
        let mut bytes = Vec::new();
        file.by_ref().take(END).read_to_end(&mut bytes)?;
        if let Some(build) = Build::find(&bytes) {
            return Ok(Some(build));
        }
        let size = file.metadata()?.len();
        if size <= END {
            return Ok(None);
        }
        // What begins at the end of the part that was read is met again.
        let overlap = super::build::LONGEST as u64;
        file.seek(SeekFrom::Start(if size > 2 * END { size - END } else { END - overlap }))?;
        bytes.clear();
        file.take(END + overlap).read_to_end(&mut bytes)?;
        Ok(Build::find(&bytes))
    };
    read().ok().flatten()
}

/// The runtime libraries among what was found for a backend on a device.
pub fn libraries(installed: &Installed) -> Vec<Library> {
    let libraries = installed.0.iter().filter(|(need, _)| matches!(need, Need::DeviceLibrary { .. }));
    libraries
        .map(|(need, found)| {
            let path = Path::new(&found.path);
            Library { name: file_of(need), bytes: size(path), build: build(path) }
        })
        .collect()
}

/// Whether a file is a context binary, by its name.
pub fn is_binary(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("bin"))
}

/// Size of a file in bytes; 0 when it is not there.
pub fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |m| m.len())
}

/// What a context binary tells of itself.
pub fn binary(root: &Path, name: &str) -> Binary {
    let path = root.join(name);
    let mut told = Told::default();
    // What can't be read is the run's to complain of.
    let _ = told.read(&path);
    told.names(name.trim_end_matches(".bin").as_bytes());
    Binary { name: name.to_owned(), build: build(&path), chip: told.chips.into_iter().next(), contexts: told.cl.into_iter().collect() }
}

/// A framework's configuration.
///
/// # Errors
/// Why it can't be read, with its path.
pub fn config(path: &Path) -> Result<Value, String> {
    let text = small_text(path).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| format!("{}: not JSON: {e}", path.display()))
}

/// The telemetry sources of this machine, by its agent.
///
/// # Errors
/// In words: the agent does not run, or prints something else.
pub fn sources(agent: &Path) -> Result<Vec<SourceReport>, String> {
    let wrong = |words: String| format!("{} probe: {words}", agent.display());
    let output = Command::new(agent).arg("probe").stdin(Stdio::null()).output().map_err(|e| wrong(e.to_string()))?;
    serde_json::from_slice(&output.stdout).map_err(|e| wrong(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_at_either_end_of_a_large_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.bin");
        let id = b"v2.41.0.251128145156_191518";
        let end = END as usize;
        for (size, at) in [(100, 10), (end + 100, end - 5), (end + 100, end + 50), (2 * end + 9, 2 * end - 20), (3 * end, 3 * end - 30)] {
            let mut bytes = vec![0_u8; size];
            bytes[at..at + id.len()].copy_from_slice(id);
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(build(&path).map(|b| b.to_string()).as_deref(), Some("2.41.0"), "at {at} of {size}");
        }
        std::fs::write(&path, vec![b'v'; 1000]).unwrap();
        assert_eq!(build(&path), None);
        assert_eq!(build(&dir.path().join("none")), None);
    }
}
