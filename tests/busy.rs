//! What others took of the computer while a run measured, in its manifest. A program of its own: cargo runs one after the other, so that no other
//! test's processes are around; whoever else is on the machine may be, and no assertion minds.

mod support;

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use support::{Scenario, bench, number, only_run, run, runner, table};

/// A runner that keeps every CPU busy for `SECONDS`: in itself, in a child, and in one that goes its own way, in a session of its own with a
/// parent that has ended. All end before it does; then it is the stand-in.
const BURNER: &str = r#"
import os, sys, time

def burn():
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        pass

pipe = os.pipe()
if os.fork() == 0:
    os.setsid()
    for _ in range(os.cpu_count()):
        if os.fork() == 0:
            os.close(pipe[0])
            burn()
            os._exit(0)
    os._exit(0)
os.close(pipe[1])
burn()
os.read(pipe[0], 1)
os.execv(sys.executable, [sys.executable, "RUNNER", *sys.argv[1:]])
"#;

/// What `host` of the only run's manifest says: CPU seconds of others, seconds in all, CPUs of the computer.
fn others(out: &Path) -> [f64; 3] {
    let text = std::fs::read_to_string(only_run(out).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let seconds = |key: &str| manifest["host"][key].as_str().unwrap_or_else(|| panic!("no {key}")).parse::<f64>().unwrap();
    [seconds("others_cpu_s"), seconds("others_wall_s"), manifest["device"]["cores"].as_f64().unwrap()]
}

/// Spins until it is dropped.
struct Spinner(Child);
impl Spinner {
    fn new() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap())
    }

    /// Its CPU seconds until now, by the kernel's count of nanoseconds.
    fn cpu_s(&self) -> f64 {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.0.id())).unwrap();
        text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
    }
}
impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_run_takes_itself_is_none_of_others_and_what_others_take_is() {
    let dir = tempfile::tempdir().unwrap();
    let measure = |name: &'static str, command: Vec<String>| {
        let scenario = Scenario { name, command, launches: 3, ..Default::default() }.write(dir.path());
        run(bench(dir.path()).args(["run", "--no-report", "--out", name]).arg(scenario)).expect(0);
        dir.path().join(name)
    };

    let burner = dir.path().join("burner.py");
    std::fs::write(&burner, BURNER.replace("SECONDS", "1.0").replace("RUNNER", runner().to_str().unwrap())).unwrap();
    let own = measure("own", vec!["python3".to_owned(), burner.display().to_string()]);
    let [other, wall, cores] = others(&own);
    let launches = table(&only_run(&own), "launches.csv");
    let taken: f64 = launches.iter().map(|row| number(row, "cpu_s").unwrap()).sum();
    assert!(taken > 0.5, "three launches burnt {taken} s");
    // However busy the machine is: others have what the run leaves. If its own were theirs, it would be in the sum twice, and all CPUs were taken.
    assert!(taken + other <= 1.1 * cores * wall, "own {taken} s and others {other} s, in {wall} s of {cores} CPUs");

    // As many as a quarter of the CPUs, which is where `gate` calls it busy, and one more.
    let spinners: Vec<Spinner> = (0..=(cores / 4.0).ceil() as u32).map(|_| Spinner::new()).collect();
    let at_first: f64 = spinners.iter().map(Spinner::cpu_s).sum();
    let program = ["python3".to_owned(), runner().display().to_string()];
    let shared = measure("shared", program.into_iter().chain(["--pace", "200"].map(str::to_owned)).collect());
    let planted: f64 = spinners.iter().map(Spinner::cpu_s).sum::<f64>() - at_first;
    drop(spinners);
    let [other, wall, cores] = others(&shared);
    // They spun a little longer than was counted: bench starts and writes its tables.
    assert!(other > 0.5 * planted && wall > 3.0 * 0.4, "{other} s of {planted} planted, in {wall} s");
    let said = run(bench(dir.path()).args(["compare"]).args([&only_run(&shared), &only_run(&own)])).expect(0).stdout;
    let words = format!("the computer may have been busy with something else: others took {:.1} of {cores} CPUs in A", other / wall);
    assert!(said.contains(&words), "no {words:?} in {said}");
}
