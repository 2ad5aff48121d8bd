//! `bench run` against the test phone, the real adbd behind the real adb server: a matrix, and everything that can happen to a cable.

#[path = "device/harness.rs"]
mod harness;
mod support;
#[path = "phone/time.rs"]
mod time;

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use harness::{Adbd, Phone};
use serde_json::Value;
use support::{Row, Scenario, bench, finish, journal, only_run, run, runner, table, wait_until};

/// A phone, a server, and a folder with a scenario for a runner in Python.
struct Lab {
    phone: Phone,
    adb: Adbd,
    dir: tempfile::TempDir,
}

impl Lab {
    fn start() -> Option<Self> {
        harness::possible().then(|| {
            let lab = Self { phone: Phone::start(), adb: Adbd::start(), dir: tempfile::tempdir().unwrap() };
            // As it is found for a phone: static, by its triple.
            let libexec = lab.path("libexec/x86_64-unknown-linux-musl");
            fs::create_dir_all(&libexec).unwrap();
            fs::copy(harness::agent(), libexec.join("bench-agent")).unwrap();
            fs::copy(runner(), lab.path("runner.py")).unwrap();
            lab
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A scenario of one cell a variant on this phone; `pace_ms` makes every query last that much longer.
    fn scenario(&self, variants: &[&'static str], launches: u32, pace_ms: u32) -> PathBuf {
        let command = ["python3", "./runner.py", "--pace", &pace_ms.to_string()].map(str::to_owned).to_vec();
        Scenario { command, variants: variants.to_vec(), launches, ..self.described() }.write(self.dir.path())
    }

    /// A scenario of one cell on this phone.
    fn described(&self) -> Scenario {
        let command = ["python3", "./runner.py"].map(str::to_owned).to_vec();
        Scenario { name: "phone", command, device: format!("serial = \"{}\"", self.phone.address), ..Scenario::default() }
    }

    fn bench(&self) -> Command {
        let mut command = bench(self.dir.path());
        command.env("ADB_SERVER_SOCKET", self.adb.address.to_string()).env("BENCH_LIBEXEC", self.path("libexec"));
        command
    }

    fn run(&self, scenario: &Path) -> Command {
        self.run_waiting(scenario, "20s")
    }

    fn run_waiting(&self, scenario: &Path, reconnect: &str) -> Command {
        let mut command = self.bench();
        command.arg("run").arg(scenario).args(["--no-report", "--reconnect", reconnect]);
        command
    }

    fn spawn(&self, scenario: &Path) -> Child {
        self.run(scenario).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn resume(&self) -> Command {
        let mut command = self.bench();
        command.args(["run", "--no-report", "--reconnect", "20s", "--resume"]).arg(self.folder());
        command
    }

    fn folder(&self) -> PathBuf {
        only_run(&self.path("results"))
    }

    /// Waits until the runner of a launch works on the phone.
    fn wait_for_launch(&self, number: usize) {
        wait_until("a launch", || {
            let Ok(entries) = fs::read_dir(self.path("results")) else { return false };
            let begun = entries.flatten().map(|e| fs::read_to_string(e.path().join("journal.jsonl")).unwrap_or_default());
            begun.map(|text| text.matches("launch_begin").count()).sum::<usize>() >= number
        });
        // However long staging takes on a busy machine.
        wait_until("its runner", || !self.left_running().is_empty());
    }

    /// What runs on the phone from its work folders: the runner and its agent.
    fn left_running(&self) -> String {
        let script = "for p in /proc/[0-9]*; do c=$(readlink $p/cwd); case $c in */bench/work/*) echo $p $c;; esac; done; true";
        self.adb_shell(script)
    }

    fn adb_shell(&self, script: &str) -> String {
        let mut command = Command::new("adb");
        command.args(["-s", &self.phone.address, "shell", script]).env("ADB_SERVER_SOCKET", self.adb.address.to_string());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }
}

fn row<'a>(rows: &'a [Row], variant: &str) -> &'a Row {
    rows.iter().find(|r| r["variant"] == variant).unwrap_or_else(|| panic!("no {variant} in {rows:?}"))
}

fn statuses(folder: &Path) -> Vec<String> {
    table(folder, "cells.csv").iter().map(|r| r["status"].clone()).collect()
}

#[test]
fn a_matrix_is_measured_on_the_phone() {
    let Some(lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok", "crash", "exit-3"], 2, 0);
    run(&mut lab.run(&scenario)).expect(6);
    let folder = lab.folder();
    let rows = table(&folder, "cells.csv");
    let ok = row(&rows, "ok");
    // The stand-in's clock: first token 5 ms after the prompt, then one a millisecond.
    assert_eq!((ok["status"].as_str(), ok["ttft_ms"].as_str(), ok["decode_tok_s"].as_str()), ("ok", "5", "1000"));
    // Programs of a PC's processor are no phone, whatever the properties say.
    assert_eq!(
        (ok["device"].as_str(), ok["device_class"].as_str(), ok["launches"].as_str()),
        (lab.phone.address.as_str(), "emulator", "2")
    );
    assert_eq!((ok["check_count"].as_str(), ok["check_unit"].as_str()), ("confirmed", "confirmed"));
    // The runner is a file of the scenario that was put there.
    let bytes = fs::metadata(runner()).unwrap().len() as f64;
    assert!((ok["runtime_mb"].parse::<f64>().unwrap() - bytes / 1e6).abs() < 1e-6, "{}", ok["runtime_mb"]);
    let failed = row(&rows, "exit-3");
    assert_eq!((failed["status"].as_str(), failed["failure_kind"].as_str()), ("failed", "runtime"));
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let says = &manifest["device_says"];
    assert_eq!((says["chip"]["part"].as_str(), says["chip"]["source"].as_str()), (Some("SM8650"), Some("ro.soc.model")));
    assert_eq!((manifest["device"]["soc_model"].as_u64(), manifest["device"]["htp_arch"].as_u64()), (Some(57), Some(75)));
    assert!(says["adb_round_trips"].as_u64().unwrap() > 10, "{says}");
    // Counted by the launch, and in the middle of all launches.
    let launches = table(&folder, "launches.csv");
    let trips: Vec<f64> = launches.iter().map(|r| r["adb_round_trips"].parse().unwrap()).collect();
    let median = says["adb_round_trips_per_launch"].as_f64().unwrap();
    assert!(trips.len() == 5 && trips.iter().any(|n| *n <= median) && trips.iter().any(|n| *n >= median), "{trips:?} {median}");
    assert_eq!(lab.left_running(), "");
    assert_eq!(lab.adb_shell("ls /data/local/tmp/bench/work"), "");
}

/// The port of a server that says of every daemon that it is too old for shell_v2.
fn old_daemons(server: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pass = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            let mut block = vec![0; 1 << 16];
            while let Ok(n @ 1..) = from.read(&mut block) {
                if let Some(at) = block[..n].windows(8).position(|w| w == b"shell_v2") {
                    block[at..at + 8].copy_from_slice(b"shell_v0");
                }
                if to.write_all(&block[..n]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    };
    thread::spawn(move || {
        for here in listener.incoming().flatten() {
            let there = TcpStream::connect(&server).unwrap();
            pass(here.try_clone().unwrap(), there.try_clone().unwrap());
            pass(there, here);
        }
    });
    port
}

#[test]
fn a_daemon_without_shell_v2_runs_the_agent_too() {
    let Some(lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok", "exit-3"], 4, 0);
    let port = old_daemons(lab.adb.address.to_string().trim_start_matches("tcp:").to_owned());
    run(lab.run(&scenario).env("ADB_SERVER_SOCKET", format!("tcp:127.0.0.1:{port}"))).expect(6);
    let rows = table(&lab.folder(), "cells.csv");
    let ok = row(&rows, "ok");
    assert_eq!((ok["status"].as_str(), ok["launches"].as_str(), ok["launches_failed"].as_str()), ("ok", "4", "0"), "{}", ok["reason"]);
    assert_eq!(row(&rows, "exit-3")["failure_kind"], "runtime");
    assert_eq!(lab.left_running(), "");
}

#[test]
fn a_server_that_stays_silent_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    fs::copy(runner(), dir.path().join("runner.py")).unwrap();
    let scenario = Scenario { device: "serial = \"192.0.2.1:5555\"".to_owned(), ..Scenario::default() }.write(dir.path());
    let address = format!("tcp:127.0.0.1:{}", silent.local_addr().unwrap().port());
    run(bench(dir.path()).arg("run").arg(scenario).env("ADB_SERVER_SOCKET", address)).expect(5).says(&["did not answer within"]);
}

#[test]
fn a_lost_cable_costs_nothing() {
    let Some(mut lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 2, 1500);
    let child = lab.spawn(&scenario);
    lab.wait_for_launch(1);
    lab.phone.tell("unplug");
    thread::sleep(Duration::from_secs(2));
    lab.phone.tell("plug");
    // The daemon restarts without its children, as after `adb root` on a kind phone.
    lab.wait_for_launch(2);
    lab.phone.tell("kill");
    finish(child).expect(0);
    let rows = table(&lab.folder(), "cells.csv");
    assert_eq!((rows[0]["status"].as_str(), rows[0]["launches"].as_str(), rows[0]["ttft_ms"].as_str()), ("ok", "2", "5"));
}

#[test]
fn a_reboot_and_a_killed_process_tree_are_rows_that_say_so() {
    let Some(mut lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 3, 1500);
    let child = lab.spawn(&scenario);
    lab.wait_for_launch(1);
    lab.phone.tell("reboot");
    lab.wait_for_launch(2);
    lab.phone.tell("r18");
    finish(child).expect(0);
    let folder = lab.folder();
    let launches = table(&folder, "launches.csv");
    let words: Vec<(&str, &str)> = launches.iter().map(|r| (r["status"].as_str(), r["reason"].as_str())).collect();
    assert!(words[0].0 == "failed" && words[0].1.contains("restarted during the run"), "{words:?}");
    assert!(words[1].0 == "failed" && words[1].1.contains("ends everything that it started"), "{words:?}");
    assert_eq!(words[2].0, "ok");
    assert_eq!(launches[0]["failure_kind"], "device");
    // What the surroundings spoilt is tried again.
    run(&mut lab.resume()).expect(0);
    let rows = table(&folder, "cells.csv");
    assert_eq!((rows[0]["launches"].as_str(), rows[0]["launches_failed"].as_str()), ("3", "0"));
}

#[test]
fn a_device_that_vanishes_for_good_ends_the_run_and_keeps_what_was_measured() {
    let Some(mut lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 3, 800);
    let child = lab.run_waiting(&scenario, "3s").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    lab.wait_for_launch(2);
    lab.phone.tell("down");
    finish(child).expect(5).says(&["the device was lost", "bench run --resume"]);
    let folder = lab.folder();
    assert_eq!(table(&folder, "samples.csv").iter().filter(|r| r["launch"] == "0").count(), 3);
    run(&mut lab.resume()).expect(5).says(&["offline"]);
    lab.phone.tell("up");
    // The server needs about ten seconds to see it.
    wait_until("the phone's return", || lab.adb_shell("echo here") == "here\n");
    run(&mut lab.resume()).expect(0);
    let rows = table(&folder, "cells.csv");
    assert_eq!((rows[0]["status"].as_str(), rows[0]["launches"].as_str()), ("ok", "3"));
}

#[test]
fn a_full_phone_ends_the_run_and_it_goes_on_when_there_is_room() {
    let Some(mut lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 2, 0);
    lab.phone.tell("full 200");
    run(&mut lab.run(&scenario)).expect(5).says(&["full", "--resume"]);
    lab.phone.tell("free");
    run(&mut lab.resume()).expect(0);
    assert_eq!(statuses(&lab.folder()), ["ok"]);
}

#[test]
fn a_disk_that_fills_during_a_launch_is_not_blamed_on_the_runner() {
    let Some(mut lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 1, 50);
    // More than the page that a file already has.
    let text = fs::read_to_string(&scenario).unwrap().replace("queries = 2", "queries = 80");
    fs::write(&scenario, text).unwrap();
    // The first time moves the folder, which no program should live through.
    lab.phone.tell("full");
    lab.phone.tell("free");
    let child = lab.spawn(&scenario);
    lab.wait_for_launch(1);
    // Its agent and its runner have all their files by then.
    wait_until("an event", || !lab.adb_shell("cat /data/local/tmp/bench/work/*/events.jsonl").is_empty());
    lab.phone.tell("full 0");
    finish(child).expect(6).says(&["the disk was full", "--resume"]);
    assert_eq!(table(&lab.folder(), "launches.csv")[0]["failure_kind"], "infra");
    lab.phone.tell("free");
    run(&mut lab.resume()).expect(0);
    assert_eq!(statuses(&lab.folder()), ["ok"]);
}

#[test]
fn after_a_crash_of_the_host_the_next_contact_ends_what_is_left() {
    let Some(lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 1, 4000);
    let mut child = lab.spawn(&scenario);
    lab.wait_for_launch(1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(lab.left_running(), "", "the agent needs no host");
    run(&mut lab.resume()).expect(0);
    assert_eq!(lab.left_running(), "");
    assert!(journal(&lab.folder()).iter().any(|e| e["event"] == "warning" && e["text"].as_str().unwrap().contains("earlier bench")));
    assert_eq!(statuses(&lab.folder()), ["ok"]);
    // Four seconds are enough for every source that the phone has, Android's thermal service among them, whose process is none of the runner's
    // and does not outlive its agent.
    let samples = table(&lab.folder(), "telemetry.csv");
    for (source, name) in [
        ("thermal", "nsphvx-0"),
        ("cooling", "cdsp_sw_hvx"),
        ("cpufreq", "policy7_cap"),
        ("gpu", "busy_pct"),
        ("ddr", "LLCC"),
        ("battery", "battery/voltage_now"),
        ("psi", "cpu_some"),
        ("thermalservice", "status"),
    ] {
        assert!(samples.iter().any(|s| s["source"] == source && s["name"] == name), "no {source} {name}");
    }
    let processes = samples.iter().filter(|s| s["source"] == "process" && s["name"] == "processes");
    assert!(processes.clone().count() > 10 && processes.clone().all(|s| s["value"] == "1"), "the runner is one process");
    wait_until("the watcher's end", || !lab.adb_shell("cat /proc/[0-9]*/cmdline 2>/dev/null").contains("watch-thermalservice"));
}

#[test]
fn a_second_run_waits_and_a_cancelled_one_leaves_nothing() {
    let Some(lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 1, 1500);
    let mut first = lab.spawn(&scenario);
    lab.wait_for_launch(1);
    // Another host shares neither the cache nor its locks.
    let mut second = lab.run(&scenario);
    second.env("BENCH_CACHE", lab.path("other-cache")).args(["--out", "other"]);
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    finish(second).expect(0).says(&["from another computer"]);
    assert_eq!(lab.left_running(), "");
}

#[test]
fn a_device_that_is_named_twice_or_has_two_names_does_not_wait_for_itself() {
    let Some(lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 1, 0);
    let once = format!("serial = \"{}\"", lab.phone.address);
    let with = |device: &str| {
        let text = fs::read_to_string(&scenario).unwrap().replace(&once, device);
        let path = lab.path("other.toml");
        fs::write(&path, text).unwrap();
        path
    };
    run(&mut lab.run(&with(&format!("serial = [\"{0}\", \"{0}\"]", lab.phone.address)))).expect(0);
    assert_eq!(statuses(&lab.folder()), ["ok"]);
    // As over USB and Wi-Fi: two servers see it. It is measured once, not after itself.
    let second = Adbd::start();
    let mut connect = Command::new("adb");
    connect.args(["connect", &lab.phone.address]).env("ADB_SERVER_SOCKET", second.address.to_string());
    assert!(connect.output().unwrap().status.success());
    let mut both = lab.run(&with("all = true"));
    run(both.args(["--out", "both", "--adb-server"]).arg(second.address.to_string())).expect(0).says(&["is the same device as"]);
    assert_eq!(fs::read_dir(lab.path("both")).unwrap().count(), 1);
}

#[test]
fn who_waits_for_a_device_can_stop() {
    let Some(lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 1, 6000);
    let first = lab.spawn(&scenario);
    lab.wait_for_launch(1);
    // Behind the lock of this computer, and from another one behind that of the device.
    for (cache, out) in [("cache", "second"), ("other-cache", "third")] {
        let mut waiting = lab.run(&scenario);
        waiting.env("BENCH_CACHE", lab.path(cache)).args(["--out", out]);
        let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_secs(1));
        Command::new("kill").args(["-INT", &waiting.id().to_string()]).status().unwrap();
        finish(waiting).expect(130).says(&["waiting for it to end", "--resume"]);
    }
    assert!(!journal(&lab.folder()).iter().any(|e| e["event"] == "run_end"), "neither waited for the first to end");
    finish(first).expect(0);
    run(lab.bench().args(["run", "--no-report", "--resume"]).arg(only_run(&lab.path("third")))).expect(0);
}

#[test]
fn a_second_run_sends_next_to_nothing() {
    let Some(lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 1, 0);
    run(&mut lab.run(&scenario)).expect(0);
    let store = |lab: &Lab| lab.adb_shell("cd /data/local/tmp/bench/store && ls -l --full-time * | grep -v ok");
    let before = store(&lab);
    run(&mut lab.run(&scenario)).expect(0);
    assert_eq!(store(&lab), before, "nothing in the store was written again");
}

#[test]
fn a_cold_load_on_a_phone_is_cold_though_the_push_filled_the_page_cache() {
    let Some(lab) = Lab::start() else { return };
    let rows = |load: &str, out: &str| {
        let path = Scenario { model_bytes: 4_000_000, launches: 2, ..lab.described() }.write(lab.dir.path());
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("[measure]\n", &format!("[measure]\nload = \"{load}\"\n"))).unwrap();
        run(lab.run(&path).args(["--out", out])).expect(0);
        let rows = table(&only_run(&lab.path(out)), "launches.csv");
        let found =
            rows.iter().map(|row| (row["load_state"].clone(), row["load_cold_ms"].clone(), row["warnings"].clone())).collect::<Vec<_>>();
        assert!(rows.iter().all(|row| row["resident_share"].parse::<f64>().is_ok()), "{rows:?}");
        found
    };
    let [cold, warm] = [("cold", "0.7"), ("warm", "")].map(|(state, ms)| vec![(state.to_owned(), ms.to_owned(), String::new()); 2]);
    // The very first load comes right after the push.
    assert_eq!(rows("any", "any"), warm);
    assert_eq!(rows("cold", "cold"), cold);
}
