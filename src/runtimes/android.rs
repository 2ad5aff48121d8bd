//! ONNX Runtime with its QNN provider and Qualcomm's runtime libraries for Android phones: three archives (AAR, a zip file with
//! libraries under `jni/<ABI>/`) from a Maven repository or from files that the user has.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bench_backend_api::Found;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    Cache,
    archive::{Most, fetch, is_aarch64, sha256, unpack},
    find::text,
};

/// The environment variable that names the Maven repository.
pub const REPOSITORY: &str = "BENCH_MAVEN";

/// Where an AAR has the libraries of a phone.
const LIBRARIES: &str = "jni/arm64-v8a";

/// The largest of the three unpacks to some 300 MB.
const MOST: Most = Most { bytes: 4 << 30, files: 20_000 };

/// Written last: a folder without it is not a trio.
const RECORD: &str = "installed.json";

/// One archive of the checked trio (`android.toml`).
#[derive(Debug, Clone, Deserialize)]
pub struct Archive {
    /// Group of its Maven coordinates.
    pub group: String,
    /// Its name.
    pub artifact: String,
    /// The checked version.
    pub version: String,
    /// Size of the archive in bytes.
    pub bytes: u64,
    /// SHA-256 of the archive.
    pub sha256: String,
    /// Name of its licence.
    pub licence: String,
    /// The library that only this one holds.
    pub holds: String,
}

/// The checked trio.
pub fn archives() -> Vec<Archive> {
    #[derive(Deserialize)]
    struct Data {
        archive: Vec<Archive>,
    }
    let data: Data = toml::from_str(include_str!("android.toml")).expect("android.toml is checked by a test");
    data.archive
}

/// What is fetched or unpacked, with sizes and licences, for the user's consent.
pub fn notice() -> String {
    let lines = archives()
        .into_iter()
        .map(|a| format!("\n  {}:{}:{}, {} MB, licence: {}", a.group, a.artifact, a.version, a.bytes.div_ceil(1_000_000), a.licence));
    format!("ONNX Runtime for Android phones is three archives:{}", lines.collect::<String>())
}

/// Why the trio can't be installed.
#[derive(Debug, Error)]
pub enum AndroidError {
    /// Nobody said where the archives are.
    #[error(
        "where are the archives? set {REPOSITORY} to the address of a Maven repository that has them (your own mirror or the public one), or fetch \
         them by hand and name all three: `bench runtimes install android --from FILE FILE FILE`; wanted: {0}"
    )]
    NoRepository(String),
    /// An archive could not be fetched.
    #[error("could not fetch {url}: {words}; fetch it by hand and use --from")]
    Fetch {
        /// Address.
        url: String,
        /// What went wrong.
        words: String,
    },
    /// A file is not one of the archives.
    #[error("{file}: {words}")]
    Archive {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        words: String,
    },
    /// They belong together, and not all are there.
    #[error("the three archives belong together, and these are missing: {0}")]
    Incomplete(String),
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> AndroidError + '_ {
    move |source| AndroidError::Io { path: path.to_path_buf(), source }
}

/// What was installed from one archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which archive.
    pub artifact: String,
    /// Its version: of the checked archive with this hash, else as its file name says.
    pub version: Option<String>,
    /// SHA-256 of the archive.
    pub sha256: String,
    /// It is the archive of the checked trio.
    pub checked: bool,
    /// Its libraries.
    pub libraries: Vec<String>,
}

/// An installed trio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trio {
    /// Its folder.
    pub folder: PathBuf,
    /// What it was installed from.
    pub parts: Vec<Part>,
}

impl Trio {
    /// Opens the installed trio, if it is whole.
    pub fn open(cache: &Cache) -> Option<Self> {
        let folder = cache.runtimes().join("android");
        let parts = serde_json::from_slice(&fs::read(folder.join(RECORD)).ok()?).ok()?;
        Some(Self { folder, parts })
    }

    /// A library, with the archive and version that it comes from.
    pub fn library(&self, name: &str) -> Option<Found> {
        let part = self.parts.iter().find(|p| p.libraries.iter().any(|l| l == name))?;
        let path = self.folder.join("lib").join(name);
        path.is_file().then(|| Found {
            path: text(&path),
            version: Some(part.version.as_ref().map_or_else(|| part.artifact.clone(), |v| format!("{} {v}", part.artifact))),
        })
    }

    /// Installs the trio from `from`, or from a Maven repository. Two at once wait for each other.
    pub fn install(cache: &Cache, from: &[PathBuf], repository: Option<&str>, say: &dyn Fn(&str)) -> Result<Self, AndroidError> {
        let parent = cache.runtimes();
        fs::create_dir_all(&parent).map_err(io_error(&parent))?;
        let lock_path = parent.join("android.lock");
        let lock = fs::File::create(&lock_path).map_err(io_error(&lock_path))?;
        lock.lock().map_err(io_error(&lock_path))?;
        // All work is done in a folder that nobody looks into, and what is ready takes the place of what was there.
        let work = parent.join("android.part");
        if work.exists() {
            fs::remove_dir_all(&work).map_err(io_error(&work))?;
        }
        let installed = Self::make(&work, from, repository, say).and_then(|()| {
            let home = parent.join("android");
            if home.exists() {
                fs::remove_dir_all(&home).map_err(io_error(&home))?;
            }
            fs::rename(work.join("trio"), &home).map_err(io_error(&home))?;
            Self::open(cache).ok_or_else(|| AndroidError::Incomplete("the record of the install".to_owned()))
        });
        let _ = fs::remove_dir_all(&work);
        installed
    }

