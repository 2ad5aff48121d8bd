//! A/B runs from the command line: what is interleaved, what is said, and what a kill leaves.

#[path = "device/harness.rs"]
mod harness;
mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use support::{Scenario, bench, events, finish, journal, run, runner, table, wait_until};

const CELLS: usize = 2;

/// The two run folders in `out`: side A, side B.
fn both(out: &Path) -> [PathBuf; 2] {
    let mut all: Vec<PathBuf> = fs::read_dir(out).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort_by_key(|run| fs::read_to_string(run.join("plan.toml")).unwrap().contains("side = \"b\""));
    all.try_into().unwrap_or_else(|all| panic!("not two run folders: {all:?}"))
}

/// Writes `name.toml` in a folder: a stand-in with further options.
fn scenario(dir: &Path, name: &'static str, launches: u32, options: &[&str]) -> PathBuf {
    let program = ["python3".to_owned(), runner().display().to_string()];
    let command = program.into_iter().chain(options.iter().map(|o| (*o).to_owned())).collect();
    Scenario { name, command, launches, variants: vec!["one", "two"], ..Scenario::default() }.write(dir)
}

/// A launch as its record has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Launch {
    start_ns: u64,
    side: usize,
    cell: String,
    number: u64,
    segment: u64,
}

/// All launches of both sides in the order in which they were made.
fn launches(runs: &[PathBuf; 2]) -> Vec<Launch> {
    let mut all = Vec::new();
    for (side, run) in runs.iter().enumerate() {
        for path in glob::glob(&format!("{}/logs/*/*/measure-*/launch.json", run.display())).unwrap().flatten() {
            let record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(record["status"], "ok", "{}", path.display());
            all.push(Launch {
                start_ns: record["steps"][0]["done"]["start_ns"].as_u64().unwrap(),
                side,
                cell: record["cell"].as_str().unwrap().to_owned(),
                number: record["launch"].as_u64().unwrap(),
                segment: record["segment"].as_u64().unwrap(),
            });
        }
    }
    all.sort_by_key(|launch| launch.start_ns);
    all
}

/// Every launch has its partner right before or after it, and each side begins as often as the other.
fn are_interleaved(all: &[Launch], launches: usize) {
    assert_eq!(all.len(), 2 * CELLS * launches);
    let mut first = std::collections::BTreeMap::<&str, [usize; 2]>::new();
    for pair in all.chunks(2) {
        let [one, other] = pair else { panic!("half a pair: {pair:?}") };
        assert_eq!((&one.cell, one.number, one.segment), (&other.cell, other.number, other.segment), "no partners");
        assert_eq!(one.side + other.side, 1, "{one:?} {other:?}");
        first.entry(&one.cell).or_default()[one.side] += 1;
    }
    assert_eq!(first.len(), CELLS);
    assert!(first.values().all(|[a, b]| a.abs_diff(*b) <= 1), "{first:?}");
}

/// The comparison at the end of a run with `--format json`.
fn comparison(stdout: &str) -> Value {
    let events = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.into_iter().find(|e| e["event"] == "ab").unwrap_or_else(|| panic!("no comparison in {stdout}"))
}

fn row<'a>(comparison: &'a Value, metric: &'a str) -> impl Iterator<Item = &'a Value> {
    comparison["rows"].as_array().unwrap().iter().filter(move |row| row["metric"] == metric)
}

#[test]
fn a_tenth_is_found_on_a_device_that_gets_half_as_slow_again_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let drift = dir.path().join("launches").display().to_string();
    let a = scenario(dir.path(), "known", 10, &["--drift", &drift]);
    let b = scenario(dir.path(), "tried", 10, &["--drift", &drift, "--slower", "1.1"]);
    let ran = run(bench(dir.path()).arg("run").arg("--ab").args([&a, &b]).args(["--format", "json"])).expect(0);
    let runs = both(&dir.path().join("results"));
    are_interleaved(&launches(&runs), 10);

    let found = comparison(&ran.stdout);
    for metric in ["ttft_ms", "decode_tok_s"] {
        assert_eq!(row(&found, metric).count(), CELLS);
        for row in row(&found, metric) {
            assert_eq!((&row["verdict"], &row["pairs"]), (&"regressed".into(), &10.into()), "{row}");
            // A tenth longer, 1 % drift and 1.4 % noise a pair: eight errors of the mean away from nothing.
            let (slower, mde) = (row["ratio"].as_f64().unwrap(), row["mde"].as_f64().unwrap());
            let slower = if metric == "ttft_ms" { slower } else { 1.0 / slower };
            assert!((1.08..1.12).contains(&slower) && (0.02..0.05).contains(&mde), "{row}");
        }
    }
    // The launches of one side by themselves vary far more than that: 40 launches of 1 % each.
    let own: Vec<f64> = table(&runs[0], "cells.csv").iter().map(|c| c["ttft_ms_mad"].parse::<f64>().unwrap() / 5.0).collect();
    assert!(own.iter().all(|mad| *mad > 0.05), "{own:?}");
    assert_eq!(journal(&runs[0]).last().unwrap()["event"], "run_end");
    // `bench compare` says the same again.
    let again = run(bench(dir.path()).arg("compare").args(&runs).args(["--format", "json", "--fail-on", "regressed"])).expect(10);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["rows"], found["rows"]);
    // Both manifests say whose partner a run is; one page has both.
    let manifests = runs.clone().map(|run| serde_json::from_slice::<Value>(&fs::read(run.join("manifest.json")).unwrap()).unwrap());
    assert_eq!(manifests[0]["ab"]["partner"], manifests[1]["run"]);
    assert_eq!((&manifests[0]["ab"]["side"], &manifests[1]["ab"]["side"]), (&"a".into(), &"b".into()));
    let page = dir.path().join("reports").join(runs[0].file_name().unwrap()).join("index.html");
    assert!(page.is_file(), "{}", page.display());
}

