//! The Python environment in the user's cache, for tests of real engines and recipes: installed where it is missing, unless BENCH_TEST_OFFLINE
//! is set; then they fail, since a test that is skipped in silence proves nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{bench, run};

/// The user's cache with the Python environment in it.
pub fn cache() -> PathBuf {
    static ONCE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    ONCE.get_or_init(|| {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let cache = set("BENCH_CACHE").or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("bench")));
        let cache = cache.or_else(|| set("HOME").map(|d| d.join(".cache").join("bench"))).expect("HOME or BENCH_CACHE");
        let mut list = Command::new(env!("CARGO_BIN_EXE_bench"));
        let list = run(list.env("BENCH_CACHE", &cache).args(["runtimes", "list", "--format", "json"])).expect(0);
        let list: Value = serde_json::from_str(&list.stdout).unwrap();
        if ["genie", "ort-qnn", "mnn"].iter().any(|b| list["backends"][b].get("ready").is_none()) {
            assert!(
                std::env::var_os("BENCH_TEST_OFFLINE").is_none(),
                "BENCH_TEST_OFFLINE is set, and the engines are not installed: {list:#}"
            );
            // Not bounded: a download takes what it takes.
            let status = Command::new(env!("CARGO_BIN_EXE_bench"))
                .env("BENCH_CACHE", &cache)
                .args(["runtimes", "install", "python", "--yes"])
                .status();
            assert!(status.unwrap().success(), "bench runtimes install python --yes");
        }
        cache
    })
    .clone()
}

/// Its interpreter.
pub fn python() -> PathBuf {
    let found =
        glob::glob(&format!("{}/runtimes/python-*/complete", cache().display())).unwrap().flatten().next().expect("the environment");
    found.with_file_name("bin").join("python3")
}

/// `bench` with what is installed and made in the user's cache, and a lock of its own: a run elsewhere on this machine is not waited for.
pub fn real(dir: &Path) -> Command {
    let own = dir.join("cache");
    if !own.exists() {
        fs::create_dir(&own).unwrap();
        for part in ["runtimes", "artifacts"] {
            let shared = cache().join(part);
            fs::create_dir_all(&shared).unwrap();
            std::os::unix::fs::symlink(shared, own.join(part)).unwrap();
        }
    }
    bench(dir)
}
