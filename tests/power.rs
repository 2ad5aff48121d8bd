//! Power on the test phone, whose battery is a model (`tests/device/soc.sh`): what bench makes of it against the model's own current and voltage, and
//! a launch whose cable is cut.

#[path = "device/harness.rs"]
mod harness;
#[path = "device/lab.rs"]
mod lab;
mod support;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use lab::{Lab, spawn, wait_long};
use serde_json::Value;
use support::{Row, Scenario, bench, journal, only_run, table};

/// One launch of `queries` measured queries that last `pace_ms` each.
fn scenario(lab: &Lab, queries: u32, pace_ms: u32, power: &str) -> PathBuf {
    let command = ["python3", "./runner.py", "--pace", &pace_ms.to_string()].map(str::to_owned).to_vec();
    let path = Scenario { name: "power", command, device: lab.device(), timeout: "5m", ..Scenario::default() }.write(lab.dir.path());
    let text = fs::read_to_string(&path).unwrap().replace("queries = 2", &format!("queries = {queries}"));
    fs::write(&path, format!("{text}[power]\n{power}\n")).unwrap();
    path
}

/// Waits for a run of minutes that has to end well.
#[track_caller]
fn finish(child: Child) {
    let ran = child.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A figure that has to be there.
#[track_caller]
fn number(row: &Row, column: &str) -> f64 {
    support::number(row, column).unwrap_or_else(|| panic!("no {column} in {row:?}"))
}

/// Current and voltage five times a second, as the model has them: seconds of boot time, and W.
fn watch(lab: &Lab) -> (Child, thread::JoinHandle<Vec<(f64, f64)>>) {
    // A file that is being written can be empty for a moment.
    let script = "cd /sys/class/power_supply/battery; while :; do c=; v=; read -r c <current_now; read -r v <voltage_now; \
                  read -r t r </proc/uptime; echo $t $c $v; sleep 0.2; done";
    let mut child = lab.adb(&["shell", script]).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let read = thread::spawn(move || {
        let mut seen = Vec::new();
        for line in out.lines().map_while(Result::ok) {
            let words: Vec<f64> = line.split_whitespace().filter_map(|w| w.parse().ok()).collect();
            if let [t, c, v] = words[..] {
                seen.push((t, (c * 1e-6).abs() * v * 1e-6));
            }
        }
        seen
    });
    (child, read)
}

/// What the model drew from one time to another: each value holds until the next was seen.
fn joules(seen: &[(f64, f64)], from: f64, to: f64) -> f64 {
    seen.windows(2).map(|w| w[0].1 * (w[1].0.min(to) - w[0].0.max(from)).max(0.0)).sum()
}

#[test]
fn energy_is_what_the_phones_battery_gave() {
    let Some(mut lab) = Lab::with_paced_runner() else { return };
    lab.phone.tell("battery 80 Discharging");
    // 33 queries of 4 s: 128 s and more from the begin of the first measured one to the end of the last.
    let path = scenario(&lab, 33, 4000, "method = \"battery\"");
    let running = spawn(&mut lab.run(&path, "5s"));
    wait_long("the launch", || lab.said().contains("launch_begin"));
    // The adb server knows the device by now; the stand-in idles for 65 s, and the first, discarded query takes seconds yet.
    let (mut sampler, seen) = watch(&lab);
    // A core's worth of other load in the middle of it: what a phone does beside the model counts too.
    thread::sleep(Duration::from_secs(105));
    let mut load = lab.adb(&["shell", "n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done"]).stdout(Stdio::null()).spawn().unwrap();
    finish(running);
    let _ = load.kill();
    let _ = (load.wait(), sampler.kill(), sampler.wait());
    let seen = seen.join().unwrap();

    let rows = table(&lab.folder(), "launches.csv");
    let row = &rows[0];
    assert_eq!((row["power_method"].as_str(), row["charge_state"].as_str()), ("battery", "discharging"), "{row:?}");
    assert!(
        row["power_unit_inferred"].starts_with("current uA by size") && row["power_unit_inferred"].ends_with("voltage uV by size"),
        "{row:?}"
    );
    // The window by the launch's own time stamps, and the model's energy in it.
    let record: Value = serde_json::from_slice(&fs::read(launch_json(&lab.folder())).unwrap()).unwrap();
    let queries = record["parsed"]["queries"].as_array().unwrap();
    let slept = record["steps"][0]["done"]["boottime_minus_monotonic_ns"][0].as_f64().unwrap();
    let seconds = |ns: &Value| (ns.as_f64().unwrap() + slept) / 1e9;
    let from = seconds(&queries[1]["start_ns"]);
    let to = seconds(&queries.last().unwrap()["tokens"].as_array().unwrap().last().unwrap()["t_ns"]);
    assert!(to - from > 120.0, "{from} {to}");
    let (gross, truth, error) = (number(row, "energy_gross_j"), joules(&seen, from, to), number(row, "energy_error_j"));
    println!("gross {gross} J, the model's own {truth:.2} J, stated error {error} J, {} updates/s", row["power_update_hz"]);
    assert!(seen.len() > 100, "the test's own sampler saw {} readings", seen.len());
    assert!((gross - truth).abs() <= error, "{gross} is not {truth} within {error}");
    assert!((gross / truth - 1.0).abs() < 0.03, "{gross} {truth}");
    // The model steps about once a second, however often it is asked.
    assert!((0.3..=1.6).contains(&number(row, "power_update_hz")), "{row:?}");
    // 5 Ah at 80 % and about 4.1 V: at the mean power as many hours as its charge has.
    let hours = 5.0 * 4.1 / number(row, "power_avg_w");
    assert!((number(row, "battery_hours") / hours - 1.0).abs() < 0.05, "{row:?}");
    let baseline = number(row, "baseline_w");
    assert!(baseline > 1.3, "350 mA at 4.1 V at least: {row:?}");
    // It is the launch's own: the last minute of the time that the stand-in did nothing, between its load and its first query.
    let idle = record["parsed"]["idle_ns"].as_array().expect("it idled");
    let (began, ended) = (seconds(&idle[0]), seconds(&idle[1]));
    assert!(ended - began > 64.9 && ended <= seconds(&queries[0]["start_ns"]) && seconds(&record["parsed"]["load_ns"][1]) <= began);
    let idle_w = joules(&seen, ended - 60.0, ended) / 60.0;
    println!("idle {baseline} W, the model's own {idle_w:.3} W");
    assert_eq!(row["baseline_state"], "resident", "{row:?}");
    assert!((baseline / idle_w - 1.0).abs() < 0.05, "{baseline} {idle_w}");
    assert_eq!(table(&lab.folder(), "cells.csv")[0]["baseline_state"], "resident");
    if row["energy_net_j"].is_empty() {
        assert!(row["absent"].contains("energy_net_j=the baseline ("), "{row:?}");
    } else {
        assert!((gross - number(row, "energy_net_j") - baseline * (to - from)).abs() < 0.01 * gross, "{row:?}");
    }
    assert!(lab.folder().join("logs").join(lab.phone.address.replace(':', "_")).join("baseline-0/telemetry.csv").is_file());
}

/// Which launches idle, on this computer: it has no power to show, but all events.
#[test]
fn the_first_launch_of_a_cell_idles_with_its_model() {
    let dir = tempfile::tempdir().unwrap();
    // Shorter than the idle time, which the time-out does not count.
    let variants = vec!["ok", "restless", "strict", "late-crash"];
    let path = Scenario { name: "idle", variants, launches: 2, timeout: "30s", ..Scenario::default() }.write(dir.path());
    let soak = "[soak]\nduration = \"4s\"\nwindow = \"1s\"\ncells = [\"variant=late-crash\"]\n";
    fs::write(&path, fs::read_to_string(&path).unwrap() + "[power]\n" + soak).unwrap();
    let ran = bench(dir.path()).arg("run").arg(&path).arg("--no-report").output().unwrap();
    // The soak crashes after 2.5 s.
    assert_eq!(ran.status.code(), Some(6), "{}", String::from_utf8_lossy(&ran.stderr));
    let folder = only_run(&dir.path().join("results"));
    let of = |variant: &str, pass: &str| {
        let wanted = |r: &Row| r["cell"].contains(&format!("variant={variant}")) && r["pass"] == pass;
        table(&folder, "launches.csv").into_iter().filter(wanted).collect::<Vec<Row>>()
    };
    for (variant, idles) in [("ok", true), ("late-crash", true), ("restless", false), ("strict", false)] {
        let rows = of(variant, "measure");
        assert_eq!(rows.len(), 2, "{variant}");
        for row in &rows {
            assert_eq!(row["status"], "ok", "{row:?}");
            // The stand-in's own times: 0.7 ms of loading, and below 5 ms to the first token, whether it idled between them or not.
            assert!((number(row, "load_ms") - 0.7).abs() < 1e-6, "{row:?}");
            match support::number(row, "idle_ms") {
                Some(ms) => assert!(idles && row["launch"] == "0" && (ms - 65_000.0).abs() < 1e-6, "{row:?}"),
                None => assert!(!idles || row["launch"] == "1", "{row:?}"),
            }
        }
    }
    let samples = table(&folder, "samples.csv");
    assert_eq!(samples.iter().filter(|s| (number(s, "ttft_ms") - 5.0).abs() < 1e-6).count(), samples.len());
    let words: Vec<String> = journal(&folder).iter().filter_map(|e| e["text"].as_str().map(str::to_owned)).collect();
    assert!(words.iter().any(|w| w.contains("variant=strict") && w.contains("older than idle baselines")), "{words:?}");
    // The soak of a cell that has idled in this segment does not; one of a segment that only soaks does, and measures nothing else.
    let idled = || events_of_the_soak(&folder).iter().filter(|e| e["event"] == "idle_end").count();
    assert_eq!(idled(), 0);
    let again = bench(dir.path()).args(["run", "--resume"]).arg(&folder).args(["--retry-failed", "--no-report"]).output().unwrap();
    assert_eq!((again.status.code(), idled()), (Some(6), 1), "{}", String::from_utf8_lossy(&again.stderr));
    assert!(of("ok", "measure").iter().all(|r| r["segment"] == "0"));
    let local = fs::read_dir(folder.join("logs")).unwrap().next().unwrap().unwrap().path();
    assert!(local.join("baseline-0/done.json").is_file() && local.join("baseline-1/done.json").is_file());
}

/// What the only soak of a run has written.
fn events_of_the_soak(folder: &Path) -> Vec<Value> {
    let mut folders = vec![folder.join("logs")];
    while let Some(dir) = folders.pop() {
        let own = dir.file_name().is_some_and(|n| n.to_string_lossy().starts_with("soak"));
        if own && let Ok(text) = fs::read_to_string(dir.join("events.jsonl")) {
            return text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        }
        folders.extend(fs::read_dir(&dir).unwrap().flatten().map(|e| e.path()).filter(|p| p.is_dir()));
    }
    panic!("no soak in {}", folder.display())
}

fn launch_json(folder: &Path) -> PathBuf {
    let mut folders = vec![folder.join("logs")];
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            if entry.file_name() == "launch.json" {
                return entry.path();
            }
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    panic!("no launch.json in {}", folder.display())
}

#[test]
fn a_launch_without_its_cable() {
    let Some(mut lab) = Lab::with_paced_runner() else { return };
    lab.phone.tell("battery 80 Charging");
    let (off, on) = (lab.dir.path().join("off"), lab.dir.path().join("on"));
    let power =
        format!("usb-off = [\"touch\", \"{}\"]\nusb-on = \"touch '{}'\"\naway = \"20s\"\nbaseline = \"off\"", off.display(), on.display());
    let path = scenario(&lab, 3, 2000, &power);
    let running = spawn(&mut lab.run(&path, "5s"));
    wait_long("the hub's command", || off.exists());
    assert!(!on.exists());
    // The hub: the link is gone, and the battery takes over.
    lab.phone.tell("unplug");
    lab.phone.tell("battery 80 Discharging");
    wait_long("the cable's return", || on.exists());
    lab.phone.tell("battery 80 Charging");
    lab.phone.tell("plug");
    finish(running);
    let rows = table(&lab.folder(), "launches.csv");
    assert_eq!((rows.len(), rows[0]["status"].as_str(), rows[0]["charge_state"].as_str()), (1, "ok", "discharging"), "{:?}", rows[0]);
    // Discharging for certain, and much too short.
    assert!(rows[0]["absent"].contains("power_avg_w=window of "), "{:?}", rows[0]);
    assert!(rows[0]["absent"].contains("needed 120 s"), "{:?}", rows[0]);
    let words: Vec<String> = journal(&lab.folder()).iter().filter_map(|e| e["text"].as_str().map(str::to_owned)).collect();
    assert!(words.iter().all(|w| !w.contains("usb-o")), "{words:?}");
}

#[test]
fn on_battery_waits_for_the_battery() {
    let Some(mut lab) = Lab::with_paced_runner() else { return };
    lab.phone.tell("battery 80 Charging");
    let path = scenario(&lab, 1, 0, "baseline = \"off\"");
    let running = spawn(lab.run(&path, "5s").arg("--on-battery"));
    // A device on the network stays in reach: it is asked for once, and then the run goes on.
    wait_long("the request", || lab.said().contains("\"event\":\"ask\""));
    thread::sleep(Duration::from_secs(2));
    assert!(!lab.said().contains("launch_begin"));
    lab.phone.tell("battery 80 Discharging");
    finish(running);
    let row = &table(&lab.folder(), "launches.csv")[0];
    assert_eq!((row["status"].as_str(), row["charge_state"].as_str()), ("ok", "discharging"), "{row:?}");
}
