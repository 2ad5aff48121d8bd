//! `bench gate`: nights that are made up, and what is wrong with some of them.

#[path = "gate/measured.rs"]
mod measured;
mod support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use support::{
    Ran, bench, run,
    runs::{Cell, Run, noisy},
};

const MNN: &str = "mnn.tiny.w4.p32.g16-0a1b2c3d";
const GENIE: &str = "genie.tiny.w4a16.p32.g16-11223344";

/// A steady cell: 20 launches with 1 % noise, the night's own level 0.2 % apart.
fn cell(id: &str, day: u32, slower: f64) -> Cell {
    let own = noisy(1.0, 0.002, 1, u64::from(day) * 7 + id.len() as u64)[0] * slower;
    let seed = u64::from(day) * 100 + id.len() as u64;
    Cell::new(id)
        .values("ttft_ms", &noisy(100.0 * own, 0.01, 20, seed))
        .values("decode_tok_s", &noisy(20.0 / own, 0.01, 20, seed + 1))
        .values("peak_mem_mb", &noisy(500.0, 0.001, 20, seed + 2))
}

fn night(day: u32, slower: f64) -> Run {
    Run::night(day).cell(cell(MNN, day, slower)).cell(cell(GENIE, day, 1.0))
}

/// Nights before day `days`, all alike.
fn steady(out: &Path, days: u32) {
    (0..days).for_each(|day| drop(night(day, 1.0).write(out)));
}

fn gate(dir: &Path, folder: &Path, more: &[&str]) -> Ran {
    run(bench(dir).arg("gate").arg(folder).args(more))
}

/// The judgement as JSON.
fn judged(dir: &Path, folder: &Path, more: &[&str], code: i32) -> Value {
    let ran = gate(dir, folder, &[more, &["--format", "json"]].concat()).expect(code);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stdout))
}

fn rows<'a>(gate: &'a Value, cell: &str, metric: &str) -> Vec<&'a Value> {
    gate["rows"].as_array().unwrap().iter().filter(|r| r["cell"] == cell && r["metric"] == metric).collect()
}

fn text(value: &Value) -> String {
    value.to_string()
}

#[test]
fn a_large_loss_is_found_at_once_and_dated_to_the_new_version() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 14);
    let tonight = night(14, 1.10).runtime("mnn", "MNN 3.7.0").write(&out);
    let (junit, markdown) = (dir.path().join("gate.xml"), dir.path().join("gate.md"));
    let files = ["--junit", junit.to_str().unwrap(), "--markdown", markdown.to_str().unwrap()];
    let found = judged(dir.path(), &tonight, &[&["--history", out.to_str().unwrap()], &files[..]].concat(), 10);
    for metric in ["ttft_ms", "decode_tok_s"] {
        let row = rows(&found, MNN, metric)[0];
        assert_eq!((&row["verdict"], &row["kind"]), (&json!("regressed"), &json!("performance")), "{row}");
        assert_eq!(row["since"]["run"], json!(tonight.file_name().unwrap().to_str().unwrap()), "{row}");
        assert!(text(&row["since"]["changed"]).contains("MNN 3.6.1 -> MNN 3.7.0"), "{row}");
        // Both are 10 % worse: ln 1.1 = 0.0953.
        let log = row["effect"]["log"].as_f64().unwrap();
        assert!((log - 0.0953).abs() < 0.02, "{row}");
    }
    assert_eq!(rows(&found, GENIE, "ttft_ms")[0]["verdict"], json!("unchanged"));
    assert!(found["rows"].as_array().unwrap().iter().all(|r| r["mde"].as_f64().is_some_and(|mde| mde > 0.0)), "every cell prints its MDE");
    assert_eq!((found["rows"].as_array().unwrap().len(), found["nights"].as_u64()), (6, Some(14)));
    let (xml, md) = (fs::read_to_string(junit).unwrap(), fs::read_to_string(markdown).unwrap());
    assert!(xml.contains("tests=\"6\" failures=\"2\" errors=\"0\" skipped=\"0\""), "{xml}");
    assert!(md.contains("### bench gate: regressed") && md.contains("| regressed | "), "{md}");

    let human = run(bench(dir.path()).env("GITHUB_ACTIONS", "true").arg("gate").arg(&tonight).arg("--history").arg(&out)).expect(10);
    assert!(human.stdout.contains("since 2026-01-15T02:00:00Z") && human.stdout.contains("finds"), "{}", human.stdout);
    assert_eq!(human.stderr.matches("::error title=").count(), 2, "{}", human.stderr);
}

