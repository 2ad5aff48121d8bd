//! The folders of the user that bench writes to.

use std::{env, path::PathBuf};

/// The user's cache: runtimes, models, work folders.
#[derive(Debug, Clone)]
pub struct Cache(pub PathBuf);

impl Cache {
    /// `$BENCH_CACHE`, `$XDG_CACHE_HOME/bench`, or `~/.cache/bench` (on Windows below `%LOCALAPPDATA%`).
    pub fn locate() -> Option<Self> {
        let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        set("BENCH_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("bench")))
            .or_else(|| set("HOME").map(|d| d.join(".cache").join("bench")))
            .or_else(|| set("LOCALAPPDATA").map(|d| d.join("bench")))
            .map(Self)
    }

    /// A folder of the cache.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The folder of everything that is installed or built.
    pub fn runtimes(&self) -> PathBuf {
        self.join("runtimes")
    }

    /// Where `bench runtimes build` puts the programs for a target, named by Rust's triple.
    pub fn built(&self, triple: &str) -> PathBuf {
        self.runtimes().join("built").join(triple)
    }

    /// Where the user puts what they have built for devices: a folder for each set, in it one for each target (see `for_device`).
    pub fn sets(&self) -> PathBuf {
        self.runtimes().join("sets")
    }
}
