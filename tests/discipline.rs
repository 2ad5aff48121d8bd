//! What keeps numbers honest on the run's side: each stand-in breaks one rule, and the tables say so.

mod support;

use std::{fs, path::Path};

use support::{Row, Scenario, bench, number, only_run, run, table};

/// Writes a scenario whose `[measure]` has these lines instead of the usual ones, and runs it.
fn measured(dir: &Path, variants: &[&'static str], measure: &str, code: i32) -> Vec<Row> {
    let path = Scenario { variants: variants.to_vec(), ..Scenario::default() }.write(dir);
    let text = fs::read_to_string(&path).unwrap();
    let (before, after) = (text.split("[measure]").next().unwrap(), text.split("[verify]").nth(1).unwrap());
    fs::write(&path, format!("{before}[measure]\n{measure}\n[verify]{after}")).unwrap();
    run(bench(dir).arg("run").arg(&path)).expect(code);
    table(&only_run(&dir.join("results")), "cells.csv")
}

fn of<'a>(rows: &'a [Row], variant: &str) -> &'a Row {
    rows.iter().find(|row| row["cell"].contains(&format!("variant={variant}-"))).unwrap_or_else(|| panic!("no row of {variant}"))
}

#[test]
fn a_prefix_that_was_reused_is_unverified_and_a_slow_first_query_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let cells = measured(dir.path(), &["ok", "prefix-reused"], "queries = 2\nrepetitions = { min = 3 }", 6);
    let (ok, reused) = (of(&cells, "ok"), of(&cells, "prefix-reused"));
    assert_eq!([&ok["status"], &ok["check_prefix"]], ["ok", "confirmed"]);
    // Query 2 has its first token after 2.5 ms, query 1 after 5 ms: 0.5 in each of three launches.
    assert_eq!([&reused["status"], &reused["check_prefix"], &reused["failure_kind"]], ["unverified", "contradicted", "verify"]);
    assert!(reused["reason"].starts_with("prefix reused: query 2 has its first token after 0.50 of the TTFT"), "{}", reused["reason"]);
    assert!(reused["reason"].contains("under 0.7 in 3 of 3 launches"), "{}", reused["reason"]);
    // Tokens were as many as asked, and no figure comes of it.
    assert_eq!((reused["check_count"].as_str(), number(reused, "ttft_ms"), number(reused, "decode_tok_s")), ("confirmed", None, None));
    let launches = table(&only_run(&dir.path().join("results")), "launches.csv");
    let statuses: Vec<&str> = launches.iter().filter(|l| l["cell"] == reused["cell"]).map(|l| l["status"].as_str()).collect();
    assert_eq!(statuses, ["unverified"; 3]);
}

#[test]
fn two_launches_are_too_few_to_call_a_prefix_reused() {
    let dir = tempfile::tempdir().unwrap();
    let cells = measured(dir.path(), &["prefix-reused"], "queries = 2\nrepetitions = { min = 2 }", 0);
    assert_eq!([&cells[0]["status"], &cells[0]["check_prefix"]], ["ok", "not-checkable"]);
    let manifest = fs::read_to_string(only_run(&dir.path().join("results")).join("manifest.json")).unwrap();
    assert!(manifest.contains("three launches can tell"), "{manifest}");
}

/// A folder on the disk of the build: `/tmp` may be memory, of which nothing can be dropped.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// `[measure]` with a model of 4 MB; the rows of `cells.csv` and `launches.csv`.
fn loaded(dir: &Path, load: &str) -> (Row, Vec<Row>) {
    let path = Scenario { model_bytes: 4_000_000, ..Scenario::default() }.write(dir);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("[measure]\n", &format!("[measure]\nload = \"{load}\"\n"))
            .replace("min = 1, max = 1 }\ntimeout", "min = 3 }\ntimeout")
            .replace("[\"weights.bin\"]\n", "[\"weights.bin\"]\nquant-native = \"zeroes, block 64\"\n"),
    )
    .unwrap();
    run(bench(dir).arg("run").arg(&path)).expect(0);
    let run = only_run(&dir.join("results"));
    (table(&run, "cells.csv").remove(0), table(&run, "launches.csv"))
}