#[test]
fn a_side_that_differs_in_nothing_is_not_called_worse() {
    let dir = tempfile::tempdir().unwrap();
    let drift = dir.path().join("launches").display().to_string();
    let file = scenario(dir.path(), "same", 8, &["--drift", &drift]);
    fs::write(&file, fs::read_to_string(&file).unwrap() + "[ab]\n").unwrap();
    let ran = run(bench(dir.path()).arg("run").arg(&file).arg("--no-report")).expect(0);
    are_interleaved(&launches(&both(&dir.path().join("results"))), 8);
    let table = ran.stderr.split("ttft_ms  pc").nth(1).and_then(|text| text.split("\n\n").next()).unwrap_or_default();
    let lines: Vec<&str> = table.lines().filter(|l| l.contains("8 pairs, detect")).collect();
    assert_eq!(lines.len(), CELLS, "{}", ran.stderr);
    assert!(lines.iter().all(|l| l.contains("unchanged") || l.contains("undecided")), "{lines:?}");
    // Lines of the two sides can be told apart.
    for side in ["a  ", "b  "] {
        assert!(ran.stderr.lines().any(|l| l.starts_with(side) && l.contains("measure 7")), "{}", ran.stderr);
    }
}

#[test]
fn killed_between_partners_both_are_measured_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = scenario(dir.path(), "killed", 3, &["--pace", "40"]);
    fs::write(&file, fs::read_to_string(&file).unwrap() + "[ab.measure]\nqueries = 3\n").unwrap();
    let mut command = bench(dir.path());
    let mut child = command.arg("run").arg(&file).args(["--no-report"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let out = dir.path().join("results");
    // After the fifth launch, and so within the third pair.
    let ended = || {
        let runs = glob::glob(&format!("{}/*/journal.jsonl", out.display())).unwrap().flatten();
        runs.map(|path| fs::read_to_string(path).unwrap().matches("\"launch_end\"").count()).sum::<usize>()
    };
    wait_until("the fifth launch ends", || ended() >= 5);
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = both(&out);
    let before: Vec<Launch> = launches(&runs);
    assert_eq!(before.len() % 2, 1, "killed between pairs: the test is too slow");

    // Either side goes on with both.
    run(bench(dir.path()).arg("run").arg("--resume").arg(&runs[1]).arg("--no-report")).expect(0);
    let after = launches(&runs);
    are_interleaved(&after, 3);
    let again = |of: &[Launch], segment: u64| of.iter().filter(|l| l.segment == segment).count();
    assert_eq!((again(&after, 0), again(&after, 1)), (before.len() - 1, 2 * CELLS * 3 - before.len() + 1));
    // Settings of one launch may differ.
    let queries = runs.clone().map(|run| table(&run, "samples.csv").len());
    assert_eq!(queries, [CELLS * 3 * 3, CELLS * 3 * 4]);

    // Without its other half a side can't go on, and nothing is touched.
    fs::rename(&runs[0], dir.path().join("elsewhere")).unwrap();
    run(bench(dir.path()).arg("run").arg("--resume").arg(&runs[1]).arg("--no-report")).expect(2).says(&["one side of an A/B run"]);
}

#[test]
fn a_cell_that_fails_on_one_side_costs_no_more_launches_of_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let a = scenario(dir.path(), "a", 3, &[]);
    let b = dir.path().join("b.toml");
    // The stand-in's variant `exit-3` fails; it is the partner of `two`, the only other variant that is left.
    let text = fs::read_to_string(&a).unwrap();
    fs::write(&a, text.replace("\"one\", \"two\"", "\"two\"")).unwrap();
    fs::write(&b, text.replace("\"one\", \"two\"", "\"exit-3\"")).unwrap();
    let ran = run(bench(dir.path()).arg("run").arg("--ab").args([&a, &b]).arg("--no-report")).expect(6);
    let runs = both(&dir.path().join("results"));
    let ended = runs.clone().map(|run| events(&journal(&run), "launch_end").count());
    assert!(ended[0] <= 1 && ended[1] == 1, "{ended:?}");
    let stops = runs.map(|run| events(&journal(&run), "cell_done").map(|e| e["stop"].as_str().unwrap().to_owned()).collect::<Vec<_>>());
    assert_eq!(stops, [["partner"], ["failed"]]);
    ran.says(&["Nothing was compared."]);
}

