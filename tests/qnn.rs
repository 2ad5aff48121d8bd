//! The backend `qnn` from a scenario to the tables, with a **stand-in** for Qualcomm's SDK (`tests/standins/android`): its tools check their
//! arguments and print in the real tools' layout, but they run no graph, and every time is a number of `standin.json`. What is shown here
//! is that `bench` calls, reads, composes and refuses rightly, never how fast anything is. The context binaries are real ones, made by the
//! recipe, which needs the Python environment in the user's cache: where it is not installed these tests say so and do nothing.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use support::{Row, bench, journal, number, only_run, root, run, table};

/// Where the SDK's files are inside its root.
const BIN: &str = "bin/x86_64-linux-clang";
const LIB: &str = "lib/x86_64-linux-clang";

/// Numbers of the stand-in, in us: one execution of the prefill graph (32 tokens) and of the decode graph.
const PREFILL_US: u32 = 6400;
const DECODE_US: u32 = 1250;

/// The user's cache with the Python environment in it: the recipe of context binaries needs it, and a test that skipped itself could not fail.
fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = set("BENCH_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("bench")))
        .or_else(|| set("HOME").map(|d| d.join(".cache").join("bench")))
        .expect("a home folder");
    let mut list = Command::new(env!("CARGO_BIN_EXE_bench"));
    let output = list.env("BENCH_CACHE", &cache).args(["runtimes", "list", "--format", "json"]).output().expect("bench runtimes list");
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let ready = listed["backends"]["ort-qnn"].get("ready").is_some();
    assert!(ready, "run `bench runtimes install python --yes` first (tests/run.sh does): {listed}");
    cache
}