#[test]
fn a_cold_load_is_cold_and_never_in_one_figure_with_warm_ones() {
    let dir = on_disk();
    let (cell, launches) = loaded(dir.path(), "cold");
    assert_eq!(launches.len(), 3);
    for launch in &launches {
        assert_eq!((launch["load_state"].as_str(), number(launch, "load_ms"), number(launch, "load_cold_ms")), ("cold", None, Some(0.7)));
        assert!(number(launch, "resident_share").unwrap() < 0.02);
        assert!(number(launch, "uptime_s").unwrap() > 0.0 && launch["boot_session"].is_empty(), "no NPU here");
        // Rule R6: what the program inherited. Nobody here has a wish about it, so that it is what this test has.
        assert_eq!((launch["launch_context"].as_str(), launch["check_bos"].as_str()), ("shell", "confirmed"));
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
        assert_eq!(launch["affinity"], allowed);
        assert!(number(launch, "nice").is_some() && number(launch, "oom_score_adj").is_some() && !launch["cgroup"].contains('\n'));
    }
    // Rule R29: the file does not tell it, so that the scenario's word stands there.
    let told = ["quant", "quant_native", "quant_native_from", "weight_bits"].map(|column| cell[column].as_str());
    assert_eq!(told, ["fp32", "zeroes, block 64", "scenario", ""]);
    // Rules R4, R5, R7: the stand-in is handed the ids, says nothing of its sampler, and has no static graph.
    let told = ["template", "sampling", "decoding", "check_bos", "compiled_context", "graphs", "tokens_per_step", "launch_context"];
    assert_eq!(told.map(|column| cell[column].as_str()), ["raw", "not-checkable", "plain", "confirmed", "", "", "", "shell"]);
    let depth = ["prompt_tokens", "gen_tokens"].map(|column| number(&cell, column).unwrap());
    // The last token is never put into the cache: nothing comes after it.
    assert_eq!(number(&cell, "kv_depth"), Some(depth[0] + depth[1] - 1.0));
    // The first launch is kept apart: 2 of 3.
    assert_eq!((number(&cell, "load_cold_ms"), number(&cell, "load_cold_ms_n"), number(&cell, "load_ms")), (Some(0.7), Some(2.0), None));
    assert!(cell["absent"].contains("load_ms=every load was a cold one"), "{}", cell["absent"]);

    for load in ["warm", "any"] {
        let dir = on_disk();
        let (cell, launches) = loaded(dir.path(), load);
        // The files were just written: a first load after a push is no cold one.
        let states: Vec<_> =
            launches.iter().map(|l| (l["load_state"].as_str(), number(l, "resident_share"), number(l, "load_cold_ms"))).collect();
        assert_eq!(states, [("warm", Some(1.0), None); 3], "{load}");
        assert_eq!((number(&cell, "load_ms_n"), cell["load_state"].as_str(), number(&cell, "load_cold_ms")), (Some(2.0), "warm", None));
    }
}

#[test]
fn a_load_that_can_not_be_made_cold_is_a_warm_one_with_the_reason() {
    // Memory: the kernel drops nothing of it.
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return };
    let (cell, launches) = loaded(dir.path(), "cold");
    assert!(launches.iter().all(|l| l["load_state"] == "warm" && number(l, "resident_share") == Some(1.0)), "{launches:?}");
    assert!(
        launches[0]["warnings"].contains("a cold load was asked for and this is a warm one: 100 % of the model's files stayed"),
        "{launches:?}"
    );
    assert_eq!((number(&cell, "load_cold_ms"), number(&cell, "load_ms_n")), (None, Some(2.0)));
}