#[test]
fn a_quiet_night_passes() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 14);
    let tonight = night(14, 1.0).write(&out);
    let found = judged(dir.path(), &tonight, &["--history", "results"], 0);
    assert!(found["rows"].as_array().unwrap().iter().all(|r| r["verdict"] == "unchanged"), "{found}");
    assert!(found["against"].as_str().unwrap().starts_with("14 nights from 2026-01-01 to 2026-01-14"), "{found}");
    // The baseline begins the history anew.
    let base = out.join(Run::night(10).id);
    let found = judged(dir.path(), &tonight, &["--history", "results", "--baseline", base.to_str().unwrap(), "--limit", "20%"], 0);
    assert_eq!(found["nights"], json!(4));
}

#[test]
fn one_baseline_says_what_it_assumes() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let (base, tonight) = (night(3, 1.0).write(&out), night(4, 1.25).write(&out));
    let base = base.to_str().unwrap();
    let found = judged(dir.path(), &tonight, &["--baseline", base], 10);
    let row = rows(&found, MNN, "decode_tok_s")[0];
    assert!(row["verdict"] == "regressed" && text(&row["reasons"]).contains("assumed"), "{row}");
    let same = gate(dir.path(), Path::new(base), &["--baseline", base]).expect(2);
    assert!(same.stderr.contains("nothing can be learnt from a run against itself"), "{}", same.stderr);
}

#[test]
fn with_nothing_to_compare_with_it_is_undecided() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let tonight = night(0, 1.0).write(&out);
    let found = judged(dir.path(), &tonight, &["--history", "results"], 11);
    assert!(text(&rows(&found, MNN, "ttft_ms")[0]["reasons"]).contains("no night before this one"));
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    judged(dir.path(), &tonight, &["--history", empty.to_str().unwrap()], 11);
    let found = judged(dir.path(), &tonight, &[], 11);
    assert!(text(&found["against"]).contains("--baseline RUN or --history DIR"), "{found}");
    assert!(gate(dir.path(), &tonight, &["--history", "nowhere"]).expect(2).stderr.contains("nowhere"));
    assert!(gate(dir.path(), &empty, &[]).expect(2).stderr.contains("not a finished run folder"));
}

fn failing(id: &str, kind: &str, reason: &str) -> Cell {
    Cell::new(id).with("status", if kind == "verify" { "unverified" } else { "failed" }).with("failure_kind", kind).with("reason", reason)
}

#[test]
fn failures_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let judge = |name: &str, fails: &[u32], kind: &str, code: i32| {
        let out = dir.path().join(name);
        for day in 0..8 {
            let mnn = if fails.contains(&day) { failing(MNN, kind, "the program ended with signal 11") } else { cell(MNN, day, 1.0) };
            Run::night(day).cell(mnn).cell(cell(GENIE, day, 1.0)).write(&out);
        }
        let found = judged(dir.path(), &out.join(Run::night(7).id), &["--history", name, "--limit", "5%"], code);
        let row = rows(&found, MNN, "").first().map(|r| (*r).clone());
        (row.unwrap_or(Value::Null), found)
    };
    let (row, _) = judge("new", &[7], "runtime", 10);
    assert_eq!((&row["kind"], &row["verdict"], &row["since"]["run"]), (&json!("failure"), &json!("regressed"), &json!(Run::night(7).id)));
    assert!(text(&row["reasons"]).contains("signal 11"), "{row}");
    let (row, _) = judge("wrong", &[6, 7], "verify", 10);
    assert_eq!((&row["kind"], &row["since"]["run"]), (&json!("failure"), &json!(Run::night(6).id)), "{row}");
    let (row, _) = judge("infra", &[7], "infra", 11);
    assert_eq!((&row["kind"], &row["verdict"]), (&json!("infra"), &json!("undecided")), "{row}");
    let (row, _) = judge("flaky", &[2, 5, 7], "runtime", 11);
    assert_eq!((&row["kind"], &row["verdict"]), (&json!("flaky"), &json!("undecided")), "{row}");
    let (row, _) = judge("always", &[0, 1, 2, 3, 4, 5, 6, 7], "runtime", 11);
    assert_eq!((&row["kind"], &row["verdict"]), (&json!("failure"), &json!("undecided")), "{row}");
    let (row, found) = judge("once", &[4], "model", 0);
    assert!(row.is_null() && text(&found["notes"]).contains("flaky: failed in 1 of the last 7 nights"), "{found}");
}

