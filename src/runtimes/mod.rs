//! Runtimes: what backends need, where it is found, and how it is installed into the user's cache.

pub mod python;
pub mod qairt;

use std::{
    env,
    path::{Path, PathBuf},
};

use bench_backend_api::{Found, Installed, Need};

/// The folders of the user that bench writes to.
#[derive(Debug, Clone)]
pub struct Cache(pub PathBuf);

impl Cache {
    /// `$BENCH_CACHE`, `$XDG_CACHE_HOME/bench`, or `~/.cache/bench`.
    pub fn locate() -> Option<Self> {
        let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        set("BENCH_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("bench")))
            .or_else(|| set("HOME").map(|d| d.join(".cache").join("bench")))
            .map(Self)
    }

    /// A folder of the cache.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Finds one of our own programs: beside this executable, else in `BENCH_LIBEXEC`.
pub fn own_program(name: &str) -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf));
    // A test's executable is in target/<profile>/deps.
    let above = beside.as_ref().and_then(|d| d.parent().map(Path::to_path_buf));
    let libexec = env::var_os("BENCH_LIBEXEC").map(PathBuf::from);
    [beside, libexec, above].into_iter().flatten().map(|d| d.join(name)).find(|p| p.is_file())
}

/// The agent's program for a device.
pub fn agent_for(_: &Cache, device: &bench_backend_api::DeviceFacts) -> Result<PathBuf, AgentError> {
    own_program("bench-agent").ok_or_else(|| AgentError(device.triple()))
}

/// There is no agent for a device.
#[derive(Debug, thiserror::Error)]
#[error("there is no bench-agent for {0}: run `bench runtimes build`")]
pub struct AgentError(&'static str);

/// Looks for everything in a list of needs. Nothing is installed here.
pub fn find(cache: &Cache, needs: impl IntoIterator<Item = Need>) -> Installed {
    let python = python::Environment::open(cache);
    let sdk = qairt::Sdk::find(cache);
    let mut installed = Installed::default();
    for need in needs {
        let found = match &need {
            Need::Python => python.as_ref().map(|p| Found { path: text(&p.interpreter), version: Some(p.version.clone()) }),
            Need::PythonPackage { distribution, module } => python.as_ref().and_then(|p| p.package(distribution, module)),
            Need::QairtFile { path } => sdk.as_ref().and_then(|s| s.file(path)),
            Need::Runner { name } => {
                own_program(name).map(|p| Found { path: text(&p), version: Some(env!("CARGO_PKG_VERSION").to_owned()) })
            }
            // Libraries for other machines come with `bench runtimes install --target`.
            Need::DeviceLibrary { .. } => None,
            Need::Program { name } => on_path(name).map(|p| Found { path: text(&p), version: None }),
        };
        if let Some(found) = found {
            installed.0.insert(need, found);
        }
    }
    installed
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A program by its path, or looked up on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).canonicalize().ok().filter(|p| p.is_file());
    }
    env::split_paths(&env::var_os("PATH")?).map(|d| d.join(name)).find(|p| p.is_file())
}