/// The stand-in SDK, which does as told: `ok`, or a failure of its qnn-net-run.
fn standin(dir: &Path, mode: &str) -> PathBuf {
    let to = dir.join("standin");
    let made = Command::new(root().join("tests/standins/android/make-sdk.sh")).arg(&to).output().expect("make-sdk.sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let fail = if mode == "ok" { json!({}) } else { json!({"qnn-net-run": mode}) };
    let cycles = json!({"prefill": [0, 30000, 90000], "decode": [0, 2000, 6000]});
    let times = json!({"prefill": PREFILL_US, "decode": DECODE_US});
    let numbers = json!({"fail": fail, "version": "v0.0.0.standin", "average_us": times, "cycles": cycles});
    fs::write(to.join("qairt/standin.json"), numbers.to_string()).unwrap();
    to.join("qairt")
}

/// A scenario of one cell on the tiny model: its prompt, and lines for [matrix] and [measure].
fn scenario(dir: &Path, prompt: u32, matrix: &str, measure: &str) -> PathBuf {
    let geometry = root().join("scenarios/models/tiny-llama.toml");
    let text = format!(
        "name = \"qnn\"\n[device]\nlocal = true\nsoc = \"SM8650\"\n[models.tiny-llama]\ncontext = 128\nchunk = 32\ngeometry = \"{}\"\n\
         [matrix]\nbackend = \"qnn\"\nmodel = \"tiny-llama\"\nquant = \"fp16\"\nprompt-tokens = {prompt}\ngen-tokens = 16\n{matrix}\n\
         [measure]\nqueries = 1\nwarmup = {{ min = 1, max = 1 }}\ntimeout = \"60s\"\n{measure}\n[verify]\nreference = \"fp32\"\n",
        geometry.display()
    );
    let path = dir.join("qnn.toml");
    fs::write(&path, text).unwrap();
    path
}

const ONCE: &str = "repetitions = { min = 1, max = 1 }";

fn measure(dir: &Path, cache: &Path, sdk: &Path, scenario: &Path, code: i32) -> PathBuf {
    // A cache of its own, so that no other run is waited for, with the user's runtimes and artifacts in it.
    fs::create_dir_all(dir.join("cache")).unwrap();
    for part in ["runtimes", "artifacts"] {
        fs::create_dir_all(cache.join(part)).unwrap();
        std::os::unix::fs::symlink(cache.join(part), dir.join("cache").join(part)).unwrap();
    }
    let mut command = bench(dir);
    command.env("QAIRT_SDK_ROOT", sdk);
    run(command.arg("run").arg(scenario).args(["--offline", "--no-report"])).expect(code);
    only_run(&dir.join("results"))
}

/// What is kept of a launch.
fn logs(run: &Path, cell: &Row, launch: &str) -> PathBuf {
    run.join("logs").join(&cell["device"]).join(&cell["cell"]).join(launch)
}

fn only(mut rows: Vec<Row>) -> Row {
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

#[track_caller]
fn near(row: &Row, column: &str, wanted: f64) {
    let value = number(row, column).unwrap_or_else(|| panic!("{column} is empty"));
    // Tables hold six significant digits.
    assert!((value - wanted).abs() <= wanted.abs() * 1e-5, "{column}: {value}, {wanted} wanted");
}

#[test]
fn figures_are_composed_of_the_standins_numbers_and_marked() {
    let cache = cache();
    let dir = tempfile::tempdir().unwrap();
    let sdk = standin(dir.path(), "ok");
    let scenario = scenario(dir.path(), 80, "", "repetitions = { min = 7, max = 8, until-ci = \"5%\" }\nprofile = \"layers\"");
    let run = measure(dir.path(), &cache, &sdk, &scenario, 0);

    // 80 tokens are ceil(80 / 32) = 3 executions of 6.4 ms: 19.2 ms, 80 / 0.0192 s = 4166.67 tokens a second; 1 / 1.25 ms = 800.
    let composed = [("ttft_ms", 19.2), ("prefill_tok_s", 4166.67), ("decode_tok_s", 800.0), ("tpot_ms", 1.25)];
    let cell = only(table(&run, "cells.csv"));
    for (metric, value) in composed {
        near(&cell, metric, value);
        near(&cell, &format!("{metric}_n"), 7.0);
    }
    for column in ["ttft_method", "prefill_method", "decode_method"] {
        assert_eq!(cell[column], "composed", "{column}");
    }
    let said = ["status", "stop", "device_class", "engine", "runtime_version", "chunk", "padded_prompt_tokens", "n_small"]
        .map(|c| cell[c].as_str());
    assert_eq!(said, ["ok", "until-ci", "emulator", "graph", "QAIRT v0.0.0.standin", "32", "96", "1"]);
    let checks = ["check_count", "check_tokens", "check_unit", "unit_found"].map(|c| cell[c].as_str());
    assert_eq!(checks, ["not-checkable", "not-checkable", "confirmed", "npu"]);
    for metric in ["itl_p50_ms", "e2e_ms", "load_ms", "peak_mem_mb", "vm_hwm_mb", "cpu_s"] {
        assert!(cell[metric].is_empty(), "{metric}");
        assert!(cell["absent"].contains(&format!("{metric}=")), "{metric}: {}", cell["absent"]);
    }

    // One row a launch: an average over many executions is no distribution.
    let samples = table(&run, "samples.csv");
    let measured: Vec<&Row> = samples.iter().filter(|r| r["pass"] == "measure").collect();
    assert_eq!((measured.len(), samples.len()), (7, 8));
    for row in &measured {
        near(row, "ttft_ms", 19.2);
        near(row, "decode_tok_s", 800.0);
        let said = ["query", "query_kind", "aggregate_n", "ttft_method", "prefill_method", "decode_method", "generated_tokens", "status"];
        assert_eq!(said.map(|c| row[c].as_str()), ["0", "warm_query", "20", "composed", "composed", "composed", "", "ok"]);
    }
    assert!(table(&run, "tokens.csv").is_empty());

    // Operations of both graphs, from the profile pass alone: 30000 of 120000 cycles are a quarter.
    let layers = table(&run, "layers.csv");
    let rows: Vec<_> =
        layers.iter().map(|r| ["phase", "name", "value", "value_unit", "share", "count", "method"].map(|c| r[c].as_str())).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[1], ["prefill", "attention:OpId_21", "30000", "cycles", "0.25", "20", "qnn-detailed"]);
    assert_eq!(rows[5], ["decode", "feed_forward:OpId_27", "6000", "cycles", "0.75", "20", "qnn-detailed"]);
    let profiled = fs::read_to_string(logs(&run, &cell, "profile-000").join("launch.json")).unwrap();
    assert!(profiled.contains("detailed"));

    let ends: Vec<Value> = journal(&run).into_iter().filter(|e| e["event"] == "launch_end").collect();
    assert!(ends.iter().all(|e| e["ttft_ms"].as_f64().is_some_and(|t| (t - 19.2).abs() < 1e-9)), "{ends:?}");
}

#[test]
fn a_performance_profile_reaches_the_tool() {
    let cache = cache();
    let dir = tempfile::tempdir().unwrap();
    let sdk = standin(dir.path(), "ok");
    let run = measure(dir.path(), &cache, &sdk, &scenario(dir.path(), 32, "perf-profile = \"burst\"", ONCE), 0);
    let cell = only(table(&run, "cells.csv"));
    assert_eq!((cell["status"].as_str(), cell["perf_profile"].as_str()), ("ok", "burst"));
    // One whole chunk: 6.4 ms.
    near(&cell, "ttft_ms", 6.4);
    let logs = logs(&run, &cell, "measure-000");
    let record: Value = serde_json::from_slice(&fs::read(logs.join("launch.json")).unwrap()).unwrap();
    assert_eq!(record["parsed"]["notes"]["perf_profile"], "burst");
    // The stand-in writes into its profile what it read from the extension's configuration.
    let log = fs::read(logs.join("decode/out_decode__qnn-profiling-data_0.log")).unwrap();
    assert!(String::from_utf8_lossy(&log).contains(r#""perf_profile": "burst""#));
}

/// Mode of the stand-in, kind of failure, and words of the reason.
const FAILURES: &[(&str, &str, &[&str])] = &[
    ("err5005", "model", &["prefill: Failed to create context from binary with err 5005", "soc_model"]),
    ("unfinished", "runtime", &["ends before `Finished Executing Graphs`"]),
    ("no-results", "runtime", &["left no results in out_prefill/Result_0"]),
    ("crash", "runtime", &["signal 11"]),
    ("no-times", "runtime", &["holds no time of an execution"]),
];

#[test]
fn failures_are_rows_with_code_and_hint() {
    let cache = cache();
    for (mode, kind, words) in FAILURES {
        let dir = tempfile::tempdir().unwrap();
        let sdk = standin(dir.path(), mode);
        let run = measure(dir.path(), &cache, &sdk, &scenario(dir.path(), 32, "", ONCE), 6);
        let cell = only(table(&run, "cells.csv"));
        assert_eq!((cell["status"].as_str(), cell["failure_kind"].as_str()), ("failed", *kind), "{mode}: {}", cell["reason"]);
        for word in *words {
            assert!(cell["reason"].contains(word), "{mode}: no {word:?} in {}", cell["reason"]);
        }
        assert!(cell["ttft_ms"].is_empty() && cell["decode_tok_s"].is_empty(), "{mode}");
        assert!(table(&run, "samples.csv").is_empty(), "{mode}");
    }
}

#[test]
fn a_crash_after_whole_results_is_a_warning() {
    let cache = cache();
    let dir = tempfile::tempdir().unwrap();
    let sdk = standin(dir.path(), "crash-at-exit");
    let run = measure(dir.path(), &cache, &sdk, &scenario(dir.path(), 32, "", ONCE), 0);
    let cell = only(table(&run, "cells.csv"));
    assert_eq!(cell["status"], "ok", "{}", cell["reason"]);
    near(&cell, "decode_tok_s", 800.0);
    let warnings = only(table(&run, "launches.csv"))["warnings"].clone();
    for step in ["prefill", "decode"] {
        assert!(warnings.contains(&format!("{step}: qnn-net-run crashed at exit, after whole results")), "{warnings}");
    }
    // The agent's evidence keeps how the process really ended.
    let done = logs(&run, &cell, "measure-000").join("prefill/done.json");
    let done: Value = serde_json::from_slice(&fs::read(done).unwrap()).unwrap();
    assert_eq!(done["ended"]["signal"], 11);
}

#[test]
fn without_an_sdk_the_cell_is_skipped_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(dir.path(), 32, "", ONCE);
    let remedy = "install the SDK and set QAIRT_SDK_ROOT to its folder, or run `bench runtimes install qairt --accept-licence`";
    run(bench(dir.path()).arg("run").arg(&scenario).args(["--offline", "--no-report"])).expect(5).says(&[remedy]);
    let cell = only(table(&only_run(&dir.path().join("results")), "cells.csv"));
    assert_eq!(cell["status"], "skipped");
    assert_eq!(cell["reason"], format!("Qualcomm's QAIRT SDK ({BIN}/qnn-net-run) is missing: {remedy}"));
    // An SDK without the library that carries performance profiles is not one.
    let sdk = standin(dir.path(), "ok");
    fs::remove_file(sdk.join(LIB).join("libQnnHtpNetRunExtensions.so")).unwrap();
    let mut command = bench(dir.path());
    command.env("QAIRT_SDK_ROOT", sdk).args(["run", "--offline", "--no-report", "--out", "other"]).arg(&scenario);
    run(&mut command).expect(5).says(&["libQnnHtpNetRunExtensions.so"]);
}
