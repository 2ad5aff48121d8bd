//! Runs the real agent on real processes.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bench_agent::pidfile::ProcessId;
use bench_agent::spec::{Done, Spec};

/// A run in a folder of its own, which goes away with it.
pub struct Run {
    pub dir: PathBuf,
    pub spec: Spec,
}

impl Run {
    /// A run of `argv` with the caller's PATH, 20 s of time, 300 ms of grace, 20 samples a second.
    pub fn new(argv: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let dir = std::env::temp_dir().join(format!("bench-agent-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("work")).unwrap();
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let spec = Spec {
            v: 1,
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            env: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
            cwd: text(dir.join("work")),
            stdin: None,
            out_dir: text(dir.join("out")),
            timeout_ms: 20_000,
            grace_ms: 300,
            rate_hz: 20.0,
            max_output_bytes: 1 << 20,
            watch: Vec::new(),
            phase_file: None,
            compact_ms: 0,
            window_ms: 0,
            trip: Vec::new(),
            load: None,
        };
        Self { dir, spec }
    }

    pub fn sh(script: &str) -> Self {
        Self::new(&["sh", "-c", script])
    }

    pub fn out(&self, name: &str) -> PathBuf {
        Path::new(&self.spec.out_dir).join(name)
    }

    /// A file that the command made in its working directory.
    pub fn work(&self, name: &str) -> PathBuf {
        Path::new(&self.spec.cwd).join(name)
    }

    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.out(name)).unwrap()).into_owned()
    }

    /// Starts the agent, with its own streams closed to it.
    pub fn start(&self) -> Child {
        let path = self.dir.join("spec.json");
        fs::write(&path, serde_json::to_vec(&self.spec).unwrap()).unwrap();
        Command::new(env!("CARGO_BIN_EXE_bench-agent")).arg("run").arg(path).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Runs it to its end, which must come; it must say nothing.
    pub fn finish(&self) -> Done {
        self.wait(self.start())
    }

    pub fn wait(&self, agent: Child) -> Done {
        let limit = Duration::from_millis(self.spec.timeout_ms + self.spec.grace_ms + 9_000);
        let (status, stdout) = end_of(agent, limit);
        assert!(status.success(), "{status}");
        assert_eq!(stdout, b"", "the agent must not write to its standard output");
        self.done().expect("done.json")
    }

    pub fn done(&self) -> Option<Done> {
        let text = fs::read(self.out("done.json")).ok()?;
        Some(serde_json::from_slice(&text).unwrap_or_else(|e| panic!("half a done.json: {e}")))
    }

    /// The process that noted its id in a file of its working directory.
    pub fn noted(&self, name: &str) -> i32 {
        let path = self.work(name);
        until("a noted pid", || fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')));
        fs::read_to_string(path).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Waits for the end of a child and reads its standard output.
pub fn end_of(mut child: Child, limit: Duration) -> (ExitStatus, Vec<u8>) {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let mut stdout = Vec::new();
            if let Some(mut pipe) = child.stdout.take() {
                std::io::Read::read_to_end(&mut pipe, &mut stdout).unwrap();
            }
            return (status, stdout);
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            panic!("no end after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until something is so.
pub fn until(what: &str, so: impl Fn() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(15), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs (a zombie does not).
pub fn runs(pid: i32) -> bool {
    ProcessId::of(pid).is_some_and(|id| id.is_alive())
}

pub fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}
