//! Cells that differ in prompt and generated length only share their launches (rule R2): one process answers the queries of all of them.

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use support::{Row, Scenario, bench, events, journal, number, only_run, python::real, root, run, runner, table, wait_until};

/// A scenario of one stand-in with prompts of 8 and 16 tokens.
fn scenario(dir: &Path, name: &'static str, variant: &'static str, launches: u32, options: &[&str], gen_tokens: &str) -> PathBuf {
    let program = ["python3".to_owned(), runner().display().to_string()];
    let command = program.into_iter().chain(options.iter().map(|o| (*o).to_owned())).collect();
    let path = Scenario { name, command, variants: vec![variant], launches, ..Scenario::default() }.write(dir);
    let text = fs::read_to_string(&path).unwrap();
    let text =
        text.replace("prompt-tokens = 16", "prompt-tokens = [8, 16]").replace("gen-tokens = 8", &format!("gen-tokens = {gen_tokens}"));
    fs::write(&path, text).unwrap();
    path
}

/// The records of a run with their folders.
fn records(run: &Path) -> Vec<(PathBuf, Value)> {
    let all = glob::glob(&format!("{}/logs/*/*/measure-*/launch.json", run.display())).unwrap().flatten();
    all.map(|path| (path.parent().unwrap().to_owned(), serde_json::from_slice(&fs::read(&path).unwrap()).unwrap())).collect()
}

fn start_ns(record: &Value) -> u64 {
    record["steps"][0]["done"]["start_ns"].as_u64().unwrap()
}

fn lengths(cell: &str) -> String {
    cell.split('.').filter(|part| part.starts_with(['p', 'g'])).collect::<Vec<_>>().join(".")
}

