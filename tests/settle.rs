//! The state of the device: waiting for it, pins that are put back whatever happens to `bench`, and clocks. On the test phone.

#[path = "device/harness.rs"]
mod harness;
mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use harness::{Adbd, Phone};
use serde_json::Value;
use support::{Row, Scenario, bench, events, finish, journal, number, only_run, run, runner, table, wait_until};

struct Lab {
    phone: Phone,
    adb: Adbd,
    dir: tempfile::TempDir,
}

impl Lab {
    fn start() -> Option<Self> {
        harness::possible().then(|| {
            let lab = Self { phone: Phone::start(), adb: Adbd::start(), dir: tempfile::tempdir().unwrap() };
            let libexec = lab.dir.path().join("libexec/x86_64-unknown-linux-musl");
            fs::create_dir_all(&libexec).unwrap();
            fs::copy(harness::agent(), libexec.join("bench-agent")).unwrap();
            fs::copy(runner(), lab.dir.path().join("runner.py")).unwrap();
            // Before `bench` has done it, for what the test itself asks.
            let mut connect = Command::new("adb");
            connect.args(["connect", &lab.phone.address]).env("ADB_SERVER_SOCKET", lab.adb.address.to_string());
            assert!(connect.output().unwrap().status.success());
            wait_until("the phone", || lab.shell("echo here") == "here");
            lab
        })
    }

    /// A scenario with further sections; `pace_ms` makes every query last that much longer.
    fn scenario(&self, launches: u32, pace_ms: u32, sections: &str) -> PathBuf {
        let command = ["python3", "./runner.py", "--pace", &pace_ms.to_string()].map(str::to_owned).to_vec();
        let device = format!("serial = \"{}\"", self.phone.address);
        let path = Scenario { name: "state", command, launches, device, ..Scenario::default() }.write(self.dir.path());
        let text = fs::read_to_string(&path).unwrap() + sections + "\n";
        fs::write(&path, text).unwrap();
        path
    }

    fn bench(&self) -> Command {
        let mut command = bench(self.dir.path());
        command.env("ADB_SERVER_SOCKET", self.adb.address.to_string()).env("BENCH_LIBEXEC", self.dir.path().join("libexec"));
        command
    }

    fn run(&self, scenario: &Path) -> Command {
        let mut command = self.bench();
        command.arg("run").arg(scenario).args(["--no-report", "--reconnect", "2s"]);
        command
    }

    fn resume(&self) -> Command {
        let mut command = self.bench();
        command.args(["run", "--no-report", "--reconnect", "2s", "--resume"]).arg(self.folder());
        command
    }

    fn folder(&self) -> PathBuf {
        only_run(&self.dir.path().join("results"))
    }

    fn launches(&self) -> Vec<Row> {
        table(&self.folder(), "launches.csv")
    }

    fn manifest(&self) -> Value {
        serde_json::from_slice(&fs::read(self.folder().join("manifest.json")).unwrap()).unwrap()
    }

    fn shell(&self, script: &str) -> String {
        let mut command = Command::new("adb");
        command.args(["-s", &self.phone.address, "shell", script]).env("ADB_SERVER_SOCKET", self.adb.address.to_string());
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    }

    fn setting(&self, name: &str) -> String {
        self.shell(&format!("settings get {name}"))
    }

    /// Waits until a launch runs on the phone.
    fn wait_for_launch(&self) {
        wait_until("a launch", || {
            !self.shell("for p in /proc/[0-9]*; do c=$(readlink $p/cwd); case $c in */bench/work/*) echo $p;; esac; done; true").is_empty()
        });
    }
}

