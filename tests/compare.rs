//! `bench compare` over made-up run folders and over the committed example: what it says, how it ends, and what bad input gets.

mod support;

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use support::{
    Ran, bench, root, run,
    runs::{Cell, Run, noisy},
};

const MNN: &str = "mnn.tiny.w4.p32.g16-0a1b2c3d";
const GENIE: &str = "genie.tiny.w4a16.p32.g16-0a1b2c3d";

/// A night of two cells of a phone: 20 launches with 1 % of noise, times and rates as much slower as asked.
fn night(day: u32, slower: f64) -> Run {
    let cell = |id: &str, seed: u64| {
        let ttft = noisy(100.0 * slower, 0.01, 20, seed);
        let decode = noisy(50.0 / slower, 0.01, 20, seed + 1);
        Cell::new(id).with("launch_context", "shell").values("ttft_ms", &ttft).values("decode_tok_s", &decode)
    };
    let seed = u64::from(day) * 1000;
    let mut run = Run::night(day).cell(cell(MNN, seed)).cell(cell(GENIE, seed + 10));
    run.manifest["environment"] = json!({"ambient_c": 22.0, "supply": "usb", "case": "none"});
    run
}

fn compare(dir: &Path, a: &Run, b: &Run, more: &[&str]) -> Ran {
    let (a, b) = (a.write(&dir.join("runs")), b.write(&dir.join("runs")));
    run(bench(dir).arg("compare").args([a, b]).args(more))
}

fn json_of(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stdout))
}

#[test]
fn a_run_that_is_slower_regressed_and_one_that_is_faster_improved() {
    let dir = tempfile::tempdir().unwrap();
    let found = json_of(&compare(dir.path(), &night(0, 1.0), &night(1, 1.1), &["--format", "json"]).expect(0));
    assert_eq!((&found["verdict"], &found["counts"]["regressed"]), (&json!("regressed"), &json!(4)));
    for row in found["rows"].as_array().unwrap() {
        let truth = if row["metric"] == "decode_tok_s" { 1.0 / 1.1 } else { 1.1 };
        let (lo, hi) = (row["interval"][0].as_f64().unwrap(), row["interval"][1].as_f64().unwrap());
        assert!(lo < truth && truth < hi, "{row}");
        assert_eq!((&row["a"]["n"], &row["spread"]["source"]), (&json!(20), &json!("assumed")));
    }
    let overall = found["overall"].as_array().unwrap();
    assert_eq!(overall.len(), 2);
    assert!((overall[0]["ratio"].as_f64().unwrap() / (1.0 / 1.1) - 1.0).abs() < 0.01, "{overall:?}");
    let found = json_of(&compare(dir.path(), &night(1, 1.1), &night(2, 1.0), &["--format", "json"]).expect(0));
    assert_eq!((&found["verdict"], &found["counts"]["improved"]), (&json!("improved"), &json!(4)));
}

#[test]
fn exit_codes_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (good, slow, same) = (night(0, 1.0), night(1, 1.1), night(2, 1.0));
    for (b, fail_on, code) in [(&slow, "regressed", 10), (&slow, "undecided", 10), (&same, "regressed", 0), (&same, "undecided", 11)] {
        compare(dir.path(), &good, b, &["--fail-on", fail_on]).expect(code);
    }
    // Sessions that are said to be alike leave nothing undecided.
    compare(dir.path(), &good, &same, &["--fail-on", "undecided", "--session-spread", "0.1%"]).expect(0);
    // What broke by itself is neither a regression nor nothing.
    let mut broken = night(3, 1.0);
    broken.cells[0] = broken.cells[0].clone().with("status", "failed").with("failure_kind", "model").with("reason", "wrong tokens");
    let said = compare(dir.path(), &good, &broken, &["--fail-on", "regressed"]).expect(6);
    assert!(said.stdout.contains("A: ok; B: failed, model, wrong tokens"), "{}", said.stdout);
    let mut away = night(4, 1.0);
    away.cells[0] = away.cells[0].clone().with("status", "failed").with("failure_kind", "infra").with("reason", "no device");
    compare(dir.path(), &good, &away, &["--fail-on", "regressed"]).expect(0);
}