#[test]
fn one_process_answers_the_queries_of_all_lengths() {
    let dir = tempfile::tempdir().unwrap();
    // 40 ms a query, so that the agent's samples at 10 Hz fall into each cell's part.
    let file = scenario(dir.path(), "shared", "ok", 4, &["--pace", "40"], "[4, 8]");
    let plan = run(bench(dir.path()).arg("plan").arg(&file)).expect(0);
    assert!(plan.stdout.contains("4 cells to run, 0 skipped; 4 launches;"), "{}", plan.stdout);
    run(bench(dir.path()).arg("run").arg(&file).arg("--no-report")).expect(0);
    let run_dir = only_run(&dir.path().join("results"));

    let all = records(&run_dir);
    let processes: BTreeSet<u64> = all.iter().map(|(_, record)| start_ns(record)).collect();
    assert_eq!((all.len(), processes.len()), (16, 4), "four cells of four launches");

    let cells = table(&run_dir, "cells.csv");
    assert_eq!(cells.len(), 4);
    for cell in &cells {
        let of = |column: &str| cell[column].as_str();
        assert_eq!([of("status"), of("check_count"), of("launches"), of("cells_a_launch")], ["ok", "confirmed", "4", "4"], "{cell:?}");
        // By the stand-in's clock: 5 ms to the first token, 1 ms a token.
        assert_eq!([of("ttft_ms"), of("tpot_ms"), of("first_query_ttft_ms")], ["5", "1", "5"]);
        assert_eq!([of("ttft_ms_n"), of("peak_mem_mb_n"), of("cpu_s"), of("vm_hwm_mb")], ["4", "1", "", ""]);
        assert!(of("absent").contains("cpu_s=shared launch"), "{}", of("absent"));
    }

    let launches = table(&run_dir, "launches.csv");
    for n in 0..4 {
        let mut of: Vec<&Row> = launches.iter().filter(|l| l["launch"] == n.to_string()).collect();
        of.sort_by_key(|l| l["process_place"].clone());
        assert_eq!(of.iter().map(|l| l["process_place"].as_str()).collect::<Vec<_>>(), ["0", "1", "2", "3"]);
        assert!(of.iter().all(|l| l["process"] == of[0]["cell"]));
        assert_eq!(of.iter().map(|l| l["load_ms"].as_str()).collect::<Vec<_>>(), ["0.7", "", "", ""]);
        assert!(of[1..].iter().all(|l| l["peak_mem_mb"].is_empty() && l["absent"].contains("load_ms=shared launch")), "{of:?}");
        // The parts are the process.
        let record = &all.iter().find(|(_, r)| r["launch"] == n).unwrap().1["steps"][0]["done"];
        let whole = (record["end_ns"].as_f64().unwrap() - record["start_ns"].as_f64().unwrap()) / 1e6;
        let parts: f64 = of.iter().map(|l| number(l, "wall_ms").unwrap()).sum();
        assert!((parts / whole - 1.0).abs() < 1e-4, "{parts} of {whole} ms");
    }
    // Each cell came first once.
    let first: BTreeSet<&str> = launches.iter().filter(|l| l["process_place"] == "0").map(|l| l["cell"].as_str()).collect();
    assert_eq!(first.len(), 4);

    // Every query has its own length, and one in a process is the first; no prompt was asked twice in it.
    let place: BTreeMap<(&str, &str), &str> =
        launches.iter().map(|l| ((l["cell"].as_str(), l["launch"].as_str()), l["process_place"].as_str())).collect();
    let samples = table(&run_dir, "samples.csv");
    assert_eq!(samples.len(), 4 * 4 * 3);
    for s in &samples {
        assert_eq!(lengths(&s["cell"]), format!("p{}.g{}", s["prompt_tokens"], s["generated_tokens"]));
        let kind = match (s["query"].as_str(), place[&(s["cell"].as_str(), s["launch"].as_str())]) {
            ("0", "0") => "first_query",
            ("0", _) => "discarded_query",
            _ => "warm_query",
        };
        assert_eq!(s["query_kind"], kind);
    }
    let tokens = table(&run_dir, "tokens.csv");
    let mut answers: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for t in tokens.iter().filter(|t| t["launch"] == "0" && t["i"].parse::<u32>().unwrap() < 4) {
        answers.entry((t["cell"].clone(), t["query"].clone())).or_default().push(t["id"].clone());
    }
    // The stand-in's tokens are a formula of the prompt: the job of the process has prompts that differ.
    let job: Value = serde_json::from_slice(&fs::read(all[0].0.join("job.json")).unwrap()).unwrap();
    let prompts: BTreeSet<String> = job["queries"].as_array().unwrap().iter().map(|q| q["ids"].to_string()).collect();
    assert_eq!((prompts.len(), answers.len()), (12, 12));

    // A row of telemetry is one cell's.
    let telemetry = table(&run_dir, "telemetry.csv");
    let mut seen = BTreeSet::new();
    for t in &telemetry {
        let key = (t["launch"].clone(), t["t_ms"].clone(), t["source"].clone(), t["name"].clone());
        assert!(seen.insert(key), "twice: {t:?}");
    }
    let of: BTreeSet<&str> = telemetry.iter().map(|t| t["cell"].as_str()).collect();
    assert_eq!(of.len(), 4, "each cell has its own");

    // The evidence is in each folder, and once on the disk.
    let inodes: BTreeSet<u64> = all.iter().map(|(folder, _)| fs::metadata(folder.join("events.jsonl")).unwrap().ino()).collect();
    assert_eq!(inodes.len(), 4);

    // And alone, everything is each cell's own.
    let text = fs::read_to_string(&file).unwrap().replace("[measure]", "[measure]\nshare-launches = false");
    fs::write(&file, text).unwrap();
    let plan = run(bench(dir.path()).arg("plan").arg(&file)).expect(0);
    assert!(plan.stdout.contains("4 cells to run, 0 skipped; 16 launches;"), "{}", plan.stdout);
    run(bench(dir.path()).arg("run").arg(&file).args(["--no-report", "--out", "alone"])).expect(0);
    let alone = only_run(&dir.path().join("alone"));
    assert!(table(&alone, "cells.csv").iter().all(|c| c["cells_a_launch"] == "1" && c["cpu_s_n"] == "4" && c["peak_mem_mb_n"] == "4"));
    assert_eq!(records(&alone).iter().map(|(_, record)| start_ns(record)).collect::<BTreeSet<_>>().len(), 16);
}

/// The cells by their prompt.
fn by_prompt(run: &Path) -> [Row; 2] {
    let cells = table(run, "cells.csv");
    ["8", "16"].map(|prompt| cells.iter().find(|c| c["prompt_tokens"] == prompt).unwrap().clone())
}