#[test]
fn missing_cells_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 8);
    let skipped = Cell::new(GENIE).with("status", "skipped").with("reason", "no Genie");
    let tonight = Run::night(8).cell(skipped).write(&out);
    let found = judged(dir.path(), &tonight, &["--history", "results"], 11);
    let gone = rows(&found, MNN, "")[0];
    assert!(gone["kind"] == "missing" && text(&gone["reasons"]).contains("has no row"), "{gone}");
    assert!(text(&rows(&found, GENIE, "")[0]["reasons"]).contains("no Genie"));
}

#[test]
fn a_baseline_of_another_soc_or_class_is_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let mut base = night(0, 1.0);
    base.manifest["device"]["soc_model"] = json!(69);
    base.manifest["device"]["cpu"] = json!("SM8750");
    let base = base.write(&out);
    let tonight = night(1, 1.5).write(&out);
    let found = judged(dir.path(), &tonight, &["--baseline", base.to_str().unwrap()], 11);
    let row = rows(&found, MNN, "ttft_ms")[0];
    assert!(row["effect"].is_null() && text(&row["reasons"]).contains("not compared"), "{row}");
    assert!(text(&found["notes"]).contains("not comparable"), "{found}");

    let emulated = |day| Run::night(day).cell(cell(MNN, day, 1.0).with("device_class", if day == 2 { "emulator" } else { "phone" }));
    let (base, tonight) = (emulated(2).write(&out), emulated(3).write(&out));
    let found = judged(dir.path(), &tonight, &["--baseline", base.to_str().unwrap()], 11);
    assert!(rows(&found, MNN, "ttft_ms")[0]["effect"].is_null(), "{found}");
    let other = Run { id: "other".to_owned(), ..night(4, 1.0) };
    let mut other = other;
    other.manifest["run"] = json!("other");
    other.manifest["device"]["name"] = json!("phone-2");
    other.cells.iter_mut().for_each(|c| drop(c.fields.insert("device".to_owned(), "phone-2".to_owned())));
    let other = other.write(&out);
    let found = judged(dir.path(), &tonight, &["--baseline", other.to_str().unwrap()], 11);
    assert!(text(&found["notes"]).contains("figures of two devices are not compared"), "{found}");
}

#[test]
fn composed_figures_are_gated_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let qnn = "qnn.tiny.w4a16.p32.g16-55667788";
    for day in 0..8 {
        let composed = cell(qnn, day, if day == 7 { 1.5 } else { 1.0 }).with("ttft_method", "composed").with("decode_method", "composed");
        Run::night(day).cell(composed).write(&out);
    }
    let tonight = out.join(Run::night(7).id);
    // The night's memory is judged, its times are not.
    let found = judged(dir.path(), &tonight, &["--history", "results"], 0);
    assert!(rows(&found, qnn, "ttft_ms").is_empty() && text(&found["notes"]).contains("ttft_ms: nothing to judge"), "{found}");
    // With nothing judged nothing has passed.
    let found = judged(dir.path(), &tonight, &["--history", "results", "--metric", "ttft_ms"], 11);
    assert_eq!(found["rows"], json!([]));
    judged(dir.path(), &tonight, &["--history", "results", "--metric", "energy_net_j"], 11);
    let found = judged(dir.path(), &tonight, &["--history", "results", "--composed"], 10);
    assert_eq!(rows(&found, qnn, "ttft_ms")[0]["verdict"], json!("regressed"));
}