#[test]
fn a_model_without_files_has_no_load_state() {
    let dir = tempfile::tempdir().unwrap();
    let cells = measured(dir.path(), &["ok"], "repetitions = { min = 2 }\nload = \"cold\"", 0);
    assert_eq!((cells[0]["load_state"].as_str(), number(&cells[0], "load_ms")), ("unknown", Some(0.7)));
}

#[test]
fn queries_are_discarded_until_they_are_alike() {
    let dir = tempfile::tempdir().unwrap();
    let measure = "queries = 2\nwarmup = { min = 1, max = 4 }\nrepetitions = { min = 2 }";
    let cells = measured(dir.path(), &["ok", "warming", "never-warm"], measure, 0);
    let launches = table(&only_run(&dir.path().join("results")), "launches.csv");
    let samples = table(&only_run(&dir.path().join("results")), "samples.csv");
    // TTFT of `warming`: 20, 15, 10, 5, 5, 5 ms; of `never-warm`: 105 ms and 5 ms less each time, which is at no place within 5 %.
    for (variant, discarded, warmed_up, ttft, not) in
        [("ok", "1", "1", 5.0, "0"), ("warming", "3", "1", 5.0, "0"), ("never-warm", "4", "0", 82.5, "2")]
    {
        let cell = of(&cells, variant);
        assert_eq!((number(cell, "ttft_ms"), cell["not_warmed_up"].as_str()), (Some(ttft), not), "{variant}");
        for launch in launches.iter().filter(|l| l["cell"] == cell["cell"]) {
            assert_eq!([&launch["discarded_queries"], &launch["warmed_up"]], [discarded, warmed_up], "{variant}");
        }
        let first: Vec<bool> =
            samples.iter().filter(|s| s["cell"] == cell["cell"] && s["launch"] == "0").map(|s| s["query_kind"] == "first_query").collect();
        assert_eq!(first, (0..6).map(|n| n < discarded.parse().unwrap()).collect::<Vec<_>>(), "{variant}");
    }
    assert_eq!(number(of(&cells, "warming"), "first_query_ttft_ms"), Some(20.0));
}

#[test]
fn time_in_launches_ends_a_cell_after_the_fewest() {
    let dir = tempfile::tempdir().unwrap();
    // A launch sleeps a second in each of its 3 queries: two of them are over 5 s.
    let path = Scenario {
        command: vec!["python3".into(), support::runner().display().to_string(), "--pace".into(), "1000".into()],
        ..Scenario::default()
    };
    let path = path.write(dir.path());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("{ min = 1, max = 1 }\ntimeout", "{ min = 1, max = 9, max-time = \"5s\" }\ntimeout")).unwrap();
    run(bench(dir.path()).arg("run").arg(&path)).expect(0);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    assert_eq!([&cells[0]["stop"], &cells[0]["launches"]], ["max-time", "2"]);
}

#[test]
fn a_cell_that_gets_slower_and_slower_is_marked() {
    let dir = tempfile::tempdir().unwrap();
    let command =
        vec!["python3".into(), support::runner().display().to_string(), "--state".into(), dir.path().join("state").display().to_string()];
    let path = Scenario { command, variants: vec!["ok", "drifting"], launches: 6, ..Scenario::default() }.write(dir.path());
    run(bench(dir.path()).arg("run").arg(&path)).expect(0);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    // Gaps of 1, 1.04, ... 1.2 ms: five times the median slope of the 15 pairs of log rates gives -16.6398 % (Python's statistics and math).
    let drifting = of(&cells, "drifting");
    let change = number(drifting, "drift_pct").unwrap();
    assert!((change + 16.6398).abs() < 1e-3, "{change}");
    assert_eq!(drifting["drift"], "decode_tok_s");
    assert_eq!((of(&cells, "ok")["drift"].as_str(), number(of(&cells, "ok"), "drift_pct")), ("none", Some(0.0)));
}