/// Waits for something that takes its time.
#[track_caller]
fn wait_long(what: &str, mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(90);
    while !happened() {
        assert!(Instant::now() < until, "never happened: {what}");
        thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_warm_phone_is_waited_for_and_the_row_says_how_it_began() {
    let Some(mut lab) = Lab::start() else { return };
    let scenario = lab.scenario(
        1,
        0,
        "[settle]\ntimeout = \"80s\"\npoll = \"1s\"\nscreen = \"on\"\ncharging = \"no\"\nbattery = \"50%\"\ncontention = true\n\
         [settle.zones]\nskin = [\"20C\", \"40C\"]\nnpu = [\"20C\", \"60C\"]\n[environment]\nambient = \"21.5C\"\ncase = \"none\"",
    );
    // By the phone's model (soc.sh) the skin goes from 42 C to 32 C with a time constant of 60 s: 60 ln(10/8) = 13.4 s to 40 C, longer while
    // the phone works.
    lab.phone.tell("temp skin 42");
    run(&mut lab.run(&scenario)).expect(0).says(&["waiting for the device: skin 4", "wanted 20 to 40 C", "the device is ready after"]);
    let row = &lab.launches()[0];
    assert_eq!((row["settle"].as_str(), row["settle_lacks"].as_str(), row["status"].as_str()), ("ready", "", "ok"));
    let waited = number(row, "settle_s").unwrap();
    assert!((5.0..79.0).contains(&waited), "{row:?}");
    let skin = number(row, "start_skin_c").unwrap();
    assert!((35.0..42.0).contains(&skin), "{row:?}");
    assert!((30.0..70.0).contains(&number(row, "start_npu_c").unwrap()) && (30.0..110.0).contains(&number(row, "start_cpu_c").unwrap()));
    assert!((25.0..40.0).contains(&number(row, "start_battery_c").unwrap()), "{row:?}");
    assert_eq!((row["start_screen"].as_str(), row["contended_by"].as_str()), ("on", "nobody"));
    let journal = journal(&lab.folder());
    let settled = events(&journal, "settled").next().unwrap();
    assert!(settled["waited_for"].as_array().unwrap().contains(&"skin".into()) && settled["why"].is_null(), "{settled}");
    let cell = &table(&lab.folder(), "cells.csv")[0];
    assert_eq!(
        (cell["unsettled"].as_str(), cell["ambient_c"].as_str(), cell["supply"].as_str(), cell["case"].as_str()),
        ("0", "21.5", "", "none")
    );
    assert_eq!(lab.manifest()["environment"], serde_json::json!({"ambient_c": 21.5, "case": "none"}));
}

#[test]
fn a_launch_that_is_not_made_is_a_row_and_a_resume_makes_it() {
    let Some(mut lab) = Lab::start() else { return };
    let section = "[soak]\nduration = \"1s\"\nwindow = \"1s\"\n\
                   [settle]\ntimeout = \"2s\"\npoll = \"1s\"\npolicy = \"skip\"\n[settle.zones]\nskin = [\"50C\", \"60C\"]";
    run(&mut lab.run(&lab.scenario(1, 0, section))).expect(4).says(&["colder than the wanted 50 to 60 C"]);
    let row = &lab.launches()[0];
    assert_eq!((row["status"].as_str(), row["failure_kind"].as_str(), row["settle"].as_str()), ("skipped", "thermal", "skipped"));
    assert!(row["reason"].contains("colder than the wanted 50 to 60 C"), "{row:?}");
    let cell = &table(&lab.folder(), "cells.csv")[0];
    assert_eq!((cell["status"].as_str(), cell["failure_kind"].as_str()), ("skipped", "thermal"));
    assert!(cell["soak_ended"].starts_with("not run: the device was not as [settle] asks"), "{}", cell["soak_ended"]);
    lab.phone.tell("temp skin 58");
    run(&mut lab.resume()).expect(0);
    let row = &lab.launches()[0];
    assert_eq!((row["status"].as_str(), row["settle"].as_str()), ("ok", "ready"));
    assert_eq!(table(&lab.folder(), "cells.csv")[0]["soak_ended"], "complete");
}

#[test]
fn a_run_that_the_device_s_state_ends_can_be_resumed() {
    let Some(mut lab) = Lab::start() else { return };
    let section = "[settle]\ntimeout = \"2s\"\npoll = \"1s\"\npolicy = \"abort\"\n[settle.zones]\nskin = [\"50C\", \"60C\"]";
    run(&mut lab.run(&lab.scenario(1, 0, section))).expect(5).says(&["not as [settle] asks", "--resume"]);
    assert!(!journal(&lab.folder()).iter().any(|e| e["event"] == "run_end"));
    lab.phone.tell("temp skin 58");
    run(&mut lab.resume()).expect(0);
    assert_eq!(lab.launches()[0]["settle"], "ready");
}

#[test]
fn who_else_uses_camera_and_dsp_is_in_the_row() {
    let Some(lab) = Lab::start() else { return };
    lab.shell("echo com.example.cam > /data/local/tmp/camera; sleep 300 < /dev/fastrpc-cdsp > /dev/null 2>&1 &");
    let section = "[settle]\ntimeout = \"3s\"\npoll = \"1s\"\ncontention = true\n[settle.zones]\nnothing-here = [\"1C\", \"99C\"]";
    run(&mut lab.run(&lab.scenario(1, 0, section))).expect(0).says(&["the device is not as asked"]);
    let row = &lab.launches()[0];
    assert_eq!((row["status"].as_str(), row["settle"].as_str()), ("ok", "marked"));
    assert!(row["contended_by"].contains("camera: com.example.cam") && row["contended_by"].contains("dsp: sleep ("), "{row:?}");
    assert!(
        row["settle_lacks"].contains("in use by camera") && row["settle_lacks"].contains("nothing-here: no such temperature"),
        "{row:?}"
    );
    assert_eq!(table(&lab.folder(), "cells.csv")[0]["unsettled"], "1");
    lab.shell("kill $(pidof sleep)");
}

const PINS: &str = "[pin]\nscreen-timeout = \"30m\"\nstay-on = \"on\"\ndoze = \"off\"\nfixed-performance = \"on\"\ngovernor = \"performance\"\n\
                    airplane = \"on\"\ntask-profile = \"MaxPerformance\"";

/// As the phone is dressed.
fn as_before(lab: &Lab) -> bool {
    lab.setting("system screen_off_timeout") == "60000"
        && lab.setting("global stay_on_while_plugged_in") == "0"
        && lab.shell("dumpsys deviceidle enabled deep") == "1"
        && lab.shell("ls /data/local/tmp/bench/pins 2>/dev/null").is_empty()
}

fn pinned(lab: &Lab) -> bool {
    lab.setting("system screen_off_timeout") == "1800000"
        && lab.setting("global stay_on_while_plugged_in") == "15"
        && lab.shell("dumpsys deviceidle enabled deep") == "0"
        && lab.shell("cat /data/misc/settings/fixed-performance") == "true"
}

#[test]
fn what_is_pinned_is_read_back_and_put_back() {
    let Some(lab) = Lab::start() else { return };
    assert!(as_before(&lab));
    let child = lab.run(&lab.scenario(1, 800, PINS)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    lab.wait_for_launch();
    assert!(pinned(&lab));
    // A value that the device refuses is said, and the run goes on.
    let ran = finish(child)
        .expect(0)
        .says(&["governor of /sys/devices/system/cpu/cpufreq/policy0 and 3 others is not pinned to performance", "over the network"]);
    assert!(as_before(&lab), "{}", ran.stderr);
    assert_eq!(lab.shell("cat /data/misc/settings/fixed-performance"), "false");
    let row = &lab.launches()[0];
    assert_eq!(row["pins"], "fixed-performance=true?;governor!;screen-timeout=1800000;stay-on=15;doze=0;airplane!");
    assert!(!row["warnings"].contains("task profile"), "{row:?}");
    let manifest = lab.manifest();
    let pins = manifest["pins"].as_array().unwrap();
    let pin = |name: &str| pins.iter().find(|p| p["name"] == name).unwrap_or_else(|| panic!("{name} in {pins:?}"));
    assert_eq!((&pin("screen-timeout")["before"], &pin("screen-timeout")["found"]), (&"60000".into(), &"1800000".into()));
    assert_eq!((&pin("governor")["before"], &pin("governor")["found"]), (&"walt".into(), &"walt".into()));
    assert_eq!(pin("fixed-performance")["found"], Value::Null);
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_bench_leaves_a_guard_that_puts_everything_back() {
    let Some(lab) = Lab::start() else { return };
    let child = lab.run(&lab.scenario(1, 1500, PINS)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    lab.wait_for_launch();
    assert!(pinned(&lab));
    kill(child);
    assert!(pinned(&lab), "the run on the phone goes on, with its pins");
    wait_long("the guard", || as_before(&lab));
    assert_eq!(lab.shell("cat /data/misc/settings/fixed-performance"), "false");
    wait_long("the guard's end", || !lab.shell("cat /proc/[0-9]*/cmdline").contains("guard.sh"));
}

#[test]
fn the_next_bench_puts_back_what_a_killed_one_has_changed() {
    let Some(lab) = Lab::start() else { return };
    let child = lab.run(&lab.scenario(2, 300, PINS)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    lab.wait_for_launch();
    kill(child);
    run(&mut lab.resume()).expect(0).says(&["put back on the device what an earlier bench had changed", "screen-timeout to 60000"]);
    assert!(as_before(&lab));
    let pins = lab.manifest()["pins"].clone();
    let timeout = pins.as_array().unwrap().iter().find(|p| p["name"] == "screen-timeout").unwrap().clone();
    assert_eq!(timeout["before"], "60000", "what the killed one had set is not taken for the device's own");
    // `devices clean` does it too.
    let folder = lab.folder();
    fs::rename(&folder, lab.dir.path().join("first")).unwrap();
    let child = lab.run(&lab.scenario(2, 300, PINS)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    lab.wait_for_launch();
    kill(child);
    run(lab.bench().args(["devices", "clean", &lab.phone.address])).expect(0);
    assert!(as_before(&lab));
}

#[test]
fn everything_of_a_launch_is_on_one_clock() {
    let Some(lab) = Lab::start() else { return };
    let before = clocks();
    run(&mut lab.run(&lab.scenario(2, 0, ""))).expect(0);
    let after = clocks();
    // The phone is on this machine: its monotonic clock is this one's, and what the two clocks differ by was read here, too.
    let clock = lab.manifest()["device_clock"].clone();
    for end in ["begin", "end"] {
        let (offset, error) = (clock[end]["offset_ns"].as_i64().unwrap(), clock[end]["error_ns"].as_i64().unwrap());
        assert!(error > 0 && error < 2_000_000_000 && clock[end]["round_trips"] == 8, "{clock}");
        let (low, high) = (before.min(after) - error, before.max(after) + error);
        // 20 ms for what /proc/uptime does not say.
        assert!(offset > low - 20_000_000 && offset < high + 20_000_000, "{offset} is not in {low}..{high}: {clock}");
    }
    let mut launches = 0;
    for dir in walk(&lab.folder().join("logs")).into_iter().filter(|d| d.join("launch.json").is_file()) {
        launches += 1;
        let record: Value = serde_json::from_slice(&fs::read(dir.join("launch.json")).unwrap()).unwrap();
        let done = &record["steps"][0]["done"];
        let window = done["start_ns"].as_u64().unwrap()..=done["end_ns"].as_u64().unwrap();
        let runner = fs::read_to_string(dir.join("events.jsonl")).unwrap();
        let times: Vec<u64> = runner.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["t_ns"].as_u64().unwrap()).collect();
        assert!(times.len() > 20 && times.iter().all(|t| window.contains(t)), "the runner's events lie in the agent's window");
        let samples = fs::read_to_string(dir.join("telemetry.csv")).unwrap();
        let times: Vec<u64> = samples.lines().skip(1).map(|l| l.split(',').next().unwrap().parse().unwrap()).collect();
        // Sources are opened before the command is spawned, and closed after it is reaped.
        let around = window.start() - 5_000_000_000..=window.end() + 5_000_000_000;
        assert!(!times.is_empty() && times.iter().all(|t| around.contains(t)) && times.iter().any(|t| window.contains(t)));
    }
    assert_eq!(launches, 2);
}

/// This machine's monotonic clock minus its Unix time, in ns.
fn clocks() -> i64 {
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    // Since the boot, as the monotonic clock of a machine that never sleeps.
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
    (seconds * 1e9) as i64 - unix
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_path_buf()];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(|e| e.path().is_dir()) {
        all.extend(walk(&entry.path()));
    }
    all
}