#[test]
fn a_metric_that_is_gone_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 8);
    let mut without = cell(MNN, 8, 1.0).with("absent", "ttft_ms=the tool gives none");
    without.metrics.remove("ttft_ms");
    let composed = cell(GENIE, 8, 1.0).with("ttft_method", "composed");
    let tonight = Run::night(8).cell(without).cell(composed).write(&out);
    let found = judged(dir.path(), &tonight, &["--history", "results"], 11);
    for (cell, why) in [(MNN, "not measured tonight: the tool gives none"), (GENIE, "tonight it is composed")] {
        let row = rows(&found, cell, "ttft_ms")[0];
        assert!(row["verdict"] == "undecided" && row["kind"] == "missing" && text(&row["reasons"]).contains(why), "{row}");
        assert_eq!(rows(&found, cell, "decode_tok_s")[0]["verdict"], json!("unchanged"));
    }
    assert_eq!(rows(&judged(dir.path(), &tonight, &["--history", "results", "--composed"], 11), GENIE, "ttft_ms").len(), 1);
}

#[test]
fn without_its_plan_nobody_knows_what_is_required() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 8);
    let tonight = night(8, 1.0).write(&out);
    judged(dir.path(), &tonight, &["--history", "results"], 0);
    fs::write(tonight.join("plan.toml"), "cells = 1").unwrap();
    let found = judged(dir.path(), &tonight, &["--history", "results"], 11);
    assert!(text(&found["notes"]).contains("what the scenario requires is unknown"), "{found}");
    fs::remove_file(tonight.join("plan.toml")).unwrap();
    judged(dir.path(), &tonight, &["--history", "results"], 11);
}

/// Eighty nights of a loss do not make it the level: one accepts it by naming the first of them.
#[test]
fn an_old_loss_stays_one_until_it_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let night = |day: u32| Run::night(day).cell(cell(MNN, day, if day < 20 { 1.0 } else { 1.05 })).write(&out);
    let folders: Vec<PathBuf> = (0..100).map(night).collect();
    let found = judged(dir.path(), &folders[99], &["--history", "results"], 10);
    let row = rows(&found, MNN, "decode_tok_s")[0];
    assert_eq!((&row["verdict"], &row["since"]["run"], &found["nights"]), (&json!("regressed"), &json!(Run::night(20).id), &json!(99)));
    let found = judged(dir.path(), &folders[99], &["--history", "results", "--baseline", folders[20].to_str().unwrap()], 0);
    assert_eq!(found["nights"], json!(79));
}

/// Another chip's figures under one name of a device are another line: they neither bar the nights nor become their level.
#[test]
fn another_processor_is_another_history() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 8);
    let foreign = |day: u32| {
        let mut run = night(day, 0.5);
        run.manifest["device"]["soc_model"] = json!(69);
        run.write(&out)
    };
    foreign(8);
    let tonight = night(9, 1.0).write(&out);
    let found = judged(dir.path(), &tonight, &["--history", "results"], 0);
    assert!(text(&found["notes"]).contains("of another processor than soc_model 57, and not compared: 1 run in the history"), "{found}");
    assert_eq!((&rows(&found, MNN, "ttft_ms")[0]["verdict"], &found["nights"]), (&json!("unchanged"), &json!(8)));
    // A baseline of another chip, with nights of this one since.
    let base = foreign(2);
    let found = judged(dir.path(), &tonight, &["--history", "results", "--baseline", base.to_str().unwrap()], 0);
    assert!(text(&found["notes"]).contains("the baseline is of the processor soc_model 69"), "{found}");
    assert_eq!(rows(&found, MNN, "ttft_ms")[0]["baseline"], json!(5), "{found}");
}

