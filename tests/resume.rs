//! A run that is killed at any moment loses at most the launch in flight, and `--resume` finishes the rest.

mod support;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bench::run::MEMORY_FIGURES;
use serde_json::Value;
use support::{Row, Scenario, bench, events, finish, journal, only_run, processes_with, run, runner, table, wait_until};

/// Kill moments in all.
const KILLS: usize = 50;
const CELLS: [&str; 3] = ["a", "b", "c"];
const LAUNCHES: u32 = 3;

/// Three cells of three launches; about two seconds.
fn scenario(dir: &Path, pace_ms: u32) -> PathBuf {
    let command = vec!["python3".to_owned(), runner().display().to_string(), "--pace".to_owned(), pace_ms.to_string()];
    Scenario { name: "steady", command, variants: CELLS.to_vec(), launches: LAUNCHES, ..Scenario::default() }.write(dir)
}

/// What is of the moment: everything else of two runs has to be the same.
fn of_the_moment(column: &str) -> bool {
    let base = column.split("_lo").next().unwrap_or(column);
    let of = |m: &str| base == m || ["_hi", "_mad", "_centre", "_n"].iter().any(|end| column == format!("{m}{end}"));
    // The stand-in's time stamps are fixed, so that even TTFT and rates are the same; what the kernel says is not.
    ["run", "segment", "t_ms", "wall_ms", "uptime_s"].contains(&column)
        || ["peak_mem_mb", "vm_hwm_mb", "cpu_s"].iter().any(|m| of(m))
        || MEMORY_FIGURES.iter().any(|m| column.starts_with(m))
}

/// The tables that a deterministic runner makes the same every time.
fn comparable(run: &Path) -> BTreeMap<&'static str, Vec<Row>> {
    ["cells.csv", "samples.csv", "launches.csv", "tokens.csv", "layers.csv", "phases.csv"]
        .into_iter()
        .map(|name| {
            let mut rows = table(run, name);
            for row in &mut rows {
                row.retain(|column, _| !of_the_moment(column));
                if name == "cells.csv" {
                    // The first load of every segment is kept apart.
                    row.retain(|column, _| !column.starts_with("load_"));
                }
                let momentary = |a: &str| a.starts_with("load_") || MEMORY_FIGURES.iter().any(|m| a.starts_with(m));
                row.entry("absent".to_owned())
                    .and_modify(|text| *text = text.split(';').filter(|a| !momentary(a)).collect::<Vec<_>>().join(";"));
            }
            (name, rows)
        })
        .collect()
}

/// SplitMix64: seeded, so that a failing moment can be tried again.
struct Random(u64);
impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Starts `bench run`, and kills it after some time; says whether it was still running.
fn killed_after(command: &mut Command, time: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(time);
    let running = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    running
}

/// (cell, pass, launch) of an event.
fn key(event: &Value) -> String {
    format!("{} {} {}", event["cell"], event["pass"], event["launch"])
}

/// What the journal proves: no finished launch was run again, and no kill cost more than the launch in flight.
fn journal_is_sound(run: &Path, kills: usize, resumes: usize) {
    let all = journal(run);
    let mut ended: BTreeMap<String, usize> = BTreeMap::new();
    for end in events(&all, "launch_end") {
        assert_eq!(end["status"], "ok", "{end}");
        *ended.entry(key(end)).or_default() += 1;
    }
    assert_eq!(ended.len(), CELLS.len() * LAUNCHES as usize, "{ended:?}");
    assert!(ended.values().all(|n| *n == 1), "a finished launch was repeated: {ended:?}");
    // In order: a launch that begins and does not end may be followed only by the next segment.
    let (mut open, mut lost, mut segments): (Option<String>, usize, usize) = (None, 0, 0);
    for event in &all {
        match event["event"].as_str().unwrap() {
            "run_begin" => {
                lost += usize::from(open.take().is_some());
                segments += 1;
            }
            "launch_begin" => assert_eq!(open.replace(key(event)), None, "two launches at once"),
            "launch_end" => assert_eq!(open.take(), Some(key(event))),
            _ => {}
        }
    }
    assert_eq!(open, None);
    assert!(lost <= kills && segments <= resumes + 1, "{lost} launches lost, {segments} segments with {kills} kills");
}

