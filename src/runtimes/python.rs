//! The pinned Python environment: onnxruntime, the QNN plugin with Qualcomm's HTP emulator and Genie, MNN, and what the recipes
//! use. Installed from a hash-checked lock into the user's cache; a half-finished install is never taken for a whole one.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use bench_backend_api::Found;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{Cache, on_path};

/// The lock: every package with its version and hashes.
pub const LOCK: &str = include_str!("../prepare/requirements.lock");

/// What a download needs to be agreed to, in words.
pub const NOTICE: &str = "about 200 MB of packages are downloaded and 650 MB of disk used: onnxruntime (MIT), onnxruntime-qnn (MIT, with \
Qualcomm libraries under Qualcomm's own licence, which allows benchmarking and forbids redistribution), MNN (Apache-2.0), onnx, numpy, tokenizers";

/// Why the environment can't be installed.
#[derive(Debug, Error)]
pub enum InstallError {
    /// No usable interpreter.
    #[error("no Python 3.11 to 3.14 with the module venv on PATH ({0}): run `apt-get install python3 python3-venv`")]
    NoPython(String),
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A command failed.
    #[error("{what} failed: {words}\nthe whole output is in {log}; nothing half-finished is used, run the same command again")]
    Command {
        /// Which.
        what: &'static str,
        /// The end of its output.
        words: String,
        /// Where the output is.
        log: PathBuf,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> InstallError + '_ {
    move |source| InstallError::Io { path: path.to_path_buf(), source }
}

/// A whole environment.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Its interpreter.
    pub interpreter: PathBuf,
    /// Its folder of packages.
    pub site_packages: PathBuf,
    /// Version of Python.
    pub version: String,
}

/// First 16 hex digits of a SHA-256.
pub fn short_hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    crate::hex(&hash.finalize()[..8])
}

/// Identifies the lock, and with it every tool version.
pub fn lock_hash() -> String {
    short_hash(&[LOCK.as_bytes()])
}

/// The folder of the environment for this lock.
pub fn folder(cache: &Cache) -> PathBuf {
    cache.runtimes().join(format!("python-{}", lock_hash()))
}

/// Written last: a folder without it is not an environment.
const MARKER: &str = "complete";

impl Environment {
    /// Opens the environment if it is whole.
    pub fn open(cache: &Cache) -> Option<Self> {
        let folder = folder(cache);
        let version = fs::read_to_string(folder.join(MARKER)).ok()?.trim().to_owned();
        let minor = version.split('.').take(2).collect::<Vec<_>>().join(".");
        let site_packages = folder.join("lib").join(format!("python{minor}")).join("site-packages");
        let interpreter = folder.join("bin").join("python3");
        (interpreter.exists() && site_packages.is_dir()).then_some(Self { interpreter, site_packages, version })
    }

    /// A package: the folder of its module, and the version that its metadata states.
    pub fn package(&self, distribution: &str, module: &str) -> Option<Found> {
        let folder = self.site_packages.join(module);
        let prefix = format!("{}-", distribution.replace('-', "_").to_ascii_lowercase());
        let version = fs::read_dir(&self.site_packages).ok()?.filter_map(Result::ok).find_map(|e| {
            let name = e.file_name().to_string_lossy().to_ascii_lowercase();
            Some(name.strip_prefix(&prefix)?.strip_suffix(".dist-info")?.to_owned())
        })?;
        folder.is_dir().then(|| Found { path: folder.to_string_lossy().into_owned(), version: Some(version) })
    }

    /// Installs the environment unless it is there; `say` hears what is going on. Two at once wait for each other.
    pub fn install(cache: &Cache, say: &dyn Fn(&str)) -> Result<Self, InstallError> {
        let folder = folder(cache);
        let parent = cache.runtimes();
        fs::create_dir_all(&parent).map_err(io_error(&parent))?;
        let lock_path = parent.join("python.lock");
        let lock = File::create(&lock_path).map_err(io_error(&lock_path))?;
        lock.lock().map_err(io_error(&lock_path))?;
        if let Some(whole) = Self::open(cache) {
            return Ok(whole);
        }
        let (python, version) = interpreter()?;
        if folder.exists() {
            say("removing a half-finished install");
            fs::remove_dir_all(&folder).map_err(io_error(&folder))?;
        }
        let log = parent.join("python-install.log");
        let requirements = parent.join("requirements.lock");
        fs::write(&requirements, LOCK).map_err(io_error(&requirements))?;
        say(&format!("making a virtual environment with Python {version}"));
        run("python3 -m venv", Command::new(&python).args(["-m", "venv"]).arg(&folder), &lock, &log)?;
        say("installing the pinned packages (hash-checked)");
        let mut pip = Command::new(folder.join("bin").join("python3"));
        pip.args(["-m", "pip", "install", "--require-hashes", "--no-input", "--only-binary", ":all:", "-r"]).arg(&requirements);
        pip.env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        run("pip install", &mut pip, &lock, &log)?;
        let marker = folder.join(MARKER);
        fs::write(&marker, &version).map_err(io_error(&marker))?;
        Self::open(cache).ok_or_else(|| InstallError::Command {
            what: "the install",
            words: "the environment is not complete".to_owned(),
            log,
        })
    }
}

/// The first interpreter on PATH with a version that the lock knows.
fn interpreter() -> Result<(PathBuf, String), InstallError> {
    const CHECK: &str = "import sys,venv,ensurepip;print('.'.join(map(str,sys.version_info[:3])))";
    let mut seen = Vec::new();
    for name in ["python3", "python3.14", "python3.13", "python3.12", "python3.11"] {
        let Some(path) = on_path(name) else { continue };
        let Ok(output) = Command::new(&path).args(["-c", CHECK]).stdin(Stdio::null()).output() else { continue };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let minor = version.strip_prefix("3.").and_then(|v| v.split('.').next()).and_then(|v| v.parse::<u32>().ok());
        if output.status.success() && minor.is_some_and(|m| (11..=14).contains(&m)) {
            return Ok((path, version));
        }
        seen.push(if output.status.success() { format!("{name} is {version}") } else { format!("{name} has no venv") });
    }
    Err(InstallError::NoPython(if seen.is_empty() { "none found".to_owned() } else { seen.join(", ") }))
}

/// Runs a command that shares the lock, which belongs to the open file: if we are killed, the next install waits until it is gone.
fn run(what: &'static str, command: &mut Command, lock: &File, log: &Path) -> Result<(), InstallError> {
    let failed = |words: String| InstallError::Command { what, words, log: log.to_path_buf() };
    let output = command.stdin(Stdio::from(lock.try_clone().map_err(io_error(log))?)).output().map_err(|e| failed(e.to_string()))?;
    let text = [output.stdout, output.stderr].concat();
    fs::write(log, &text).map_err(io_error(log))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let tail: Vec<&str> = text.lines().rev().filter(|l| !l.trim().is_empty()).take(3).collect();
    Err(failed(tail.into_iter().rev().collect::<Vec<_>>().join(" / ")))
}
