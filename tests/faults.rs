//! Runners that misbehave: each is one row with its reason, and everything else is measured.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use support::{GENERATED, PROMPT, Row, Scenario, bench, disk_use, events, journal, number, only_run, processes_with, run, table, unshare};

/// Variant, status, kind of failure, and words of the reason.
type Fault = (&'static str, &'static str, &'static str, &'static [&'static str]);

const FAULTS: &[Fault] = &[
    ("garbage", "failed", "runtime", &["events.jsonl", "no event"]),
    ("garbage-lines", "failed", "runtime", &["no event"]),
    ("no-events", "failed", "runtime", &["no event"]),
    ("half-line", "unverified", "verify", &["query 2: 8 tokens asked, 7 generated"]),
    ("flood-stdout", "failed", "runtime", &["no event"]),
    ("flood-events", "failed", "runtime", &["wrote too much", "events.jsonl"]),
    ("exit-3", "failed", "runtime", &["exit status 3", "licence server says no"]),
    ("segv", "failed", "runtime", &["signal 11", "SIGSEGV", "about to fall"]),
    ("hang", "failed", "runtime", &["did not end within 2s"]),
    ("stubborn", "failed", "runtime", &["did not end within 2s"]),
    ("wrong-unit", "unverified", "verify", &["cpu asked", "npu"]),
    ("fewer-queries", "unverified", "verify", &["3 queries asked, 2 answered"]),
    ("other-queries", "unverified", "verify", &["queries 0 to 2 asked"]),
    ("fewer-tokens", "unverified", "verify", &["query 0: 8 tokens asked, 5 generated", "finish: length"]),
    ("early-eos", "unverified", "verify", &["8 tokens asked, 5 generated", "finish: eos"]),
    ("more-tokens", "unverified", "verify", &["8 tokens asked, 9 generated"]),
    ("short-prompt", "unverified", "verify", &["16 prompt tokens asked, 15 submitted"]),
    ("miscounted", "unverified", "verify", &["8 tokens asked, 9 reported by the runtime"]),
    ("backwards", "failed", "runtime", &["time stamps go backwards"]),
    ("wrong-i", "failed", "runtime", &["query 0: token 7 has i = 8"]),
    ("overlap", "failed", "runtime", &["query 1 begins before query 0 is over"]),
    ("after-end", "unverified", "verify", &["exit status 0 without the event `end`"]),
    ("wall-clock", "failed", "runtime", &["time stamps are not CLOCK_MONOTONIC of this launch"]),
    ("finish-error", "unverified", "verify", &["query 0: ended by `error`, not `length`"]),
    ("no-query-end", "unverified", "verify", &["query 2: no event `query_end`"]),
    ("no-end", "unverified", "verify", &["exit status 0 without the event `end`"]),
    ("half-end", "unverified", "verify", &["exit status 0 without the event `end`"]),
    ("error-event", "failed", "model", &["the weights are those of another model"]),
];

/// Variants that are measured: one does all right, one leaves a process behind, one writes `null` for what it does not have, and two tell what they
/// spend their time on, well and badly.
const GOOD: &[&str] = &["ok", "leftover", "nulls", "phases", "odd-phases"];

#[test]
fn every_fault_is_one_row_with_its_reason_and_the_rest_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let variants: Vec<&'static str> = GOOD.iter().copied().chain(FAULTS.iter().map(|f| f.0)).collect();
    let scenario = Scenario { variants: variants.clone(), launches: 2, timeout: "2s", ..Scenario::default() }.write(dir.path());
    let ran = run(bench(dir.path()).arg("run").arg(&scenario).args(["--format", "json"])).expect(6);
    let run = only_run(&dir.path().join("results"));

    // Standard output is events and nothing else, the same ones that the journal keeps.
    let shown: Vec<Value> = ran.stdout.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    let kept = journal(&run);
    assert_eq!(shown.len(), kept.len());
    assert!(shown.iter().zip(&kept).all(|(a, b)| a["event"] == b["event"] && a["cell"] == b["cell"]));

    let cells = table(&run, "cells.csv");
    assert_eq!(cells.len(), variants.len());
    let by_variant = |v: &str| cells.iter().find(|c| c["variant"] == v).unwrap_or_else(|| panic!("no row for {v}"));
    for good in GOOD {
        let row = by_variant(good);
        assert_eq!(
            (row["status"].as_str(), row["launches"].as_str(), row["launches_failed"].as_str()),
            ("ok", "2", "0"),
            "{good}: {row:?}"
        );
        assert_eq!((row["check_count"].as_str(), row["check_unit"].as_str()), ("confirmed", "confirmed"));
        // There is no reference: never taken for an agreement.
        assert_eq!((row["check_tokens"].as_str(), row["token_agreement"].as_str()), ("not-checkable", ""));
        exact_metrics(row);
    }
    for (variant, status, kind, reasons) in FAULTS {
        let row = by_variant(variant);
        assert_eq!(
            (row["status"].as_str(), row["failure_kind"].as_str(), row["launches"].as_str()),
            (*status, *kind, "0"),
            "{variant}: {row:?}"
        );
        for words in *reasons {
            assert!(row["reason"].contains(words), "{variant}: no {words:?} in {:?}", row["reason"]);
        }
        assert!(row["reason"].len() < 2000, "{variant}: a reason of {} bytes", row["reason"].len());
        // Contradicted or failed: kept out of every aggregate.
        for metric in ["ttft_ms", "decode_tok_s", "e2e_ms", "tpot_ms"] {
            assert_eq!(number(row, metric), None, "{variant} {metric}");
        }
        // What failed for its own reasons is not tried again.
        assert_eq!(events(&kept, "launch_end").filter(|e| e["cell"] == row["cell"].as_str()).count(), 1, "{variant}");
    }
    // One clear line on the console's stream too: the failure with its kind.
    let ends: Vec<&Value> = events(&kept, "launch_end").collect();
    assert_eq!(ends.len(), GOOD.len() * 2 + FAULTS.len());

    let launches = table(&run, "launches.csv");
    let of = |variant: &str| launches.iter().find(|l| l["cell"].contains(&format!("variant={variant}-"))).unwrap();
    assert!(of("half-end")["warnings"].contains("unfinished"), "{:?}", of("half-end"));
    assert!(of("leftover")["warnings"].contains("left"), "{:?}", of("leftover"));
    assert_eq!(of("segv")["signal"], "11");
    assert_eq!(of("exit-3")["exit_code"], "3");
    assert!(of("odd-phases")["warnings"].contains("phase `execute` ends without a begin"), "{:?}", of("odd-phases"));
    tokens_are_the_formula(&run);
    phases_are_the_standins(&run);

    // Nothing grew without a bound: 64 MiB of a stream is kept, and garbage is not copied into records.
    assert!(disk_use(&run) < 300 << 20, "the run takes {} bytes", disk_use(&run));
    for record in glob::glob(&format!("{}/logs/*/*/*/launch.json", run.display())).unwrap().flatten() {
        let size = fs::metadata(&record).unwrap().len();
        assert!(size < 256 << 10, "{}: {size} bytes", record.display());
    }
    nobody_is_left(dir.path(), &run);
}

/// The stand-in's time stamps lie at fixed distances: 5 ms to the first of 8 tokens, 1 ms to each next.
fn exact_metrics(row: &Row) {
    for (metric, want) in [
        ("ttft_ms", 5.0),
        ("tpot_ms", 1.0),
        ("itl_p50_ms", 1.0),
        ("itl_p99_ms", 1.0),
        ("decode_tok_s", 1000.0),
        ("e2e_ms", 12.0),
        ("prefill_tok_s", f64::from(PROMPT) / 0.005),
        ("load_ms", 0.7),
        ("first_query_ttft_ms", 5.0),
    ] {
        assert_eq!(number(row, metric), Some(want), "{metric} of {}", row["cell"]);
    }
    assert_eq!(number(row, "decode_tok_s_n"), Some(2.0), "one value a launch");
}

fn tokens_are_the_formula(run: &Path) {
    let tokens = table(run, "tokens.csv");
    let ok: Vec<&Row> = tokens.iter().filter(|t| t["cell"].contains("variant=ok-")).collect();
    assert_eq!(ok.len(), 2 * 3 * GENERATED as usize, "launches x queries x tokens");
    let job = glob::glob(&format!("{}/logs/*/*variant=ok-*/measure-000/job.json", run.display())).unwrap().flatten().next().unwrap();
    let job: Value = serde_json::from_slice(&fs::read(job).unwrap()).unwrap();
    for row in ok {
        let ids = job["queries"][row["query"].parse::<usize>().unwrap()]["ids"].as_array().unwrap();
        assert_eq!(ids.len(), PROMPT as usize);
        let sum: u64 = ids.iter().map(|id| id.as_u64().unwrap()).sum();
        let i: u64 = row["i"].parse().unwrap();
        assert_eq!(row["id"], (3 + (sum * 31 + i * 7) % 61).to_string(), "{row:?}");
    }
}

/// Of 0.7, 5 and 1 ms, as the stand-in tells them; where it tells nothing that counts, a stage is one part.
fn phases_are_the_standins(run: &Path) {
    let rows = table(run, "phases.csv");
    let of = |variant: &str| {
        let rows = rows.iter().filter(|r| r["cell"].contains(&format!("variant={variant}-")));
        let part = |r: &Row| {
            assert_eq!((r["pass"].as_str(), r["n"].as_str(), r["device_class"].as_str()), ("measure", "2", "pc"));
            let (ms, share) = (number(r, "ms").unwrap(), number(r, "share").unwrap());
            assert_eq!((number(r, "ms_lo"), number(r, "ms_hi")), (Some(ms), Some(ms)), "the same in both launches");
            (r["stage"].clone(), r["phase"].clone(), r["method"].clone(), ms, share)
        };
        rows.map(part).collect::<Vec<_>>()
    };
    let part = |stage: &str, phase: &str, method: &str, ms, share| (stage.to_owned(), phase.to_owned(), method.to_owned(), ms, share);
    let told = [
        part("load", "read", "events", 0.2, 0.285_714),
        part("load", "prepare", "events", 0.4, 0.571_429),
        part("load", "unaccounted", "rest", 0.1, 0.142_857),
        part("prefill", "h2d", "events", 1.0, 0.2),
        part("prefill", "execute", "events", 3.5, 0.7),
        part("prefill", "unaccounted", "rest", 0.5, 0.1),
        part("decode", "execute", "events", 0.75, 0.75),
        part("decode", "unaccounted", "rest", 0.25, 0.25),
    ];
    assert_eq!(of("phases"), told);
    let whole =
        [part("load", "load", "whole", 0.7, 1.0), part("prefill", "query", "whole", 5.0, 1.0), part("decode", "query", "whole", 1.0, 1.0)];
    assert_eq!([of("ok"), of("odd-phases")], [whole.clone(), whole]);
    assert!(of("segv").is_empty() && of("fewer-tokens").is_empty(), "what does not count has no parts");
}

/// No agent, no runner, no daemon of a runner, no work folder.
fn nobody_is_left(dir: &Path, run: &Path) {
    assert_eq!(processes_with(&dir.display().to_string()), [""; 0]);
    assert_eq!(processes_with(&run.file_name().unwrap().to_string_lossy()), [""; 0]);
    let work: Vec<PathBuf> = fs::read_dir(dir.join("cache/work")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(work.is_empty(), "{work:?}");
}

#[test]
fn a_program_that_is_not_there_is_skipped_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Scenario { command: vec!["no-such-engine-anywhere".to_owned()], ..Scenario::default() }.write(dir.path());
    let ran = run(bench(dir.path()).arg("run").arg(&missing).arg("--no-report")).expect(5);
    ran.says(&["no-such-engine-anywhere", "backends.standin.command"]);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    assert_eq!((cells[0]["status"].as_str(), cells.len()), ("skipped", 1));
    assert!(cells[0]["reason"].contains("no-such-engine-anywhere is missing"), "{:?}", cells[0]["reason"]);
}

#[test]
fn a_program_that_can_not_be_started_is_a_failed_row() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("engine");
    fs::write(&program, "no executable\n").unwrap();
    let command = vec![program.display().to_string()];
    let scenario = Scenario { command, ..Scenario::default() }.write(dir.path());
    run(bench(dir.path()).arg("run").arg(&scenario).arg("--no-report")).expect(6);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    assert_eq!((cells[0]["status"].as_str(), cells[0]["failure_kind"].as_str()), ("failed", "infra"));
    assert!(cells[0]["reason"].contains("could not be started"), "{:?}", cells[0]["reason"]);
}