/// One experiment: a run is killed (once, or twice: the second time while it resumes), then finished.
struct Killed {
    seed: usize,
    moments: Vec<Duration>,
}

fn experiment(dir: &Path, scenario: &Path, expected: &BTreeMap<&'static str, Vec<Row>>, killed: &Killed) -> usize {
    let out = dir.join(format!("out-{}", killed.seed));
    let start = |command: &mut Command| {
        command.args(["--no-report", "--out"]).arg(&out);
    };
    let mut in_time = 0;
    let mut folder = None;
    for moment in &killed.moments {
        let mut command = bench(dir);
        command.arg("run");
        match &folder {
            None => {
                command.arg(scenario);
            }
            Some(run) => {
                command.arg("--resume").arg(run);
            }
        }
        start(&mut command);
        in_time += usize::from(killed_after(&mut command, *moment));
        let found = fs::read_dir(&out).ok().and_then(|mut d| d.next()).map(|e| e.unwrap().path());
        // Killed before the plan was written, there is nothing to resume and nothing lost: the run is started again.
        folder = found.filter(|run| run.join("plan.toml").is_file());
        if folder.is_none() {
            let _ = fs::remove_dir_all(&out);
        }
    }
    let mut command = bench(dir);
    command.arg("run");
    match &folder {
        None => command.arg(scenario),
        Some(run) => command.arg("--resume").arg(run),
    };
    start(&mut command);
    let ran = run(&mut command);
    assert_eq!(ran.code(), 0, "seed {} {:?}: {}", killed.seed, killed.moments, ran.stderr);
    let run = only_run(&out);
    journal_is_sound(&run, in_time, killed.moments.len());
    let got = comparable(&run);
    for (name, rows) in expected {
        assert_eq!(&got[name], rows, "{name}, seed {} {:?}", killed.seed, killed.moments);
    }
    let left: Vec<_> = glob::glob(&format!("{}/**/*.tmp", run.display())).unwrap().flatten().collect();
    assert!(left.is_empty(), "seed {} {:?}: {left:?}", killed.seed, killed.moments);
    in_time
}

#[test]
fn killed_at_fifty_moments_a_run_ends_as_if_unbroken() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(dir.path(), 25);
    let started = Instant::now();
    run(bench(dir.path()).arg("run").arg(&scenario).args(["--no-report", "--out", "unbroken"])).expect(0);
    let whole = started.elapsed().as_millis() as u64;
    let unbroken = only_run(&dir.path().join("unbroken"));
    journal_is_sound(&unbroken, 0, 0);
    let expected = comparable(&unbroken);
    assert_eq!((expected["samples.csv"].len(), expected["cells.csv"].len()), (27, 3));
    assert!(expected["cells.csv"].iter().all(|c| c["status"] == "ok" && c["launches"] == "3" && c["ttft_ms"] == "5"));

    // The whole run, more often its first moments (plan, journal, manifest) and its last (tables).
    let mut random = Random(20_240_229);
    // Three times as many as needed: on a machine that got quicker meanwhile, a late moment finds a run that is over.
    let mut moments: Vec<Duration> = (0..3 * KILLS as u64)
        .map(|i| match i % 5 {
            0 => random.below(60),
            1 => (whole + random.below(70)).saturating_sub(60),
            _ => random.below(whole),
        })
        .map(Duration::from_millis)
        .collect();
    let mut work = Vec::new();
    while let Some(first) = moments.pop() {
        let mut killed = Killed { seed: work.len(), moments: vec![first] };
        if work.len() % 3 == 2 {
            killed.moments.extend(moments.pop());
        }
        work.push(killed);
    }
    let (next, in_time) = (AtomicUsize::new(0), Mutex::new(0));
    // Two at a time, each in a folder with its own cache, for the sake of the clock on the wall.
    thread::scope(|scope| {
        for worker in 0..2 {
            let (work, next, in_time, expected, scenario) = (&work, &next, &in_time, &expected, &scenario);
            let dir = dir.path().join(format!("worker-{worker}"));
            fs::create_dir(&dir).unwrap();
            scope.spawn(move || {
                while let Some(killed) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if *in_time.lock().unwrap() >= KILLS {
                        break;
                    }
                    *in_time.lock().unwrap() += experiment(&dir, scenario, expected, killed);
                }
            });
        }
    });
    let in_time = in_time.into_inner().unwrap();
    assert!(in_time >= KILLS, "only {in_time} kills met a living run: the moments are badly spread");
    // The orphans of the killed runs end by themselves or are ended by the resume: here all of them have to be gone.
    wait_until("the orphans are gone", || processes_with(&dir.path().display().to_string()).is_empty());
}

