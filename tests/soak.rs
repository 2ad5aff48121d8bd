//! Soaks from the command line to the tables, with a stand-in engine on this computer.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use support::{Row, Scenario, bench, events, finish, journal, number, only_run, run, table, wait_until};

/// A scenario with a soak for the stand-in's variants.
fn scenario(dir: &Path, variants: &[&'static str], soak: &str) -> PathBuf {
    let path = Scenario { name: "soak", variants: variants.to_vec(), ..Scenario::default() }.write(dir);
    let text = fs::read_to_string(&path).unwrap() + "[soak]\n" + soak + "\n";
    fs::write(&path, text).unwrap();
    path
}

fn soaking(dir: &Path, scenario: &Path) -> Command {
    let mut command = bench(dir);
    command.arg("run").arg(scenario).arg("--no-report");
    command
}

fn cell<'a>(rows: &'a [Row], variant: &str) -> &'a Row {
    rows.iter().find(|r| r["cell"].contains(&format!("variant={variant}"))).unwrap_or_else(|| panic!("no {variant}"))
}

fn of<'a>(rows: &'a [Row], variant: &str) -> Vec<&'a Row> {
    rows.iter().filter(|r| r["cell"].contains(&format!("variant={variant}"))).collect()
}

#[test]
fn soaks_of_every_kind() {
    let dir = tempfile::tempdir().unwrap();
    let variants = ["ok", "late-wrong", "late-crash", "late-clock", "deaf"];
    let scenario = scenario(dir.path(), &variants, "duration = \"4s\"\nwindow = \"1s\"");
    // Three of the soaks end early.
    run(&mut soaking(dir.path(), &scenario)).expect(6);
    let folder = only_run(&dir.path().join("results"));
    let (cells, windows) = (table(&folder, "cells.csv"), table(&folder, "soak.csv"));

    // A query takes 0.5 ms of pause, 5 to the first token and 7 gaps of 1 ms: 8 tokens in 12.5 ms.
    let ok = cell(&cells, "ok");
    assert_eq!((ok["soak_ended"].as_str(), ok["status"].as_str()), ("complete", "ok"));
    let rate = number(ok, "soak_tok_s").unwrap();
    assert!(rate > 400.0 && rate <= 640.0 * 1.01, "{rate}");
    let rows = of(&windows, "ok");
    assert!((3..=5).contains(&rows.len()), "{}", rows.len());
    for row in &rows {
        assert_eq!((row["check_tokens"].as_str(), row["answers_changed"].as_str()), ("confirmed", "0"));
        let itl = number(row, "itl_p50_ms").unwrap();
        assert!((itl - 1.0).abs() < 1e-6, "{itl}");
        assert!((number(row, "ttft_p50_ms").unwrap() - 5.0).abs() < 1e-6);
    }
    assert!(number(ok, "soak_s").unwrap() >= 3.9);
    assert!((number(ok, "sustained_ratio").unwrap() - 1.0).abs() < 0.3);
    assert!(ok["soak_absent"].contains("rise_5min=not reached") || ok["soak_absent"].contains("rise_5min=no temperature"));
    // Its figures are in no median, and its queries and tokens in no table.
    assert_eq!((ok["launches"].as_str(), ok["ttft_ms_n"].as_str()), ("1", "1"));
    assert!(table(&folder, "samples.csv").iter().all(|r| r["pass"] == "measure"));
    assert!(table(&folder, "tokens.csv").iter().all(|r| r["pass"] == "measure"));
    let launches = table(&folder, "launches.csv");
    assert_eq!(launches.iter().filter(|r| r["pass"] == "soak").count(), 5);
    // Memory is of the whole soak, whose single queries nobody has kept: what its growth lacks here is time.
    let row = launches.iter().find(|r| r["pass"] == "soak" && r["cell"] == ok["cell"]).unwrap();
    assert!(row["absent"].contains("s of measured queries, 60 s are needed"), "{}", row["absent"]);
    assert!(!row["absent"].contains("no time for each token"), "{}", row["absent"]);

    // Every answer from 1.5 s on is another one than the first to its prompt.
    let rows = of(&windows, "late-wrong");
    assert_eq!(rows[0]["check_tokens"], "confirmed");
    assert_eq!(rows.last().unwrap()["check_tokens"], "contradicted");
    // Its speed is in no figure of the cell; what its heat was would be.
    let wrong = cell(&cells, "late-wrong");
    assert_eq!(
        (wrong["soak_check_tokens"].as_str(), wrong["sustained_ratio"].as_str(), wrong["soak_tok_s"].as_str()),
        ("contradicted", "", "")
    );
    assert!(wrong["soak_absent"].contains("sustained_ratio=the check of its answers contradicts it"), "{}", wrong["soak_absent"]);
    let happened = table(&folder, "soak_events.csv");
    let first = of(&happened, "late-wrong").into_iter().find(|e| e["kind"] == "changed-tokens").expect("an event");
    let t = number(first, "t_s").unwrap();
    assert!((1.2..2.5).contains(&t), "{t}");

    // What a crash left until then counts, and says so.
    let crash = cell(&cells, "late-crash");
    assert!(crash["soak_ended"].starts_with("early: ended by signal 11"), "{}", crash["soak_ended"]);
    assert_eq!((crash["status"].as_str(), of(&windows, "late-crash").len() >= 2), ("ok", true));
    assert_eq!(of(&happened, "late-crash").last().unwrap()["kind"], "end");
    // What was wrong once does not take the time before it away.
    let clock = cell(&cells, "late-clock");
    assert!(clock["soak_ended"].starts_with("early: events.jsonl: "), "{}", clock["soak_ended"]);
    assert!((1.5..3.0).contains(&number(clock, "soak_s").unwrap()), "{clock:?}");
    assert_eq!(of(&windows, "late-clock")[0]["check_tokens"], "confirmed");
    let deaf = cell(&cells, "deaf");
    assert!(deaf["soak_ended"].starts_with("early: the program ended by itself after 0 s of 4 s"), "{}", deaf["soak_ended"]);

    // Telemetry holds changes, and each window what was between them.
    let sampled = table(&folder, "telemetry_windows.csv");
    let rss: Vec<&Row> = of(&sampled, "ok").into_iter().filter(|r| r["name"] == "rss_kb").collect();
    assert!(rss.len() >= 4, "{}", rss.len());
    assert!(rss.iter().any(|r| number(r, "n").unwrap() >= 8.0));
    let telemetry = table(&folder, "telemetry.csv");
    let rows = of(&telemetry, "ok").into_iter().filter(|r| r["pass"] == "soak" && r["name"] == "rss_kb").count();
    assert!((1..=10).contains(&rows), "{rows}");
}

