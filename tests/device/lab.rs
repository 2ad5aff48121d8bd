//! A test phone, an adb server and the folder of a user who has the programs for it: what tests of `bench run` on a phone share. Its user declares
//! `mod harness` and `mod support` beside it.

#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    harness::{self, Adbd, Phone},
    support::{self, Row, only_run, table, wait_until},
};

pub struct Lab {
    pub phone: Phone,
    pub adb: Adbd,
    pub dir: tempfile::TempDir,
}

impl Lab {
    /// With a runner's script in the user's folder; `None` (and words) where a phone is not possible.
    pub fn start(script: &str, text: &str) -> Option<Self> {
        harness::possible().then(|| {
            let lab = Self { phone: Phone::start(), adb: Adbd::start(), dir: tempfile::tempdir().unwrap() };
            // As it is found for a phone: static, by its triple.
            let libexec = lab.path("libexec/x86_64-unknown-linux-musl");
            fs::create_dir_all(&libexec).unwrap();
            fs::copy(harness::agent(), libexec.join("bench-agent")).unwrap();
            fs::write(lab.path(script), text).unwrap();
            lab
        })
    }

    /// The same with the stand-in runner.
    pub fn with_runner() -> Option<Self> {
        Self::start("runner.py", &fs::read_to_string(support::runner()).unwrap())
    }

    /// With a stand-in whose time stamps are where its time was spent, and not at fixed distances from its begin.
    pub fn with_paced_runner() -> Option<Self> {
        let text = fs::read_to_string(support::runner()).unwrap();
        let paced = text.replace("        time.sleep(pace)\n", "        time.sleep(pace)\n        t = time.monotonic_ns()\n");
        assert_ne!(text, paced);
        Self::start("runner.py", &paced)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What `[device]` says of this phone.
    pub fn device(&self) -> String {
        format!("serial = \"{}\"", self.phone.address)
    }

    pub fn bench(&self) -> Command {
        let mut command = support::bench(self.dir.path());
        command.env("ADB_SERVER_SOCKET", self.adb.address.to_string()).env("BENCH_LIBEXEC", self.path("libexec"));
        command
    }

    /// `bench run`, which waits so long for a lost device.
    pub fn run(&self, scenario: &Path, reconnect: &str) -> Command {
        let mut command = self.bench();
        command.arg("run").arg(scenario).args(["--no-report", "--reconnect", reconnect]);
        command
    }

    pub fn resume(&self, reconnect: &str) -> Command {
        let mut command = self.bench();
        command.args(["run", "--no-report", "--reconnect", reconnect, "--resume"]).arg(self.folder());
        command
    }

    pub fn folder(&self) -> PathBuf {
        only_run(&self.path("results"))
    }

    pub fn launches(&self) -> Vec<Row> {
        table(&self.folder(), "launches.csv")
    }

    /// The journal of the run that is going on; empty before there is one.
    pub fn said(&self) -> String {
        let runs = fs::read_dir(self.path("results")).into_iter().flatten().flatten();
        runs.map(|run| fs::read_to_string(run.path().join("journal.jsonl")).unwrap_or_default()).collect()
    }

    pub fn adb(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("adb");
        command.args(["-s", &self.phone.address]).args(arguments).env("ADB_SERVER_SOCKET", self.adb.address.to_string());
        command
    }

    pub fn shell(&self, script: &str) -> String {
        String::from_utf8(self.adb(&["shell", script]).output().unwrap().stdout).unwrap().trim().to_owned()
    }

    /// Before `bench` has done it, for what the test itself asks.
    pub fn connect(&self) {
        let mut connect = Command::new("adb");
        connect.args(["connect", &self.phone.address]).env("ADB_SERVER_SOCKET", self.adb.address.to_string());
        assert!(connect.output().unwrap().status.success());
        wait_until("the phone", || self.shell("echo here") == "here");
    }

    /// What runs on the phone from its work folders: runners and their agents.
    pub fn left_running(&self) -> String {
        self.shell("for p in /proc/[0-9]*; do c=$(readlink $p/cwd); case $c in */bench/work/*) echo $p $c;; esac; done; true")
    }
}

/// Starts a command whose words are wanted at its end.
pub fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for something that takes its time, on a busy machine too.
#[track_caller]
pub fn wait_long(what: &str, mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(5);
    while !happened() {
        assert!(Instant::now() < until, "never happened: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