/// Starts a run whose queries take a while, and waits for the first finished launch and the begin of the next.
fn under_way(dir: &Path, scenario: &Path) -> (std::process::Child, PathBuf) {
    let mut command = bench(dir);
    let child = command.arg("run").arg(scenario).args(["--no-report"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = dir.join("results");
    wait_until("the second launch begins", || {
        let Some(run) = fs::read_dir(&out).ok().and_then(|mut d| d.next()) else { return false };
        let text = fs::read_to_string(run.unwrap().path().join("journal.jsonl")).unwrap_or_default();
        text.matches("\"launch_begin\"").count() >= 2
    });
    (child, only_run(&out))
}

fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_killed_runs_orphan_is_ended_by_the_resume() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, run_dir) = under_way(dir.path(), &scenario(dir.path(), 3000));
    let here = dir.path().display().to_string();
    wait_until("the runner runs", || processes_with(&here).iter().any(|p| p.contains("runner.py")));
    let runner_pid: String = processes_with(&here).into_iter().find(|p| p.contains("runner.py --pace")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // The agent does its duty without us.
    assert!(processes_with(&here).iter().any(|p| p.contains("bench-agent")), "the test has no orphan to look for");
    let mut resumed = bench(dir.path());
    resumed.arg("run").arg("--resume").arg(&run_dir).arg("--no-report").stdout(Stdio::null()).stderr(Stdio::null());
    let mut resumed = resumed.spawn().unwrap();
    wait_until("the next launch begins", || {
        let text = fs::read_to_string(run_dir.join("journal.jsonl")).unwrap();
        text.matches("\"launch_begin\"").count() >= 3
    });
    let pid = runner_pid.split(':').next().unwrap();
    assert!(!processes_with(&here).iter().any(|p| p.starts_with(&format!("{pid}:"))), "the orphan runs beside the next launch");
    signal(resumed.id(), "-INT");
    assert_eq!(resumed.wait().unwrap().code(), Some(130));
    assert_eq!(processes_with(&here), [""; 0]);
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_how_to_go_on() {
    for (name, pid_signal) in [("INT", "-INT"), ("TERM", "-TERM")] {
        let dir = tempfile::tempdir().unwrap();
        let scenario = scenario(dir.path(), 400);
        let (child, run_dir) = under_way(dir.path(), &scenario);
        signal(child.id(), pid_signal);
        let ran = finish(child).expect(130);
        let resume = format!("bench run --resume {}", run_dir.strip_prefix(dir.path()).unwrap().display());
        let ran = ran.says(&["interrupted", &resume]);
        assert!(!ran.stderr.contains("panicked"), "{name}: {}", ran.stderr);
        assert_eq!(processes_with(&dir.path().display().to_string()), [""; 0], "{name}: the runner was not ended");

        // Tables are there, with what was measured and with a row for every cell.
        let cells = table(&run_dir, "cells.csv");
        let launches: u32 = cells.iter().map(|c| c["launches"].parse::<u32>().unwrap()).sum();
        assert_eq!((cells.len(), launches), (3, 1), "{name}: {cells:?}");
        for cell in cells.iter().filter(|c| c["launches"] == "0") {
            assert_eq!((cell["status"].as_str(), cell["reason"].as_str()), ("skipped", "not measured before the run ended"), "{name}");
        }
        assert_eq!(table(&run_dir, "samples.csv").len(), 3);

        run(bench(dir.path()).arg("run").arg("--resume").arg(&run_dir).arg("--no-report")).expect(0);
        journal_is_sound(&run_dir, 1, 1);
        let segments: Vec<String> = table(&run_dir, "launches.csv").iter().map(|l| l["segment"].clone()).collect();
        assert_eq!(segments.iter().filter(|s| *s == "0").count(), 1);
        assert_eq!(segments.iter().filter(|s| *s == "1").count(), 8);
    }
}

#[test]
fn a_run_folder_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (child, run_dir) = under_way(dir.path(), &scenario(dir.path(), 400));
    let second = run(bench(dir.path()).arg("run").arg("--resume").arg(&run_dir).arg("--no-report")).expect(2);
    second.says(&["in use by another bench process"]);
    signal(child.id(), "-INT");
    finish(child).expect(130);
}

/// A finished run of one cell.
fn finished(dir: &Path) -> (PathBuf, PathBuf) {
    let scenario = Scenario { launches: 2, ..Scenario::default() }.write(dir);
    run(bench(dir).arg("run").arg(&scenario).arg("--no-report")).expect(0);
    (scenario, only_run(&dir.join("results")))
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
}

#[test]
fn what_has_changed_since_is_refused_with_words() {
    let dir = tempfile::tempdir().unwrap();
    let (scenario, run_dir) = finished(dir.path());
    let resume = || {
        let mut command = bench(dir.path());
        command.arg("run").arg("--resume").arg(&run_dir).arg("--no-report");
        command
    };
    let before = comparable(&run_dir);
    // Nothing changed: there is nothing left to do, and saying the scenario again is allowed.
    run(&mut resume()).expect(0);
    run(bench(dir.path()).arg("run").arg(&scenario).arg("--resume").arg(&run_dir).arg("--no-report")).expect(0);
    let events_before = journal(&run_dir);
    assert_eq!(events(&events_before, "launch_begin").count(), 2, "a finished run was measured again");
    let done: Vec<u64> = events(&events_before, "ready").map(|e| e["done"].as_u64().unwrap()).collect();
    assert_eq!(done, [0, 2, 2], "launches that a resume begins with");
    assert_eq!(comparable(&run_dir), before);

    let manifest = run_dir.join("manifest.json");
    let original = fs::read(&manifest).unwrap();
    for (pointer, value, words) in [
        ("/device/cpu", Value::from("another processor"), "the device changed"),
        ("/device/kernel", Value::from("1.0"), "the device changed"),
        ("/python_lock", Value::from("0123456789abcdef"), "the lock of the Python environment changed"),
        ("/scenario/sha256", Value::from("00"), "the scenario changed"),
        ("/runtimes/standin/ready/version", Value::from("another version"), "the runtimes changed"),
    ] {
        edit(&manifest, |m| *m.pointer_mut(pointer).expect(pointer) = value);
        run(&mut resume()).expect(2).says(&["can't be resumed", words, "start a new run"]);
        fs::write(&manifest, &original).unwrap();
    }
    assert_eq!(journal(&run_dir), events_before, "a refused resume leaves the run as it is");

    fs::write(&scenario, fs::read_to_string(&scenario).unwrap().replace("queries = 2", "queries = 3")).unwrap();
    let changed = run(bench(dir.path()).arg("run").arg(&scenario).arg("--resume").arg(&run_dir).arg("--no-report"));
    changed.expect(2).says(&["is not the scenario of this run any more"]);
    // The stored plan does not need the file.
    fs::remove_file(&scenario).unwrap();
    run(&mut resume()).expect(0);

    run(bench(dir.path()).arg("run").arg("--resume").arg("results/no-such-run")).expect(2).says(&["no-such-run"]);
    run(bench(dir.path()).arg("run").arg("--resume").arg(dir.path())).expect(2).says(&["is not a run folder"]);
    fs::write(run_dir.join("plan.toml"), "format_version = 99\n").unwrap();
    run(&mut resume()).expect(2).says(&["plan.toml"]);
}

#[test]
fn the_report_makes_the_tables_of_what_the_journal_knows() {
    let dir = tempfile::tempdir().unwrap();
    let (_, run_dir) = finished(dir.path());
    let report = || {
        run(bench(dir.path()).arg("report").arg(&run_dir)).expect(0);
        (table(&run_dir, "cells.csv").remove(0), table(&run_dir, "launches.csv"))
    };
    let id = table(&run_dir, "cells.csv")[0]["cell"].clone();
    let record = |launch: u32| run_dir.join(format!("logs/local/{id}/measure-{launch:03}/launch.json"));
    let derive = || {
        fs::remove_file(run_dir.join("cells.csv")).unwrap();
        report()
    };

    // A later segment that could not prepare the cell, and was killed: what was measured counts, and the tables are made again.
    let begin = serde_json::json!({"v": 1, "utc": "", "event": "run_begin", "run": "r", "scenario": "s", "segment": 1, "folder": "f"});
    let failure = serde_json::json!({"kind": "infra", "message": "no disk"});
    let failed = serde_json::json!({"v": 1, "utc": "", "event": "cell_failed", "cell": id, "failure": failure});
    let journal = run_dir.join("journal.jsonl");
    let known = fs::read_to_string(&journal).unwrap();
    fs::write(run_dir.join("cells.csv"), "cell\n").unwrap();
    thread::sleep(Duration::from_millis(20));
    fs::write(&journal, format!("{known}{begin}\n{failed}\n")).unwrap();
    let (cell, _) = report();
    let of = |cell: &Row, columns: [&str; 5]| columns.map(|c| cell[c].clone());
    assert_eq!(of(&cell, ["status", "reason", "launches", "ttft_ms", "ttft_ms_coverage"]), ["ok", "", "2", "5", "0.5"]);

    // The second launch is lost: one value has no interval, and the first load is kept apart.
    let failure = |kind: &str| serde_json::json!({"kind": kind, "message": "words", "hint": null});
    edit(&record(1), |r| {
        (r["status"], r["failure"]) = ("failed".into(), failure("infra"));
        r["steps"][0]["done"] = Value::Null;
    });
    let (cell, launches) = derive();
    assert_eq!(of(&cell, ["status", "ttft_ms", "ttft_ms_lo", "ttft_ms_coverage", "load_ms"]), ["ok", "5", "", "", ""]);
    assert!(cell["absent"].contains("load_ms=only the first launch after staging"), "{cell:?}");
    assert!(launches[0]["wall_ms"].parse::<f64>().unwrap() > 0.0 && launches[1]["wall_ms"].is_empty());

    // A launch that a check contradicts takes the whole cell out.
    edit(&record(1), |r| (r["status"], r["failure"]) = ("unverified".into(), failure("verify")));
    let (cell, _) = derive();
    assert_eq!(of(&cell, ["status", "launches", "ttft_ms", "decode_tok_s", "peak_mem_mb"]), ["unverified", "1", "", "", ""]);
}

#[test]
fn retry_failed_tries_again_what_failed_for_its_own_reasons() {
    let dir = tempfile::tempdir().unwrap();
    // A runner that fails as long as a file is there: the cell's failure is its own, then it is mended.
    let (broken, slow) = (dir.path().join("broken"), dir.path().join("slow"));
    fs::write(&broken, "").unwrap();
    let script = dir.path().join("engine.sh");
    let text = format!(
        "#!/bin/sh\nif [ -e {} ]; then echo the engine is broken >&2; exit 9; fi\nif [ -e {} ]; then set -- --pace 3000 \"$@\"; fi\nexec python3 {} \"$@\"\n",
        broken.display(),
        slow.display(),
        runner().display()
    );
    fs::write(&script, text).unwrap();
    let command = vec!["sh".to_owned(), script.display().to_string()];
    let scenario = Scenario { command, launches: 2, ..Scenario::default() }.write(dir.path());
    run(bench(dir.path()).arg("run").arg(&scenario).arg("--no-report")).expect(6);
    let run_dir = only_run(&dir.path().join("results"));
    fs::remove_file(&broken).unwrap();
    let resume = |more: &[&str]| run(bench(dir.path()).arg("run").arg("--resume").arg(&run_dir).arg("--no-report").args(more));
    resume(&[]).expect(6);
    assert_eq!(events(&journal(&run_dir), "launch_begin").count(), 1, "a runtime failure is not tried again unasked");

    // An attempt that is stopped leaves the failure on record.
    fs::write(&slow, "").unwrap();
    let mut stopped = bench(dir.path());
    stopped.arg("run").arg("--resume").arg(&run_dir).args(["--no-report", "--retry-failed"]);
    let child = stopped.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the launch is tried again", || events(&journal(&run_dir), "launch_begin").count() >= 2);
    signal(child.id(), "-INT");
    finish(child).expect(130);
    let cells = table(&run_dir, "cells.csv");
    assert_eq!((cells[0]["status"].as_str(), cells[0]["failure_kind"].as_str()), ("failed", "runtime"), "{:?}", cells[0]);
    assert_eq!(table(&run_dir, "launches.csv").len(), 1);
    fs::remove_file(&slow).unwrap();

    resume(&["--retry-failed"]).expect(0);
    assert!(glob::glob(&format!("{}/logs/*/*/*.again", run_dir.display())).unwrap().next().is_none());
    let cells = table(&run_dir, "cells.csv");
    assert_eq!((cells[0]["status"].as_str(), cells[0]["launches"].as_str(), cells[0]["reason"].as_str()), ("ok", "2", ""));
    assert_eq!(table(&run_dir, "launches.csv").len(), 2);
}

#[test]
fn infrastructure_failures_are_tried_again_by_a_resume() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("engine");
    fs::write(&program, format!("#!/bin/sh\nexec python3 {} \"$@\"\n", runner().display())).unwrap();
    let scenario = Scenario { command: vec![program.display().to_string()], ..Scenario::default() }.write(dir.path());
    // Not executable yet: the command could not be started, which says nothing about the engine.
    run(bench(dir.path()).arg("run").arg(&scenario).arg("--no-report")).expect(6);
    let run_dir = only_run(&dir.path().join("results"));
    assert_eq!(table(&run_dir, "cells.csv")[0]["failure_kind"], "infra");
    assert!(Command::new("chmod").arg("+x").arg(&program).status().unwrap().success());
    run(bench(dir.path()).arg("run").arg("--resume").arg(&run_dir).arg("--no-report")).expect(0);
    assert_eq!(table(&run_dir, "cells.csv")[0]["status"], "ok");
}