    fn make(work: &Path, from: &[PathBuf], repository: Option<&str>, say: &dyn Fn(&str)) -> Result<(), AndroidError> {
        let trio = work.join("trio");
        fs::create_dir_all(trio.join("lib")).map_err(io_error(&trio))?;
        let files = if from.is_empty() { download(work, repository, say)? } else { from.to_vec() };
        let mut parts: Vec<Part> = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let unpacked = work.join(number.to_string());
            let (archive, part) = open_archive(file, &unpacked)?;
            if parts.iter().any(|p| p.artifact == part.artifact) {
                return Err(bad(file, format!("{} is given twice", part.artifact)));
            }
            if !part.checked {
                let version = part.version.as_deref().unwrap_or("of unknown version");
                say(&format!("note: {} {version} is not of the checked trio ({} {})", part.artifact, archive.artifact, archive.version));
            }
            for name in &part.libraries {
                let to = trio.join("lib").join(name);
                fs::rename(unpacked.join(LIBRARIES).join(name), &to).map_err(io_error(&to))?;
            }
            keep_licences(&unpacked, &trio.join("licences").join(&part.artifact))?;
            parts.push(part);
        }
        let missing: Vec<String> = archives()
            .into_iter()
            .filter(|a| parts.iter().all(|p| p.artifact != a.artifact))
            .map(|a| format!("{}:{}:{}", a.group, a.artifact, a.version))
            .collect();
        if !missing.is_empty() {
            return Err(AndroidError::Incomplete(missing.join(", ")));
        }
        let record = trio.join(RECORD);
        let bytes = serde_json::to_vec_pretty(&parts).map_err(io::Error::from).map_err(io_error(&record))?;
        fs::write(&record, bytes).map_err(io_error(&record))
    }
}

fn bad(file: &Path, words: String) -> AndroidError {
    AndroidError::Archive { file: file.to_path_buf(), words }
}

/// Fetches the checked trio.
fn download(work: &Path, repository: Option<&str>, say: &dyn Fn(&str)) -> Result<Vec<PathBuf>, AndroidError> {
    let wanted = archives();
    let Some(repository) = repository else {
        let names: Vec<String> = wanted.iter().map(|a| format!("{}-{}.aar", a.artifact, a.version)).collect();
        return Err(AndroidError::NoRepository(names.join(", ")));
    };
    let mut files = Vec::new();
    for a in wanted {
        let name = format!("{}-{}.aar", a.artifact, a.version);
        // The layout of every Maven repository: the group's dots are folders.
        let url = format!("{}/{}/{}/{}/{name}", repository.trim_end_matches('/'), a.group.replace('.', "/"), a.artifact, a.version);
        let to = work.join(&name);
        say(&format!("fetching {url} ({} MB)", a.bytes.div_ceil(1_000_000)));
        fetch(&url, &to).map_err(|words| AndroidError::Fetch { url, words })?;
        files.push(to);
    }
    Ok(files)
}

/// Unpacks a file and finds out which archive it is: by what only that one holds, and by its name, which must not contradict.
fn open_archive(file: &Path, unpacked: &Path) -> Result<(Archive, Part), AndroidError> {
    let sha256 = sha256(file).map_err(io_error(file))?;
    unpack(file, unpacked, MOST).map_err(|words| bad(file, words))?;
    let libraries = libraries(&unpacked.join(LIBRARIES));
    let archive = archives()
        .into_iter()
        .find(|a| libraries.contains(&a.holds))
        .ok_or_else(|| bad(file, format!("holds none of the libraries that are looked for in {LIBRARIES}: {}", held())))?;
    if !is_aarch64(&unpacked.join(LIBRARIES).join(&archive.holds)) {
        return Err(bad(file, format!("{LIBRARIES}/{} is not a library for a 64-bit ARM processor", archive.holds)));
    }
    let named = file.file_name().and_then(|n| n.to_str()).and_then(coordinates);
    if let Some((artifact, _)) = named.as_ref().filter(|(artifact, _)| *artifact != archive.artifact) {
        return Err(bad(file, format!("by its name it is {artifact}, by its content {}", archive.artifact)));
    }
    let checked = sha256 == archive.sha256;
    let version = if checked { Some(archive.version.clone()) } else { named.map(|(_, version)| version) };
    if !checked && version.as_ref() == Some(&archive.version) {
        let words = format!(
            "is not {} {} as published: its sha256 is {sha256}, not {}; fetch it again",
            archive.artifact, archive.version, archive.sha256
        );
        return Err(bad(file, words));
    }
    let part = Part { artifact: archive.artifact.clone(), version, sha256, checked, libraries };
    Ok((archive, part))
}

/// `onnxruntime-android-1.27.0.aar` is `onnxruntime-android` and `1.27.0`; a file may have any other name.
fn coordinates(name: &str) -> Option<(String, String)> {
    let stem = name.strip_suffix(".aar")?;
    let at = stem.match_indices('-').map(|(at, _)| at).find(|at| stem[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?;
    Some((stem[..at].to_owned(), stem[at + 1..].to_owned()))
}

fn held() -> String {
    archives().into_iter().map(|a| a.holds).collect::<Vec<_>>().join(", ")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).filter(|e| e.path().is_file());
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn libraries(folder: &Path) -> Vec<String> {
    names(folder).into_iter().filter(|n| Path::new(n).extension().is_some_and(|e| e == "so")).collect()
}

/// The licence texts stay with the libraries.
fn keep_licences(unpacked: &Path, to: &Path) -> Result<(), AndroidError> {
    for name in names(unpacked) {
        if ["LICEN", "NOTICE", "THIRDPARTY"].iter().any(|word| name.to_ascii_uppercase().contains(word)) {
            fs::create_dir_all(to).map_err(io_error(to))?;
            fs::rename(unpacked.join(&name), to.join(&name)).map_err(io_error(to))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