#[test]
fn a_side_without_its_program_skips_the_other_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = scenario(dir.path(), "half", 2, &[]);
    fs::write(&file, fs::read_to_string(&file).unwrap() + "[ab.backends.standin]\ncommand = [\"no-such-program-anywhere\"]\n").unwrap();
    run(bench(dir.path()).arg("run").arg(&file).arg("--no-report")).expect(5).says(&["no-such-program-anywhere"]);
    let [a, b] = both(&dir.path().join("results")).map(|run| table(&run, "cells.csv"));
    for (rows, words) in [(a, "its partner on the other side"), (b, "no-such-program-anywhere")] {
        assert_eq!(rows.len(), CELLS);
        assert!(rows.iter().all(|c| c["status"] == "skipped" && c["reason"].contains(words)), "{rows:?}");
    }
}

/// What `bench gate --confirm` does: cells of a run from another day, beside those of today.
#[test]
fn two_earlier_runs_are_measured_again_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let old = scenario(dir.path(), "night", 2, &["--slower", "1.2"]);
    run(bench(dir.path()).arg("run").arg(&old).args(["--no-report", "--out", "old"])).expect(0);
    // In another place and ambient, with other repetitions: today's hold.
    let new = scenario(dir.path(), "night", 3, &[]);
    fs::write(&new, fs::read_to_string(&new).unwrap() + "[environment]\nambient = \"22C\"\n").unwrap();
    run(bench(dir.path()).arg("run").arg(&new).args(["--no-report", "--out", "new"])).expect(0);
    let (old, new) = (support::only_run(&dir.path().join("old")), support::only_run(&dir.path().join("new")));
    let cell = table(&new, "cells.csv")[0]["cell"].clone();
    let before = fs::read(old.join("manifest.json")).unwrap();
    let only = format!("cell={cell}");
    run(bench(dir.path()).arg("run").arg("--ab").args([&old, &new]).args(["--no-report", "--only", &only])).expect(0);
    let runs = both(&dir.path().join("results"));
    let ttft = runs.clone().map(|run| table(&run, "cells.csv").iter().map(|c| c["ttft_ms"].clone()).collect::<Vec<_>>());
    assert_eq!(ttft, [["6"], ["5"]]);
    assert_eq!(launches(&runs).len(), 2 * 3);
    assert_eq!(fs::read(old.join("manifest.json")).unwrap(), before);
    // What it was made with is not here any more.
    let text = fs::read_to_string(old.join("plan.toml")).unwrap();
    fs::write(old.join("plan.toml"), text.replace("\"python3\"", "\"no-such-program-anywhere\"")).unwrap();
    let ran =
        run(bench(dir.path()).arg("run").arg("--ab").args([&old, &new]).args(["--no-report", "--only", &only, "--out", "third"])).expect(5);
    ran.says(&["warning: night: its run had standin", "here is nothing, the program no-such-program-anywhere is missing"]);
    run(bench(dir.path()).arg("run").arg("--ab").args([dir.path(), &new])).expect(2).says(&["manifest.json"]);
}

#[test]
fn what_the_device_shares_must_be_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let a = scenario(dir.path(), "a", 2, &[]);
    let b = scenario(dir.path(), "b", 3, &[]);
    run(bench(dir.path()).arg("run").arg("--ab").args([&a, &b])).expect(3).says(&["[measure] repetitions", "the same in both"]);
    fs::write(&a, fs::read_to_string(&a).unwrap() + "[ab.matrx]\nvariant = \"x\"\n").unwrap();
    // A mistake in [ab] is shown where it stands.
    let line = fs::read_to_string(&a).unwrap().lines().position(|l| l == "[ab.matrx]").unwrap() + 1;
    run(bench(dir.path()).arg("check").arg(&a)).expect(3).says(&["unknown key", "matrx", &format!("a.toml:{line}:")]);
    assert!(!dir.path().join("results").exists());
}