#[test]
fn a_cell_that_fails_its_check_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = scenario(dir.path(), "eos", "long-eos", 3, &[], "8");
    run(bench(dir.path()).arg("run").arg(&file).arg("--no-report")).expect(6);
    let run_dir = only_run(&dir.path().join("results"));
    let [short, long] = by_prompt(&run_dir);
    assert_eq!([&short["status"], &short["launches"], &short["ttft_ms"]], ["ok", "3", "5"]);
    assert_eq!([&long["status"], &long["launches"], &long["launches_failed"]], ["unverified", "0", "1"]);
    assert!(long["reason"].contains("8 tokens asked, 5 generated"), "{}", long["reason"]);
    // Who is done is in no launch any more.
    let launches = table(&run_dir, "launches.csv");
    let shared: Vec<bool> = launches.iter().filter(|l| l["cell"] == short["cell"]).map(|l| !l["process"].is_empty()).collect();
    assert_eq!(shared, [true, false, false]);
}

#[test]
fn what_fails_as_a_whole_is_tried_cell_by_cell() {
    for (variant, words, kind) in [("long-crash", "signal 11", "runtime"), ("jumbled", "not answered in the order", "verify")] {
        let dir = tempfile::tempdir().unwrap();
        let file = scenario(dir.path(), "whole", variant, 2, &[], "8");
        let ran = run(bench(dir.path()).arg("run").arg(&file).arg("--no-report"));
        ran.says(&["failed as a whole, from here on each has its own", words]);
        let run_dir = only_run(&dir.path().join("results"));
        let [short, long] = by_prompt(&run_dir);
        assert_eq!([&short["status"], &short["launches"], &short["cells_a_launch"]], ["ok", "2", "1"], "{variant}");
        if variant == "long-crash" {
            assert_eq!([&long["status"], &long["failure_kind"]], ["failed", kind]);
        }
        // Nothing is left of the launch that nobody can be blamed for, but the word of it.
        assert!(records(&run_dir).iter().all(|(_, record)| record["shared"].is_null()));
        assert!(fs::read_to_string(run_dir.join("manifest.json")).unwrap().contains("failed as a whole"));
    }
}

#[test]
fn killed_between_its_cells_a_launch_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = scenario(dir.path(), "killed", "ok", 3, &["--pace", "60"], "[4, 8]");
    let mut command = bench(dir.path());
    let mut child = command.arg("run").arg(&file).arg("--no-report").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let out = dir.path().join("results");
    let text = || {
        glob::glob(&format!("{}/*/journal.jsonl", out.display())).unwrap().flatten().next().map(|path| fs::read_to_string(path).unwrap())
    };
    let begun = |n: usize| text().is_some_and(|text| text.matches("\"launch_begin\"").count() >= n);
    wait_until("the second process begins", || begun(8));
    std::thread::sleep(std::time::Duration::from_millis(200));
    child.kill().unwrap();
    child.wait().unwrap();
    let run_dir = only_run(&out);
    let before = records(&run_dir);
    assert_eq!(before.len(), 4, "killed within the second process: the test is too slow");

    // A record that is lost takes nothing of the others with it: its cell alone is measured again.
    let lost = before[0].0.clone();
    fs::remove_file(lost.join("launch.json")).unwrap();
    run(bench(dir.path()).arg("run").arg("--resume").arg(&run_dir).arg("--no-report")).expect(0);
    let all = journal(&run_dir);
    let ends = events(&all, "launch_end").count();
    assert_eq!((events(&all, "launch_begin").count(), ends), (4 + 4 + 1 + 8, 4 + 1 + 8));
    let after = records(&run_dir);
    let processes: BTreeSet<u64> = after.iter().map(|(_, record)| start_ns(record)).collect();
    assert_eq!((after.len(), processes.len()), (12, 4));
    for (folder, record) in &before[1..] {
        assert_eq!(start_ns(record), start_ns(&after.iter().find(|(now, _)| now == folder).unwrap().1), "a finished launch was repeated");
    }
    assert!(after.iter().find(|(folder, _)| *folder == lost).unwrap().1["shared"].is_null());
    assert!(table(&run_dir, "cells.csv").iter().all(|c| c["status"] == "ok" && c["launches"] == "3" && c["ttft_ms"] == "5"));
}