#[test]
fn a_history_that_is_quiet_decides_what_two_runs_can_not() {
    let dir = tempfile::tempdir().unwrap();
    for day in 0..12 {
        night(day, 1.0).write(&dir.path().join("history"));
    }
    let (a, b) = (night(20, 1.0), night(21, 1.0));
    let alone = compare(dir.path(), &a, &b, &[]).expect(0);
    assert!(
        alone.stdout.contains("phone 1.0 %, assumed") && alone.stdout.contains("undecided, within these two sessions unchanged"),
        "{}",
        alone.stdout
    );
    assert!(alone.stdout.ends_with("4 undecided\n"), "{}", alone.stdout);
    let with = json_of(&compare(dir.path(), &a, &b, &["--history", "history", "--format", "json"]).expect(0));
    assert_eq!(with["counts"]["unchanged"], json!(4), "{with:#}");
    assert!(with["rows"][0]["spread"]["sd"].as_f64().unwrap() < 0.005);
    // Too few nights are no history.
    compare(dir.path(), &a, &b, &["--history", "runs"]).expect(0).says(&["is assumed"]);
    compare(dir.path(), &a, &b, &["--history", "nowhere"]).expect(2).says(&["nowhere"]);
}

/// Beside three nights copies of one, sides of an A/B run, unfinished runs, another scenario, method, class and chip, six of each: any of them would
/// make a history of it.
#[test]
fn only_nights_are_a_history() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history");
    let odd = |day: u32, change: &dyn Fn(&mut Run)| {
        let mut run = night(day, 1.0);
        change(&mut run);
        run.write(&history);
    };
    for day in 0..3 {
        night(day, 1.0).write(&history);
    }
    for day in 3..9 {
        odd(day, &|run| run.manifest["run"] = night(0, 1.0).manifest["run"].clone());
        odd(day + 6, &|run| run.manifest["ab"] = json!({"side": "a", "partner": "x", "cells": {}}));
        odd(day + 12, &|run| run.manifest["finished_utc"] = Value::Null);
        odd(day + 18, &|run| run.manifest["scenario"]["name"] = json!("nightly-confirm"));
        odd(day + 24, &|run| {
            run.cells =
                run.cells.iter().map(|cell| cell.clone().with("ttft_method", "derived").with("decode_method", "composed")).collect();
        });
        odd(day + 36, &|run| run.manifest["device"]["soc_model"] = json!(69));
        odd(day + 30, &|run| run.cells = run.cells.iter().map(|cell| cell.clone().with("device_class", "board")).collect());
    }
    let (a, b) = (night(50, 1.0), night(51, 1.0));
    let spread = || {
        let ran = compare(dir.path(), &a, &b, &["--history", "history", "--format", "json"]).expect(0);
        (json_of(&ran)["rows"][0]["spread"].clone(), ran.stderr)
    };
    let (assumed, said) = spread();
    assert_eq!(assumed["source"], json!("assumed"), "{said}");
    for words in ["a copy, of which one counts", "is a side of an A/B run", "is not finished", "none with 5 of a cell"] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    // A and B are no nights of theirs, whatever their folders are called.
    for run in [&a, &b] {
        let folder = run.write(&history);
        fs::rename(&folder, history.join(format!("again-{}", run.id))).unwrap();
    }
    assert_eq!(spread().0["source"], json!("assumed"));
    // Two more nights, and there are five.
    for day in [60, 61] {
        night(day, 1.0).write(&history);
    }
    let (seen, said) = spread();
    assert_eq!((&seen["source"], seen["degrees"].as_f64()), (&json!("history"), Some(0.37 * 4.0)), "{said}");
}

#[test]
fn differences_stand_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut b = night(1, 1.0).runtime("mnn", "MNN 3.7.0");
    b.manifest["environment"]["ambient_c"] = json!(29.0);
    let said = compare(dir.path(), &night(0, 1.0).runtime("mnn", "MNN 3.6.1"), &b, &[]).expect(0).stdout;
    let at = |words: &str| said.find(words).unwrap_or_else(|| panic!("no {words:?} in\n{said}"));
    assert!(at("ambient temperature: 22 °C in A, 29 °C in B") < at("ttft_ms"), "{said}");
    assert!(at(&format!("runtime: MNN 3.6.1 in A, MNN 3.7.0 in B ({MNN})")) < at("ttft_ms"));
    at("runtime of mnn: MNN 3.6.1 in A, MNN 3.7.0 in B");
    at("the same in both, unless it is what is compared: runtime: MNN 3.6.1 in A, MNN 3.7.0 in B (2 rows)");
}