#[test]
fn a_selection_a_first_cell_and_what_the_plan_says() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |soak: &str| {
        let scenario = scenario(dir.path(), &["ok", "deaf"], soak);
        let ran = run(bench(dir.path()).arg("plan").arg(&scenario)).expect(0);
        let json = run(bench(dir.path()).arg("plan").arg(&scenario).args(["--format", "json"])).expect(0);
        (ran.stdout, serde_json::from_str::<serde_json::Value>(&json.stdout).unwrap())
    };
    let (words, json) = plan("duration = \"12h\"\ncells = \"first\"");
    assert!(words.contains("1 soak of 12h after them; the evidence of one takes about "), "{words}");
    assert_eq!(json["soaks"]["cells"].as_array().unwrap().len(), 1);
    assert!(json["expected_s"].as_f64().unwrap() >= 43_200.0);
    let (_, json) = plan("duration = \"30m\"\ncells = [\"variant=deaf\"]");
    assert!(json["soaks"]["cells"][0].as_str().unwrap().contains("variant=deaf"));
    let (words, json) = plan("duration = \"30m\"\ncells = \"backend=nobody\"");
    assert!(words.contains("no soak: `cells` of [soak] selects none") && json["soaks"]["cells"] == serde_json::json!([]), "{words}");
    let (_, json) = plan("duration = \"30m\"\ncells = \"all\"");
    assert_eq!(json["soaks"]["cells"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_wrong_with_a_soak() {
    let dir = tempfile::tempdir().unwrap();
    for (soak, words) in [
        ("window = \"30s\"", "[soak] needs the key `duration`"),
        ("duration = \"10s\"\nwindow = \"30s\"", "`window` is longer than `duration`"),
        ("duration = \"10s\"\ntrip = { npu = \"480C\" }", "`480C` is no temperature to end at"),
        ("duration = \"10s\"\ntrip = { nose = \"48C\" }", "unknown key"),
        ("duration = \"10s\"\ncells = \"backend\"", "selects no cells"),
        ("duration = \"9h\"\nwindow = \"1s\"", "32400 windows"),
    ] {
        let scenario = scenario(dir.path(), &["ok"], soak);
        let ran = run(bench(dir.path()).arg("check").arg(&scenario)).expect(3);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains(words), "{words} in {said}");
    }
}

/// A trip that nothing could obey is refused: here is no zone of a skin.
#[test]
fn a_trip_without_a_zone_is_no_soak() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(dir.path(), &["ok"], "duration = \"2s\"\nwindow = \"1s\"\ntrip = { skin = \"48C\" }");
    run(&mut soaking(dir.path(), &scenario)).expect(0);
    let folder = only_run(&dir.path().join("results"));
    let row = &table(&folder, "cells.csv")[0];
    assert!(row["soak_ended"].starts_with("not run: its trip asks for the temperature of the skin"), "{}", row["soak_ended"]);
    assert_eq!(table(&folder, "soak.csv").len(), 0);
}

fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn resume(dir: &Path, folder: &Path) -> Command {
    let mut command = bench(dir);
    command.args(["run", "--no-report", "--resume"]).arg(folder);
    command
}