/// What a plan says before anything is measured: of two files, by the id of either side, and what `check` counts.
#[test]
fn a_plan_of_two_and_the_cells_of_either_side() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &'static str, variants: &[&'static str]| {
        Scenario { name, launches: 2, variants: variants.to_vec(), ..Scenario::default() }.write(dir.path())
    };
    let (a, b) = (write("a", &["one"]), write("b", &["two"]));
    let plan = |more: &[&str]| run(bench(dir.path()).args(["plan", "--format", "json", "--ab"]).args([&a, &b]).args(more));
    let found: Value = serde_json::from_str(&plan(&[]).expect(0).stdout).unwrap();
    let cells = found["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &cells[0]["side"], &cells[1]["side"]), (2, &json!("a"), &json!("b")), "{found}");
    // Ids differ where the sides do: that of one side takes its partner along.
    for cell in cells {
        let only = format!("cell={}", cell["cell"].as_str().unwrap());
        let one: Value = serde_json::from_str(&plan(&["--only", &only]).expect(0).stdout).unwrap();
        assert_eq!(one["cells"], found["cells"], "{only}");
    }
    plan(&["--only", "cell=nothing"]).expect(4).says(&["selects none"]);
    run(bench(dir.path()).arg("plan")).expect(2);

    // [ab] in a scenario: `check` counts both sides, as `plan` does.
    let both = write("both", &["one", "two"]);
    let with = |over: &str| {
        let text = fs::read_to_string(&both).unwrap();
        fs::write(&both, format!("{}{over}", text.split("[ab").next().unwrap())).unwrap();
        run(bench(dir.path()).arg("check").arg(&both))
    };
    assert!(with("[ab]\n").expect(0).stdout.ends_with(": ok, 4 cells\n"));
    let ran = with("[ab.matrix]\nvariant = \"two\"\n").expect(0).says(&["both sides have `variant` two", "are left out"]);
    assert!(ran.stdout.ends_with(": ok, 2 cells\n"), "{}", ran.stdout);
    with("[ab.matrix]\nvariant = \"three\"\n").expect(3).says(&["several cells could be its partner"]);
    with("[ab.measure]\nseed = 7\n").expect(3).says(&["the same in both: [measure] seed"]);
    // The doctor looks at what the second side needs.
    with("[ab.backends.standin]\ncommand = [\"no-such-program-anywhere\"]\n").expect(0);
    let ran = run(bench(dir.path()).arg("doctor").arg(&both));
    assert!(ran.stdout.contains("side B: ") && ran.stdout.contains("no-such-program-anywhere"), "{}", ran.stdout);
}

#[test]
fn on_a_phone_too() {
    if !harness::possible() {
        return;
    }
    let (phone, adb, dir) = (harness::Phone::start(), harness::Adbd::start(), tempfile::tempdir().unwrap());
    let libexec = dir.path().join("libexec/x86_64-unknown-linux-musl");
    fs::create_dir_all(&libexec).unwrap();
    fs::copy(harness::agent(), libexec.join("bench-agent")).unwrap();
    fs::copy(runner(), dir.path().join("runner.py")).unwrap();
    let mut connect = Command::new("adb");
    connect.args(["connect", &phone.address]).env("ADB_SERVER_SOCKET", adb.address.to_string());
    assert!(connect.output().unwrap().status.success());
    let command = ["python3", "./runner.py"].map(str::to_owned).to_vec();
    let device = format!("serial = \"{}\"", phone.address);
    let scenario = Scenario { name: "phone", command, launches: 2, device, variants: vec!["one", "two"], ..Scenario::default() };
    let file = scenario.write(dir.path());
    let over = "[ab.backends.standin]\ncommand = [\"python3\", \"./runner.py\", \"--slower\", \"1.1\"]\n";
    fs::write(&file, fs::read_to_string(&file).unwrap() + over).unwrap();
    let mut command = bench(dir.path());
    command.env("ADB_SERVER_SOCKET", adb.address.to_string()).env("BENCH_LIBEXEC", dir.path().join("libexec"));
    let ran = finish(command.arg("run").arg(&file).args(["--no-report"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    ran.expect(0).says(&["the sides of one A/B run", "2 pairs"]);
    let runs = both(&dir.path().join("results"));
    are_interleaved(&launches(&runs), 2);
    // The stand-in's first token comes after 5 ms, a tenth later on side B.
    let ttft = runs.map(|run| table(&run, "cells.csv").iter().map(|c| c["ttft_ms"].clone()).collect::<Vec<_>>());
    assert_eq!(ttft, [["5", "5"], ["5.5", "5.5"]]);
}