#[test]
fn another_chip_is_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let mut b = night(1, 1.1);
    b.manifest["device"]["soc"] = json!("SM8750");
    let mut a = night(0, 1.0);
    a.manifest["device"]["soc"] = json!("SM8650");
    let said = compare(dir.path(), &a, &b, &["--fail-on", "regressed"]).expect(11).stdout;
    assert!(said.contains("SoC: SM8650 in A, SM8750 in B - not compared") && said.ends_with("Nothing was compared.\n"), "{said}");
}

#[test]
fn bad_input_is_said_plainly() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (night(0, 1.0), night(1, 1.0));
    let say = |words: &[&str], more: &[&str]| {
        let ran = run(bench(dir.path()).arg("compare").args(words).args(more));
        format!("{} {}{}", ran.code(), ran.stderr, ran.stdout)
    };
    a.write(&dir.path().join("runs"));
    let folder = b.write(&dir.path().join("runs"));
    let (a, b) = (format!("runs/{}", a.id), format!("runs/{}", b.id));
    assert!(say(&[&a, &a], &[]).starts_with("2 error: A and B are one run"));
    assert!(say(&[&a, "runs/nothing"], &[]).contains("no cells.csv"));
    assert!(say(&[&a, &b], &["--metric", "decod_tok"]).contains("did you mean decode_tok_s?"));
    // The words of requirements, and several at once, as for the gate and the history.
    let said = say(&[&a, &b], &["--metric", "ttft,decode", "--format", "json"]);
    assert!(said.contains("\"ttft_ms\"") && said.contains("\"decode_tok_s\""), "{said}");
    assert!(say(&[&a, &b], &["--tolerance", "2"]).starts_with("2 "));

    // A copy of a run is that run; one with other figures under its name is not.
    let copy = dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for file in ["manifest.json", "cells.csv", "samples.csv", "launches.csv"] {
        fs::copy(folder.join(file), copy.join(file)).unwrap();
    }
    assert!(say(&[&b, "copy"], &[]).starts_with("2 error: A and B are one run"), "whatever its folder is called");
    let samples = fs::read_to_string(folder.join("samples.csv")).unwrap();
    let half = samples.len() - 30;
    fs::write(folder.join("samples.csv"), &samples[..half]).unwrap();
    let said = say(&[&b, "copy"], &[]);
    assert!(said.contains("both runs have the id") && said.starts_with("0 "), "{said}");

    // Cut within a line, within a table, between tables.
    let said = say(&[&a, &b], &[]);
    assert!(said.contains("B: samples.csv ends within a line, which is not counted: it was cut off"), "{said}");
    assert!(said.contains("B: samples.csv lacks launches that cells.csv counts, in 1 cell, the first"), "{said}");
    assert!(said.contains("20, 19"), "{said}");
    fs::remove_file(folder.join("samples.csv")).unwrap();
    let said = say(&[&a, &b], &[]);
    assert!(said.contains("B: samples.csv is missing") && said.ends_with("Nothing was compared.\n"), "{said}");
    fs::write(folder.join("samples.csv"), samples.replace("ttft_ms", "ttft_s")).unwrap();
    let said = say(&[&a, &b], &[]);
    assert!(said.contains("B: samples.csv has columns that this bench does not know and does not compare: ttft_s"), "{said}");
    assert!(said.contains("absent in B: ttft_ms of"), "{said}");
    fs::write(folder.join("manifest.json"), "{").unwrap();
    let said = say(&[&a, &b], &[]);
    assert!(said.contains("manifest, so nobody knows what else differs: there in A, can't be read in B"), "{said}");

    // A run that is not over, and files of a newer bench.
    let mut manifest = night(1, 1.0).manifest;
    manifest["finished_utc"] = Value::Null;
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(folder.join("samples.csv"), &samples).unwrap();
    assert!(say(&[&a, &b], &[]).contains("B: is not finished: it is running now"));
    for (file, text) in [("samples.csv", samples), ("launches.csv", fs::read_to_string(folder.join("launches.csv")).unwrap())] {
        fs::write(folder.join(file), with_version(&text, "9")).unwrap();
        let said = say(&[&a, &b], &[]);
        assert!(said.starts_with("2 error: ") && said.contains(&format!("{file}: format 9 is newer than this bench knows")), "{said}");
        fs::write(folder.join(file), text).unwrap();
    }
    manifest["format_version"] = json!(99);
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    let said = say(&[&a, &b], &[]);
    assert!(said.starts_with("2 error: ") && said.contains("manifest.json: format 99 is newer than this bench knows"), "{said}");
    fs::write(folder.join("manifest.json"), "{").unwrap();

    let cells = fs::read_to_string(folder.join("cells.csv")).unwrap();
    fs::write(folder.join("cells.csv"), with_version(&cells, "9")).unwrap();
    assert!(say(&[&a, &b], &[]).contains("format 9 is newer than this bench knows"));
}