/// Waits until the soak of the only run has begun and its engine has answered for a while.
fn wait_for_soak(dir: &Path) -> PathBuf {
    wait_until("a soak", || {
        let Ok(mut entries) = fs::read_dir(dir.join("results")) else { return false };
        let Some(Ok(entry)) = entries.next() else { return false };
        fs::read_to_string(entry.path().join("journal.jsonl")).is_ok_and(|t| t.contains("\"pass\":\"soak\""))
    });
    thread::sleep(Duration::from_millis(1500));
    only_run(&dir.join("results"))
}

#[test]
fn a_killed_bench_loses_no_soak() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(dir.path(), &["ok"], "duration = \"4s\"\nwindow = \"1s\"");
    let mut child = spawn(&mut soaking(dir.path(), &scenario));
    let folder = wait_for_soak(dir.path());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(table_if_there(&folder, "soak.csv"), 0);
    // It is waited for, and not done again.
    run(&mut resume(dir.path(), &folder)).expect(0).says(&["a soak that an earlier bench began is waited for and adopted"]);
    let row = &table(&folder, "cells.csv")[0];
    assert_eq!(row["soak_ended"], "complete");
    assert!(number(row, "soak_s").unwrap() > 3.9);
    let journal = journal(&folder);
    assert_eq!(events(&journal, "launch_begin").filter(|e| e["pass"] == "soak").count(), 2);
    assert_eq!(events(&journal, "launch_end").filter(|e| e["pass"] == "soak").count(), 1);
    // Nothing is left to do.
    run(&mut resume(dir.path(), &folder)).expect(0);
    assert_eq!(table(&folder, "soak.csv").len().to_string(), row["soak_windows"]);
}

fn table_if_there(folder: &Path, name: &str) -> usize {
    if folder.join(name).exists() { table(folder, name).len() } else { 0 }
}

/// Who stops a soak keeps what it has done; only who asks for it gets it again.
#[test]
fn a_stopped_soak_keeps_its_windows() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(dir.path(), &["ok"], "duration = \"60s\"\nwindow = \"1s\"");
    let child = spawn(&mut soaking(dir.path(), &scenario));
    let folder = wait_for_soak(dir.path());
    thread::sleep(Duration::from_millis(1500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    finish(child).expect(130);
    let row = table(&folder, "cells.csv").remove(0);
    assert!(row["soak_ended"].starts_with("early: stopped by the user"), "{}", row["soak_ended"]);
    assert!(number(&row, "soak_windows").unwrap() >= 1.0);
    run(&mut resume(dir.path(), &folder)).expect(6);
    assert_eq!(table(&folder, "cells.csv").remove(0)["soak_windows"], row["soak_windows"]);
}

/// An agent that was killed left no evidence of the end; what was written until then counts.
#[test]
fn a_killed_agent_loses_no_soak() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(dir.path(), &["ok"], "duration = \"60s\"\nwindow = \"1s\"");
    let child = spawn(&mut soaking(dir.path(), &scenario));
    let folder = wait_for_soak(dir.path());
    thread::sleep(Duration::from_millis(1500));
    let mut found = None;
    for entry in walk(&folder.join("logs")) {
        if entry.ends_with("soak-000/agent.pid") {
            found = fs::read_to_string(entry).ok();
        }
    }
    let pid = found.expect("an agent").split_whitespace().next().unwrap().to_owned();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    finish(child).expect(6);
    let row = table(&folder, "cells.csv").remove(0);
    assert!(row["soak_ended"].starts_with("early: bench-agent"), "{}", row["soak_ended"]);
    assert!(number(&row, "soak_windows").unwrap() >= 2.0, "{}", row["soak_windows"]);
}

/// From the end of the program to the record, which takes a while after hours, nothing is thrown away: here there is no room for the events.
#[test]
fn a_soak_that_is_not_recorded_yet_can_be_adopted() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(dir.path(), &["ok"], "duration = \"4s\"\nwindow = \"1s\"");
    let child = spawn(&mut soaking(dir.path(), &scenario));
    let folder = wait_for_soak(dir.path());
    let pid = walk(&folder.join("logs")).into_iter().find(|p| p.ends_with("soak-000/agent.pid")).expect("an agent");
    let place = pid.with_file_name("events.jsonl");
    std::os::unix::fs::symlink("/dev/full", &place).unwrap();
    finish(child).expect(5).says(&["the disk is full"]);
    fs::remove_file(&place).unwrap();
    run(&mut resume(dir.path(), &folder)).expect(0).says(&["a soak that an earlier bench began is waited for and adopted"]);
    let row = &table(&folder, "cells.csv")[0];
    assert_eq!((row["soak_ended"].as_str(), row["status"].as_str()), ("complete", "ok"));
    assert!(number(row, "soak_s").unwrap() > 3.9);
    assert_eq!(events(&journal(&folder), "launch_end").filter(|e| e["pass"] == "soak").count(), 1);
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() { all.extend(walk(&entry.path())) } else { all.push(entry.path()) }
    }
    all
}