#[test]
fn a_loss_of_time_on_a_busy_computer_is_no_regression() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let pc = |day: u32, slower: f64, load: &str| {
        let mut own = cell(MNN, day, slower).with("device_class", "pc");
        own.metrics.get_mut("peak_mem_mb").unwrap().iter_mut().for_each(|value| *value *= slower);
        let mut run = Run::night(day).cell(own);
        run.manifest["device"]["class"] = json!("pc");
        run.manifest["host"] = json!({"load": load, "load_end": load});
        run.write(&out)
    };
    (0..8).for_each(|day| drop(pc(day, 1.0, "1.00 1 1 1/80 9")));
    // Of 8 cores 12 are the bound.
    let quiet = judged(dir.path(), &pc(8, 1.25, "11.90 1 1 1/80 9"), &["--history", "results"], 10);
    let busy = judged(dir.path(), &pc(9, 1.25, "12.10 1 1 1/80 9"), &["--history", "results"], 10);
    let said = |found: &Value| ["ttft_ms", "decode_tok_s", "peak_mem_mb"].map(|metric| rows(found, MNN, metric)[0]["verdict"].clone());
    assert_eq!(said(&quiet), [json!("regressed"), json!("regressed"), json!("regressed")]);
    assert_eq!(said(&busy), [json!("undecided"), json!("undecided"), json!("regressed")]);
    assert!(text(&busy["notes"]).contains("load 12.1 of 8 CPUs"), "{busy}");
    // Nor is a gain one, nor is anything excluded.
    for faster in [0.8, 1.0] {
        let busy = judged(dir.path(), &pc(10, faster, "12.10 1 1 1/80 9"), &["--history", "results"], 11);
        assert_eq!(said(&busy)[..2], [json!("undecided"), json!("undecided")], "{busy}");
        assert!(text(&busy["rows"][0]["reasons"]).contains("busy with something else"), "{busy}");
    }
    // The nights since then hold no busy one in their level.
    let again = dir.path().join("again");
    let night = |day: u32, slower: f64, load: &str| {
        let from = pc(20 + day, slower, load);
        let to = again.join(from.file_name().unwrap());
        fs::create_dir_all(&again).unwrap();
        fs::rename(from, &to).unwrap();
        to
    };
    (0..8).for_each(|day| drop(night(day, 1.0, "1.00 1 1 1/80 9")));
    (8..10).for_each(|day| drop(night(day, 2.0, "12.10 1 1 1/80 9")));
    let after = judged(dir.path(), &night(10, 1.0, "1.00 1 1 1/80 9"), &["--history", "again", "--metric", "ttft,memory"], 0);
    let of = |metric: &str| rows(&after, MNN, metric)[0].clone();
    assert_eq!((&of("ttft_ms")["verdict"], &of("ttft_ms")["baseline"]), (&json!("unchanged"), &json!(8)), "{after}");
    assert_eq!(of("peak_mem_mb")["baseline"], json!(10), "memory is the run's own: {after}");
    assert!(text(&after["notes"]).contains("2 of 11 runs were made on a computer that may have been busy with something else"), "{after}");
    // The history says the same of its last run.
    let found = run(bench(dir.path()).args(["history", "again", "--metric", "ttft", "--format", "json"])).expect(0);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    let last = &found["metrics"][0]["cells"][0]["last"];
    assert_eq!((&last["baseline"], &last["effect"]), (&json!(8), &of("ttft_ms")["effect"]), "{last}");
}

/// What can't be written costs nobody the judgement.
#[test]
fn a_file_that_can_not_be_written_is_said_after_the_judgement() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 8);
    let tonight = night(8, 1.2).write(&out);
    let files = ["--history", "results", "--junit", "nowhere/gate.xml", "--markdown", "gate.md"];
    let ran = gate(dir.path(), &tonight, &files).expect(5);
    assert!(ran.stdout.contains("regressed") && ran.stderr.contains("nowhere/gate.xml: "), "{ran:?}");
    assert!(fs::read_to_string(dir.path().join("gate.md")).unwrap().contains("bench gate: regressed"));
    let quiet = gate(dir.path(), &out.join(Run::night(7).id), &["--history", "results", "--confirm"]).expect(0);
    assert!(quiet.stdout.contains("nothing looks regressed, so nothing was measured again"), "{}", quiet.stdout);
}

/// One night has one interval, whoever judges it.
#[test]
fn gate_and_history_say_the_same_of_a_night() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 9);
    fs::write(out.join("README.md"), "what is here").unwrap();
    let found = judged(dir.path(), &out.join(Run::night(8).id), &["--history", "results"], 0);
    assert_eq!(found["notes"].as_array().unwrap().iter().filter(|note| text(note).contains("left out")).count(), 0, "{found}");
    for metric in ["ttft", "decode", "memory"] {
        let ran = run(bench(dir.path()).args(["history", "--metric", metric, "--format", "json"])).expect(0);
        let history: Value = serde_json::from_str(&ran.stdout).unwrap();
        for cell in history["metrics"][0]["cells"].as_array().unwrap() {
            let row = rows(&found, cell["cell"].as_str().unwrap(), history["metrics"][0]["metric"].as_str().unwrap())[0];
            for name in ["effect", "verdict", "mde", "tolerance", "window", "baseline"] {
                assert_eq!(row[name], cell["last"][name], "{metric} {name}");
            }
        }
        assert_eq!(history["left_out"], json!([]));
    }
}