/// A table whose rows say another version of the format.
fn with_version(table: &str, version: &str) -> String {
    let place = table.lines().next().unwrap().split(',').position(|name| name == "format_version").unwrap();
    let row = |(at, line): (usize, &str)| {
        let mut fields: Vec<&str> = line.split(',').collect();
        if at > 0 {
            fields[place] = version;
        }
        fields.join(",") + "\n"
    };
    table.lines().enumerate().map(row).collect()
}

/// Whoever asks for an exit code is not told that nothing regressed where nothing was compared.
#[test]
fn nothing_compared_is_undecided() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = night(1, 1.0);
    other.manifest["device"]["soc_model"] = json!(69);
    for fail_on in ["regressed", "undecided"] {
        let said = compare(dir.path(), &night(0, 1.0), &other, &["--fail-on", fail_on]).expect(11);
        assert!(said.stderr.contains("undecided, for nothing could be compared: ") && said.stderr.contains("soc_model"), "{}", said.stderr);
    }
    compare(dir.path(), &night(0, 1.0), &other, &[]).expect(0);
}

/// Figures that nothing real has tear no table apart.
#[test]
fn huge_figures_stay_short() {
    let dir = tempfile::tempdir().unwrap();
    let huge = |day: u32, level: f64| Run::night(day).cell(Cell::new(MNN).values("ttft_ms", &noisy(level, 0.01, 20, 1)));
    for (a, b) in [(1.0, 1e96), (1e96, 1.0), (1e96, 1.1e96)] {
        let said = compare(dir.path(), &huge(0, a), &huge(1, b), &["--session-spread", "0.1%"]).expect(0).stdout;
        let longest = said.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest < 300 && said.contains("e96"), "{said}");
    }
}

/// A computer that was busy decides nothing about times, whatever the nights before showed.
#[test]
fn a_busy_computer_decides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let pc = |day: u32, slower: f64, load: &str| {
        let mut run = night(day, slower);
        run.cells = run.cells.iter().map(|cell| cell.clone().with("device_class", "pc")).collect();
        run.manifest["device"]["class"] = json!("pc");
        run.manifest["host"] = json!({"load": load, "load_end": load});
        run
    };
    // Of 8 cores 12 are the bound.
    for day in 0..12 {
        pc(day, 1.0, "1.00 1 1 1/80 9").write(&dir.path().join("history"));
    }
    let counts = |load: &str, slower: f64| {
        let more = ["--history", "history", "--format", "json"];
        json_of(&compare(dir.path(), &pc(20, 1.0, "1.00 1 1 1/80 9"), &pc(21, slower, load), &more).expect(0))["counts"].clone()
    };
    assert_eq!(counts("11.90 1 1 1/80 9", 1.1)["regressed"], json!(4));
    for slower in [1.1, 1.0, 0.9] {
        assert_eq!(counts("12.10 1 1 1/80 9", slower)["undecided"], json!(4), "{slower}");
    }
}

#[test]
fn cells_of_one_side_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut b = night(1, 1.0);
    b.cells.remove(0);
    b.cells.push(Cell::new("qnn.tiny.fp16.p32.g16-0a1b2c3d").values("ttft_ms", &[1.0; 8]));
    let said = compare(dir.path(), &night(0, 1.0), &b, &[]).expect(0).stdout;
    assert!(said.contains(&format!("only in A: B has no such cell: {MNN}")), "{said}");
    assert!(said.contains("only in B: A has no such cell: qnn.tiny.fp16.p32.g16-0a1b2c3d"), "{said}");
}

#[test]
fn markdown_is_for_a_pull_request_and_nothing_in_it_is_the_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut b = night(1, 1.1);
    b.manifest["scenario"]["name"] = json!("n | <img src=x> @you `x`\u{202e}y");
    let said = compare(dir.path(), &night(0, 1.0), &b, &["--markdown"]).expect(0).stdout;
    assert!(said.starts_with("### bench compare: 4 regressed\n"), "{said}");
    assert!(said.contains("n &#124; &#60;img src=x&#62; &#64;you &#96;x&#96;\u{fffd}y") && !said.contains("<img"), "{said}");
    // In HTML a backslash is a backslash.
    assert!(
        said.contains("<details open><summary>ttft&#95;ms, phone (lower is better)</summary>") && said.contains("**regressed**"),
        "{said}"
    );
    for line in said.lines().filter(|line| line.starts_with("| `")) {
        assert_eq!(line.matches('|').count(), 8, "{line}");
    }
    let plain = compare(dir.path(), &night(0, 1.0), &b, &[]).expect(0).stdout;
    assert!(plain.contains("n | <img src=x> @you `x`\u{fffd}y") && !plain.contains('\u{202e}'), "{plain}");
    let both = compare(dir.path(), &night(0, 1.0), &b, &["--markdown", "pr.md", "--format", "json"]).expect(0);
    assert_eq!(json_of(&both)["verdict"], json!("regressed"));
    assert_eq!(fs::read_to_string(dir.path().join("pr.md")).unwrap(), said);
}