#[test]
fn a_torn_journal_loses_its_last_line_only() {
    let dir = tempfile::tempdir().unwrap();
    let (_, run_dir) = finished(dir.path());
    let before = comparable(&run_dir);
    let path = run_dir.join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    // Torn in the middle of the last launch's end: that launch alone is measured again.
    let at = text.rfind("\"event\":\"launch_end\"").unwrap();
    fs::write(&path, &text[..at + 30]).unwrap();
    let ran = run(bench(dir.path()).arg("run").arg("--resume").arg(&run_dir).arg("--no-report")).expect(0);
    ran.says(&["an unfinished last line was dropped"]);
    let after = journal(&run_dir);
    let ends: Vec<String> = events(&after, "launch_end").map(key).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert_ne!(ends[0], ends[1]);
    assert_eq!(comparable(&run_dir), before);

    // A record that is not whole is measured again too, and a foreign line is named and passed over.
    let record = glob::glob(&format!("{}/logs/*/*/measure-001/launch.json", run_dir.display())).unwrap().flatten().next().unwrap();
    let bytes = fs::read(&record).unwrap();
    fs::write(&record, &bytes[..bytes.len() / 2]).unwrap();
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"v\":1,\"utc\":\"x\",\"event\":\"of_a_later_version\"}\n");
    fs::write(&path, text).unwrap();
    run(bench(dir.path()).arg("run").arg("--resume").arg(&run_dir).arg("--no-report")).expect(0);
    assert_eq!(comparable(&run_dir), before);
    let warnings = fs::read_to_string(run_dir.join("manifest.json")).unwrap();
    assert!(warnings.contains("not an event of this version"), "{warnings}");
}