#[test]
fn hostile_and_damaged_folders() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    steady(&out, 8);
    let tonight = night(8, 1.0).write(&out);
    // A copy under another name, a newer format, a cut table, a foreign file, a table with words for numbers.
    let copy = |from: &Path, to: &str| -> PathBuf {
        let to = out.join(to);
        fs::create_dir(&to).unwrap();
        for file in fs::read_dir(from).unwrap().flatten() {
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
        to
    };
    copy(&out.join(Run::night(1).id), "copy");
    let mut newer = night(2, 1.0);
    newer.id = "newer".to_owned();
    newer.manifest["run"] = json!("newer");
    newer.manifest["format_version"] = json!(99);
    newer.write(&out);
    let cut = out.join(Run::night(3).id).join("cells.csv");
    let table = fs::read_to_string(&cut).unwrap();
    fs::write(&cut, &table[..table.len() - 40]).unwrap();
    let words = out.join(Run::night(4).id).join("cells.csv");
    let header = fs::read_to_string(&words).unwrap();
    let centre = support::table(words.parent().unwrap(), "cells.csv")[0]["ttft_ms_centre"].clone();
    fs::write(&words, header.replace(&centre, "NaN")).unwrap();
    let found = judged(dir.path(), &tonight, &["--history", "results"], 0);
    let notes = text(&found["notes"]);
    for words in [
        "left out: copy: has the id",
        "left out: newer: format 99",
        "cells.csv ends within a line, which is not counted",
        "are not numbers",
    ] {
        assert!(notes.contains(words), "no {words:?} in {notes}");
    }
    // Tonight's own table is damaged.
    let own = copy(&tonight, "damaged").join("cells.csv");
    let table = fs::read_to_string(&own).unwrap();
    fs::write(&own, &table[..table.len() - 40]).unwrap();
    let found = judged(dir.path(), own.parent().unwrap(), &["--history", "results"], 11);
    assert!(text(&found["notes"]).contains("cells.csv ends within a line, which is not counted: it was cut off"), "{found}");
    assert!(text(&rows(&found, GENIE, "")[0]["reasons"]).contains("the run has no row for this cell"), "{found}");
    fs::write(&own, &table[..40]).unwrap();
    let ran = gate(dir.path(), own.parent().unwrap(), &["--history", "results"]).expect(2);
    assert!(ran.stderr.contains("cells.csv"), "{}", ran.stderr);
}

#[test]
fn hostile_names_stay_text() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let name = "mnn.<b>&\"|`@all`\u{1b}[31m.w4.p32.g16-0a1b2c3d";
    for day in 0..8 {
        Run::night(day).cell(cell(name, day, if day == 7 { 1.5 } else { 1.0 }).with("reason", "x")).write(&out);
    }
    let tonight = out.join(Run::night(7).id);
    let (xml, md) = (dir.path().join("a.xml"), dir.path().join("a.md"));
    let files = ["--history", "results", "--junit", "a.xml", "--markdown", "a.md", "--annotations"];
    let ran = gate(dir.path(), &tonight, &files).expect(10);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'));
    let md = fs::read_to_string(md).unwrap();
    assert!(!md.contains("<b>") && !md.contains("@all") && !md.contains('`'), "{md}");
    // A parser that is not ours reads it, and gives the name back.
    let script = "import sys, xml.etree.ElementTree as e\nr = e.parse(sys.argv[1]).getroot()\ns = r[0]\n\
        assert (r.tag, s.tag, [c.tag for c in s][0], [c.tag for c in s][-2:]) == ('testsuites', 'testsuite', 'properties', ['system-out', 'system-err'])\n\
        t = s.findall('testcase')\nassert len(t) == int(s.get('tests')) == 3, len(t)\n\
        assert len(s.findall('testcase/failure')) == int(s.get('failures')) == 2\n\
        assert all(c.get('classname') and c.get('name') and c.get('time') == '0' for c in t)\nprint(t[0].get('classname'))";
    let python = run(std::process::Command::new("python3").args(["-c", script]).arg(xml)).expect(0);
    assert!(python.stdout.starts_with("phone-1.mnn.<b>&\"|`@all`"), "{}", python.stdout);
}