#[test]
fn the_example_against_a_faster_self() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let faster = dir.path().join("faster");
    fs::create_dir(&faster).unwrap();
    for file in ["manifest.json", "cells.csv", "launches.csv"] {
        fs::copy(example.join(file), faster.join(file)).unwrap();
    }
    // Every decode rate of the pc class doubled, with another program than bench's.
    let mut reader = csv::Reader::from_path(example.join("samples.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let (decode, cell) = (at("decode_tok_s"), at("cell"));
    let mut writer = csv::Writer::from_path(faster.join("samples.csv")).unwrap();
    writer.write_record(&header).unwrap();
    for record in reader.records() {
        let record = record.unwrap();
        let doubled = |text: &str| text.parse::<f64>().map_or_else(|_| text.to_owned(), |value| (value * 2.0).to_string());
        let mnn = record[cell].starts_with("mnn.");
        writer
            .write_record(record.iter().enumerate().map(|(i, field)| if i == decode && mnn { doubled(field) } else { field.to_owned() }))
            .unwrap();
    }
    writer.flush().unwrap();
    let ran = run(bench(dir.path()).arg("compare").arg(&example).arg(&faster).args([
        "--metric",
        "decode_tok_s",
        "--format",
        "json",
        "--session-spread",
        "2%",
    ]))
    .expect(0);
    let found = json_of(&ran);
    for row in found["rows"].as_array().unwrap() {
        let mnn = row["cell"].as_str().unwrap().starts_with("mnn.");
        assert_eq!(row["class"], json!(if mnn { "pc" } else { "emulator" }));
        assert!((row["ratio"].as_f64().unwrap() - if mnn { 2.0 } else { 1.0 }).abs() < 1e-9, "{row}");
        assert!(!mnn || row["verdict"] == "improved", "{row}");
    }
    let overall: Vec<(&str, f64)> =
        found["overall"].as_array().unwrap().iter().map(|o| (o["class"].as_str().unwrap(), o["ratio"].as_f64().unwrap())).collect();
    assert_eq!(overall.len(), 2, "{overall:?}");
    assert!(overall.iter().all(|(class, ratio)| (ratio - if *class == "pc" { 2.0 } else { 1.0 }).abs() < 1e-9), "{overall:?}");
}

#[test]
fn the_page_in_chromium() {
    let dir = tempfile::tempdir().unwrap();
    let mut b = night(1, 1.1);
    b.manifest["scenario"]["name"] = json!("<b>bold</b>");
    compare(dir.path(), &night(0, 1.0), &b, &["--page", "--out", "pages"]).expect(0).says(&["page: pages/"]);
    let page = dir.path().join("pages").join(format!("{}-against-{}", b.id, night(0, 1.0).id)).join("index.html");
    let mut browser = Command::new(support::chromium());
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]);
    browser.args(["--disable-component-update", "--enable-logging=stderr", "--virtual-time-budget=3000"]);
    browser
        .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()));
    let seen = run(&mut browser).expect(0);
    assert!(!seen.stderr.contains("CONSOLE"), "the page complains in the browser: {}", seen.stderr);
    // By the DOM that the browser made: two charts, four rows of cells and two of means, all regressed.
    let count = |words: &str| seen.stdout.matches(words).count();
    assert_eq!((count("<svg class=\"chart\""), count("<span class=\"verdict regressed\">regressed")), (2, 6), "{}", seen.stdout);
    assert_eq!(count("<span class=\"id\">"), 4);
    assert!(seen.stdout.contains("&lt;b&gt;bold&lt;/b&gt;") && !seen.stdout.contains("<b>bold"));
    // The page's own script, which filters and sorts, is the one that there is.
    assert_eq!((count("NaN"), count("<script")), (0, 1));
}