/// Runs a shell script in a mount namespace of its own, where it may mount small disks that are gone with it.
fn on_small_disks(script: &str, dir: &Path, scenario: &Path) -> Option<String> {
    let Some(wrapper) = unshare("-m") else {
        println!("note: no mount namespace can be made here, so a full disk can't be tested");
        return None;
    };
    let mut command = Command::new(&wrapper[0]);
    let bench = bench(dir);
    command.args(&wrapper[1..]).args(["sh", "-e", "-u", "-c", script]).arg(bench.get_program()).arg(scenario).current_dir(dir);
    command.env("BENCH_CACHE", dir.join("cache"));
    let ran = run(&mut command);
    assert!(ran.status.success(), "{ran:?}");
    Some(ran.stdout)
}

/// Three variants that are alike, many launches: a run that writes far more than the small disk holds.
fn long_run(dir: &Path, launches: u32) -> PathBuf {
    Scenario { name: "long", variants: vec!["a", "b", "c"], launches, ..Scenario::default() }.write(dir)
}

#[test]
fn a_full_disk_of_results_keeps_what_was_measured_and_resume_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = long_run(dir.path(), 6);
    // The disk is a tmpfs in a namespace: what it holds is copied out before the script ends.
    let script = r#"
        mkdir small copy
        mount -t tmpfs -o size=500k none small
        set +e
        "$0" run "$1" --out small --no-report >first.out 2>first.err; echo $? >first.code
        set -e
        RUN=$(ls -d small/*)
        cp -a "$RUN" copy/first
        mount -o remount,size=64m small
        "$0" run --resume "$RUN" --no-report >second.out 2>second.err
        cp -a "$RUN" copy/second
    "#;
    if on_small_disks(script, dir.path(), &scenario).is_none() {
        return;
    }
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("first.code").trim(), "5", "{}", read("first.err"));
    let words = read("first.err");
    assert!(words.contains("the disk is full") && words.contains("bench run --resume small/"), "{words}");
    assert!(!words.contains("panicked"), "{words}");

    let first = dir.path().join("copy/first");
    let before = journal(&first);
    let done = events(&before, "launch_end").filter(|e| e["status"] == "ok").count();
    assert!(done > 0 && done < 18, "{done} launches: the disk has to fill in the middle");
    // Whatever table there is, is whole, and nothing unfinished is left to fill the disk.
    assert_eq!(fs::read_dir(&first).unwrap().filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "tmp")).count(), 0);

    let second = dir.path().join("copy/second");
    let after = journal(&second);
    let cells = table(&second, "cells.csv");
    assert_eq!(cells.len(), 3);
    for row in &cells {
        assert_eq!((row["status"].as_str(), row["launches"].as_str(), row["launches_failed"].as_str()), ("ok", "6", "0"), "{row:?}");
        exact_but_for_count(row);
    }
    assert_eq!(table(&second, "launches.csv").len(), 18);
    // What the first segment measured was not measured again.
    let ok: Vec<(&Value, &Value)> =
        events(&after, "launch_end").filter(|e| e["status"] == "ok").map(|e| (&e["cell"], &e["launch"])).collect();
    assert_eq!(ok.len(), 18, "each launch is good once");
    assert_eq!(table(&second, "launches.csv").iter().filter(|l| l["segment"] == "0").count(), done);
}

fn exact_but_for_count(row: &Row) {
    assert_eq!((number(row, "ttft_ms"), number(row, "decode_tok_s")), (Some(5.0), Some(1000.0)));
}

#[test]
fn a_full_disk_of_the_work_folder_is_not_blamed_on_the_runner() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = long_run(dir.path(), 2);
    // 4 KB: enough for the job, too little for job and events together.
    let script = r#"
        mkdir cache out
        mount -t tmpfs -o size=4k none cache
        set +e
        "$0" run "$1" --out out --no-report >first.out 2>first.err; echo $? >first.code
        set -e
        mount -o remount,size=64m cache
        "$0" run --resume out/* --no-report >second.out 2>second.err
    "#;
    if on_small_disks(script, dir.path(), &scenario).is_none() {
        return;
    }
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("first.code").trim(), "5", "{}", read("first.err"));
    assert!(read("first.err").contains("the disk is full"), "{}", read("first.err"));
    let cells = table(&only_run(&dir.path().join("out")), "cells.csv");
    assert!(cells.iter().all(|c| c["status"] == "ok" && c["launches"] == "2"), "{cells:?}");
}

#[test]
fn a_folder_for_results_that_can_not_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario::default().write(dir.path());
    fs::write(dir.path().join("results"), "a file in the way").unwrap();
    let ran = run(bench(dir.path()).arg("run").arg(&scenario));
    assert!([2, 5].contains(&ran.code()), "{ran:?}");
    ran.says(&["results"]);
}