/// Files of a run folder that are damaged: neither a resume nor a report measures or writes over what is there.
#[test]
fn a_damaged_folder_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario { launches: 3, ..Scenario::default() }.write(dir.path());
    run(bench(dir.path()).args(["run", "--no-report"]).arg(&scenario)).expect(0);
    let run_dir = only_run(&dir.path().join("results"));
    let file = |name: &str| run_dir.join(name);
    let resume = || run(bench(dir.path()).args(["run", "--no-report", "--resume"]).arg(&run_dir));
    let report = || run(bench(dir.path()).arg("report").arg(&run_dir));
    let cells = fs::read(file("cells.csv")).unwrap();
    let journal = fs::read(file("journal.jsonl")).unwrap();

    // The first launch is still named.
    let kept =
        String::from_utf8(journal.clone()).unwrap().split_inclusive('\n').take_while(|l| !l.contains("\"launch\":1")).collect::<String>();
    assert!(kept.contains("\"launch\":0"), "{kept}");
    for (text, lost) in [(&b""[..], "3 launches"), (b"\0\0\n\xff{", "3 launches"), (kept.as_bytes(), "2 launches")] {
        fs::write(file("journal.jsonl"), text).unwrap();
        resume().expect(2).says(&["journal.jsonl: does not name", lost, "put it back"]);
        report().expect(0).says(&["journal.jsonl: does not name", lost, "the tables are read as they are"]);
        assert_eq!(fs::read(file("cells.csv")).unwrap(), cells, "made anew of a journal that was cut");
        assert_eq!(fs::read(file("journal.jsonl")).unwrap(), text, "changed");
    }
    fs::remove_file(file("cells.csv")).unwrap();
    report().expect(2).says(&["journal.jsonl: does not name 2 launches"]);
    fs::write(file("journal.jsonl"), &journal).unwrap();

    // The way out that is named is one.
    for damaged in [&b""[..], b"format_version,run,dev", b"a,b\n1\n", b"a\n\xff\n"] {
        fs::write(file("cells.csv"), damaged).unwrap();
        let said = report().expect(2);
        let remedy = format!("remove {0}/cells.csv, and `bench report {0}` makes all tables anew", run_dir.display());
        assert!(said.stderr.contains(&remedy) && said.stderr.contains("can't be read as a table"), "{}", said.stderr);
        fs::remove_file(file("cells.csv")).unwrap();
        report().expect(0);
        assert_eq!(fs::read(file("cells.csv")).unwrap(), cells);
    }

    let manifest = fs::read(file("manifest.json")).unwrap();
    fs::remove_file(file("manifest.json")).unwrap();
    resume().expect(2).says(&["manifest.json: is missing", "put it back"]);
    fs::create_dir(file("manifest.json")).unwrap();
    report().expect(2).says(&["manifest.json: is no regular file: put the file back"]);
    fs::remove_dir(file("manifest.json")).unwrap();
    fs::write(file("manifest.json"), "{\"run\": ").unwrap();
    let page = report().expect(0).stdout;
    let page = fs::read_to_string(dir.path().join(page.trim())).unwrap();
    assert!(page.contains("Unknown: manifest.json can't be read.") && !page.contains("The manifest names no runtimes."));
    fs::write(file("manifest.json"), &manifest).unwrap();

    fs::write(file("plan.toml"), format!("format_version = 1\n{}", "x".repeat(1 << 20))).unwrap();
    let said = resume().expect(2).says(&["plan.toml: is damaged (line 2: ", "put the file back"]);
    assert!(said.stderr.len() < 1000, "{} bytes", said.stderr.len());

    // Handed on without what tables are made of, as the committed example is.
    for name in ["journal.jsonl", "plan.toml"] {
        fs::remove_file(file(name)).unwrap();
    }
    let support = fs::read(file("support.csv")).unwrap();
    fs::write(file("support.csv"), [&support[..support.len() - 3], b",\"half a li"].concat()).unwrap();
    report().expect(0);
    fs::write(file("support.csv"), [&support[..], b"1,2\n"].concat()).unwrap();
    let lines = String::from_utf8(support.clone()).unwrap().lines().count() + 1;
    let said = report().expect(2).says(&[&format!("line {lines} has 2 values for "), "put the file back, or remove it"]);
    assert!(!said.stderr.contains("journal from") && !said.stderr.contains("truncate_ragged") && !said.stderr.contains("infer_schema"));
    fs::remove_file(file("support.csv")).unwrap();
    report().expect(0);
    fs::remove_file(file("cells.csv")).unwrap();
    report().expect(2).says(&["cells.csv can't be read: put the file back: ", "does not have plan.toml, journal.jsonl and logs/"]);
}