#[test]
fn the_sides_of_an_ab_run_share_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let drift = dir.path().join("launches").display().to_string();
    let a = scenario(dir.path(), "known", "ok", 10, &["--drift", &drift], "8");
    let b = scenario(dir.path(), "tried", "ok", 10, &["--drift", &drift, "--slower", "1.1"], "8");
    let ran = run(bench(dir.path()).arg("run").arg("--ab").args([&a, &b]).args(["--no-report", "--format", "json"])).expect(0);
    let mut runs: Vec<PathBuf> = fs::read_dir(dir.path().join("results")).unwrap().map(|e| e.unwrap().path()).collect();
    runs.sort_by_key(|run| fs::read_to_string(run.join("plan.toml")).unwrap().contains("side = \"b\""));
    // Ten processes a side, for two cells; each with its partner right before or after it.
    let mut processes: Vec<(u64, usize, u64)> = Vec::new();
    for (side, run) in runs.iter().enumerate() {
        let all = records(run);
        assert_eq!(all.len(), 20);
        processes.extend(all.iter().map(|(_, r)| (start_ns(r), side, r["launch"].as_u64().unwrap())));
    }
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 20);
    for pair in processes.chunks(2) {
        assert_eq!((pair[0].1 + pair[1].1, pair[0].2), (1, pair[1].2), "no partners: {pair:?}");
    }
    let ab = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).find(|e| e["event"] == "ab").unwrap();
    let rows: Vec<&Value> = ab["rows"].as_array().unwrap().iter().filter(|row| row["metric"] == "ttft_ms").collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["verdict"] == "regressed" && row["pairs"] == 10), "{rows:?}");
}

/// Rule R2 with the real runners: one process answers prompts and answers of several lengths, and every token is the reference's.
#[test]
fn lengths_share_a_process_on_every_engine() {
    let dir = tempfile::tempdir().unwrap();
    let matrix = "backend = [\"genie\", \"ort-qnn\", \"mnn\"]\nquant = [\"fp32\", \"fp16\"]\nprompt-tokens = [20, 40]\ngen-tokens = [4, 8]\n\
                  exclude = [{ backend = \"mnn\", quant = \"fp16\" }, { backend = [\"genie\", \"ort-qnn\"], quant = \"fp32\" }]";
    let geometry = root().join("scenarios/models/tiny-llama.toml");
    let text = format!(
        "name = \"lengths\"\n[device]\nlocal = true\nsoc = \"SM8650\"\n[models.tiny-llama]\ncontext = 128\nchunk = 32\ngeometry = \"{}\"\n\
         [matrix]\nmodel = \"tiny-llama\"\n{matrix}\n[measure]\nqueries = 2\nrepetitions = {{ min = 1, max = 1 }}\ntimeout = \"1m\"\n[verify]\nreference = \"fp32\"\n",
        geometry.display()
    );
    let path = dir.path().join("lengths.toml");
    fs::write(&path, text).unwrap();
    run(real(dir.path()).arg("run").arg(&path).args(["--yes", "--no-report"])).expect(0);
    let run_dir = only_run(&dir.path().join("results"));
    let cells = table(&run_dir, "cells.csv");
    assert_eq!(cells.len(), 12);
    for cell in &cells {
        let of = |column: &str| cell[column].as_str();
        assert_eq!(
            [of("status"), of("cells_a_launch"), of("check_count"), of("check_tokens"), of("check_unit")],
            ["ok", "4", "confirmed", "confirmed", "confirmed"],
            "{cell:?}"
        );
    }
    let launches = table(&run_dir, "launches.csv");
    for engine in ["genie", "ort-qnn", "mnn"] {
        let of: Vec<&Row> = launches.iter().filter(|l| l["cell"].starts_with(&format!("{engine}."))).collect();
        assert!(of.len() == 4 && of.iter().all(|l| l["process"] == of[0]["process"]), "{engine}: {of:?}");
        let loads: Vec<f64> = of.iter().filter_map(|l| number(l, "load_ms")).collect();
        assert!(loads.len() == 1 && loads[0] > 0.0, "{engine}: {loads:?}");
        let lead = of.iter().find(|l| l["process_place"] == "0").unwrap();
        assert!(number(lead, "peak_mem_mb").unwrap() > 10.0 && of.iter().all(|l| l["cpu_s"].is_empty()), "{engine}");
        // Three queries a cell, each with a prompt of its own.
        let job = run_dir.join(format!("logs/local/{}/measure-000/job.json", lead["cell"]));
        let job: Value = serde_json::from_slice(&fs::read(job).unwrap()).unwrap();
        let queries = job["queries"].as_array().unwrap();
        let prompts: BTreeSet<String> = queries.iter().map(|q| q["ids"].to_string()).collect();
        assert_eq!((queries.len(), prompts.len()), (12, 12), "{engine}");
    }
}
