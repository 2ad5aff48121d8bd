//! `bench history`: the folders that a lab has, and what is wrong with some of them.

mod support;

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};
use support::{
    bench, root, run,
    runs::{Cell, Run, noisy},
};

const MNN: &str = "mnn.tiny.w4.p32.g16-0a1b2c3d";
const LONG: &str = "mnn.tiny.w4.p96.g16-1b2c3d4e";
const GENIE: &str = "genie.tiny.w8a16.p32.g16-2c3d4e5f";

/// The made folder is one that comparisons read: one value a launch, and the figures of cells.csv are those values'.
#[test]
fn made_runs_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let values = noisy(20.0, 0.03, 7, 1);
    let cell = Cell::new(MNN).values("decode_tok_s", &values).values("load_ms", &[900.0, 60.0, 62.0, 61.0]);
    let folder = Run::night(58).cell(cell).runtime("mnn", "MNN 3.7.0").write(dir.path());
    let run = bench::gate::run::load(&folder).unwrap();
    assert_eq!((run.started_utc.as_str(), run.problems.len()), ("2026-02-28T02:00:00.000Z", 0), "{:?}", run.problems);
    let (key, cell) = run.cells.first_key_value().unwrap();
    assert_eq!((key.device.as_str(), cell.field("runtime_version"), cell.is_ok()), ("phone-1", "MNN 3.7.0", true));
    assert_eq!((cell.values("decode_tok_s"), cell.values("load_ms")), (values, vec![60.0, 62.0, 61.0]));
    let row = &support::table(&folder, "cells.csv")[0];
    assert_eq!((row["load_ms"].as_str(), row["load_ms_n"].as_str()), ("61", "3"));
}

/// A night of three cells at 3 % noise within the night and 0.3 % between nights; `mnn` is what its two cells' levels are multiplied by.
fn night(day: u32, mnn: f64, genie: f64) -> Run {
    let seed = u64::from(day);
    let tonight = noisy(1.0, 0.003, 1, 1000 + seed)[0];
    let values = |level: f64, cell: u64| noisy(level * tonight, 0.03, 20, 3 * seed + cell);
    Run::night(day)
        .cell(Cell::new(MNN).values("decode_tok_s", &values(40.0 * mnn, 0)).values("ttft_ms", &values(90.0, 7)))
        .cell(Cell::new(LONG).values("decode_tok_s", &values(30.0 * mnn, 1)).values("ttft_ms", &values(200.0, 8)))
        .cell(Cell::new(GENIE).values("decode_tok_s", &values(12.0 * genie, 2)).values("ttft_ms", &values(150.0, 9)))
}

fn history(dir: &Path, arguments: &[&str]) -> Value {
    let ran = run(bench(dir).args(["history", "runs", "--format", "json"]).args(arguments)).expect(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn human(dir: &Path, arguments: &[&str]) -> String {
    run(bench(dir).args(["history", "runs"]).args(arguments)).expect(0).stdout
}

/// The ids of runs, in the order of the history.
fn order(history: &Value) -> Vec<&str> {
    history["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect()
}

/// What is left out, as `name: why`.
fn left_out(history: &Value) -> Vec<String> {
    let words = |one: &Value| format!("{}: {}", one["name"].as_str().unwrap(), one["why"].as_str().unwrap());
    history["left_out"].as_array().unwrap().iter().map(words).collect()
}

#[test]
fn a_step_is_dated_to_its_night_and_names_what_changed() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    for day in 0..40 {
        let mut run = night(day, if day < 25 { 1.0 } else { 0.95 }, 1.0);
        run = run.runtime("mnn", if day < 25 { "MNN 3.6.1" } else { "MNN 3.7.0" });
        run.manifest["device_says"] = json!({"facts": {"build": if day < 25 { "lab/14/AP1" } else { "lab/14/AP2" },
            "dsp": {"firmware": {"value": {"value": if day < 33 { "CDSP.1" } else { "CDSP.2" }}}}}});
        run.write(&runs);
    }
    let found = history(dir.path(), &["--metric", "decode_tok_s,ttft_ms"]);
    let [ttft, decode] = &found["metrics"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!((&ttft["metric"], ttft["steps"].as_array().unwrap().len()), (&json!("ttft_ms"), 0), "{:#}", ttft["steps"]);
    let [step] = &decode["steps"].as_array().unwrap()[..] else { panic!("{:#}", decode["steps"]) };
    assert_eq!((&step["before"], &step["at"]), (&json!(24), &json!(25)));
    let cells: Vec<(&str, bool)> = step["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| (decode["cells"][cell["cell"].as_u64().unwrap() as usize]["cell"].as_str().unwrap(), cell["worse"].as_bool().unwrap()))
        .collect();
    assert_eq!(cells, [(MNN, true), (LONG, true)]);
    for cell in step["cells"].as_array().unwrap() {
        assert!((cell["ratio"].as_f64().unwrap() - 0.95).abs() < 0.01, "{cell}");
    }
    let changed: Vec<String> = step["changed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| format!("{} {} {}", d["what"].as_str().unwrap(), d["a"].as_str().unwrap(), d["b"].as_str().unwrap()))
        .collect();
    for words in ["runtime of mnn MNN 3.6.1 MNN 3.7.0", "Android build lab/14/AP1 lab/14/AP2", "runtime MNN 3.6.1 MNN 3.7.0"] {
        assert!(changed.iter().any(|c| c == words), "{words}: {changed:?}");
    }
    assert!(!changed.iter().any(|c| c.contains("CDSP") || c.contains("QAIRT")), "{changed:?}");
    let text = human(dir.path(), &[]);
    for words in [
        "step on 2026-01-26 at 20260126T020000Z-nightly-000019: 2 cells",
        "the run before: 20260125T020000Z-nightly-000018",
        "changed that night: runtime of mnn: MNN 3.6.1 -> MNN 3.7.0",
        "changed that night: Android build: lab/14/AP1 -> lab/14/AP2",
        "worse",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("cause"), "{text}");
}

#[test]
fn a_step_without_a_known_change_says_so_and_a_gain_is_one_too() {
    let dir = tempfile::tempdir().unwrap();
    for day in 0..40 {
        night(day, 1.0, if day < 20 { 1.0 } else { 1.06 }).write(&dir.path().join("runs"));
    }
    let text = human(dir.path(), &[]);
    for words in ["step on 2026-01-21", "1 cell +", ", better", &format!("cells: {GENIE}"), "nothing known changed that night"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(text.matches("step on").count(), 1, "{text}");
    // Tonight is as the nights before it, whatever happened long ago.
    let found = history(dir.path(), &[]);
    for cell in found["metrics"][0]["cells"].as_array().unwrap() {
        assert!(["unchanged", "undecided"].contains(&cell["last"]["verdict"].as_str().unwrap()), "{cell}");
        assert!(cell["last"]["mde"].as_f64().unwrap() < 0.03, "{cell}");
    }
}

#[test]
fn the_last_run_is_judged() {
    let dir = tempfile::tempdir().unwrap();
    for day in 0..30 {
        night(day, if day == 29 { 0.9 } else { 1.0 }, 1.0).write(&dir.path().join("runs"));
    }
    let mut broken = night(30, 1.0, 1.0);
    broken.cells.remove(1);
    let text = human(dir.path(), &[]);
    for words in ["nightly on phone-1 (phone): 2 regressed, 1 un", "regressed -"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    broken.cells[1] = Cell::new(GENIE).with("status", "failed").with("failure_kind", "infra").with("reason", "the cable");
    broken.write(&dir.path().join("runs"));
    let text = human(dir.path(), &[]);
    for words in [
        "2 without a figure in the last run",
        &format!("not in the last run; last figure of 2026-01-30  {LONG}"),
        &format!("lost in the last run to the device or its surroundings; last figure of 2026-01-30  {GENIE}"),
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn runs_are_ordered_by_their_beginning_and_what_does_not_count_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    for day in [3, 1, 2] {
        night(day, 1.0, 1.0).write(&runs);
    }
    // Its name says first, its manifest last.
    let mut moved = night(9, 1.0, 1.0);
    moved.id = "00-moved".to_owned();
    moved.manifest["run"] = json!("00-moved");
    moved.write(&runs);

    let odd = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut run = night(20, 1.0, 1.0);
        name.clone_into(&mut run.id);
        run.manifest["run"] = json!(name);
        change(&mut run.manifest);
        run.write(&runs)
    };
    odd("a-newer", &|m| m["format_version"] = json!(99));
    odd("b-unfinished", &|m| m["finished_utc"] = Value::Null);
    odd("c-undated", &|m| m["started_utc"] = json!("yesterday"));
    fs::write(odd("d-damaged", &|_| ()).join("manifest.json"), "{\"run\": ").unwrap();
    fs::remove_file(odd("e-without", &|_| ()).join("cells.csv")).unwrap();
    let cut = odd("f-cut", &|_| ()).join("cells.csv");
    let text = fs::read_to_string(&cut).unwrap();
    fs::write(&cut, &text[..text.len() - 40]).unwrap();
    let ragged = odd("g-ragged", &|_| ()).join("cells.csv");
    fs::write(&ragged, format!("{text}one,two\n")).unwrap();
    let newer = odd("h-newer-table", &|_| ()).join("cells.csv");
    let lines: Vec<&str> = text.lines().collect();
    let column = lines[0].split(',').position(|name| name == "format_version").unwrap();
    let mut values: Vec<&str> = lines[1].split(',').collect();
    values[column] = "7";
    fs::write(&newer, format!("{}\n{}\n", lines[0], values.join(","))).unwrap();
    fs::write(odd("i-empty", &|_| ()).join("cells.csv"), "").unwrap();
    fs::write(odd("j-other", &|_| ()).join("cells.csv"), "a,b\n1,2\n").unwrap();
    let first = runs.join("20260102T020000Z-nightly-000001");
    copy(&first, &runs.join("k-copy"));
    copy(&first, &runs.join("00-copy"));
    symlink(&runs, runs.join("l-loop")).unwrap();
    symlink("m-self", runs.join("m-self")).unwrap();
    fs::write(runs.join("n-file.csv"), "x").unwrap();
    fs::create_dir(runs.join("o-pipe")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(runs.join("o-pipe/manifest.json")).status().unwrap().success());

    let found = history(dir.path(), &[]);
    assert_eq!(
        order(&found),
        ["20260102T020000Z-nightly-000001", "20260103T020000Z-nightly-000002", "20260104T020000Z-nightly-000003", "00-moved", "f-cut"]
    );
    // Half a line is no row, and is said.
    let remarks = found["remarks"].to_string();
    assert!(remarks.contains("f-cut: cells.csv ends within a line, which is not counted: it was cut off"), "{remarks}");
    let told = left_out(&found);
    let copy_of = "has the id of 20260102T020000Z-nightly-000001";
    for (name, why) in [
        ("00-copy", copy_of),
        ("a-newer", "format 99 is newer"),
        ("b-unfinished", "--resume"),
        ("c-undated", "started_utc"),
        ("d-damaged", "manifest.json is damaged"),
        ("e-without", "cells.csv can't be read"),
        ("g-ragged", "can't be read as a table"),
        ("h-newer-table", "format 7 is newer"),
        ("i-empty", "cut off in its first line"),
        ("j-other", "no columns `cell` and `status`"),
        ("k-copy", copy_of),
        ("m-self", "can't be read"),
        ("o-pipe", "is not a file"),
    ] {
        assert!(told.iter().any(|words| words.starts_with(&format!("{name}: ")) && words.contains(why)), "{name}, {why}: {told:#?}");
    }
    // What does not look like a run folder is not spoken of.
    assert_eq!(told.len(), 13, "{told:#?}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Thousands of folders that have begun to be runs are one line, and take no time; empty ones are nobody's.
#[test]
fn folders_without_a_manifest_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    night(1, 1.0, 1.0).write(&runs);
    for number in 0..3000 {
        let folder = runs.join(format!("empty-{number:04}"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(runs.join(format!("none-{number:04}"))).unwrap();
        fs::write(folder.join("plan.toml"), "").unwrap();
    }
    let text = human(dir.path(), &[]);
    assert!(text.contains("left out: 3000 entries of the folder"), "{text}");
    assert!(text.contains("empty-0000, empty-0001, empty-0002, empty-0003, empty-0004 and 2995 more: is no run folder"), "{text}");
    assert!(text.lines().count() < 20, "{text}");
}

/// A run that is deleted between the look at the folder and the reading of its table is left out and said.
#[test]
fn a_run_may_vanish() {
    use bench::gate::history::{Wanted, collect, scan};
    let dir = tempfile::tempdir().unwrap();
    let folders: Vec<_> = (0..3).map(|day| night(day, 1.0, 1.0).write(dir.path())).collect();
    let mut found = scan(dir.path()).unwrap();
    fs::remove_dir_all(&folders[1]).unwrap();
    let metric = bench::results::schema::METRICS.iter().find(|m| m.name == "decode_tok_s").unwrap();
    let (lines, _) = collect(&mut found, Wanted { metrics: &[metric], cell: "", device: None, scenario: None, nights: None });
    assert_eq!((found.runs.len(), found.left_out.len(), lines[0].len()), (2, 1, 3));
    assert!(found.left_out[0].why.contains("cells.csv can't be read"), "{:?}", found.left_out);
    let places: Vec<usize> = lines[0][0].points.iter().map(|point| point.run).collect();
    assert_eq!(places, [0, 1], "places are those of the runs that are left");
}

/// A run of 2026-11-29 (the example of then) was made before many of today's columns, `_centre` among them.
#[test]
fn runs_of_an_older_bench_are_read_and_their_medians_are_said() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("runs")).unwrap();
    copy(&root().join("tests/support/older-run"), &dir.path().join("runs/20261129T221932Z-pc-f45e8f"));
    let found = history(dir.path(), &["--metric", "decode_tok_s,peak_mem_mb,power_avg_w"]);
    let part = |name: &str| found["metrics"].as_array().unwrap().iter().find(|part| part["metric"] == name).unwrap().clone();
    let decode = part("decode_tok_s");
    let cell = |id: &str| decode["cells"].as_array().unwrap().iter().find(|c| c["cell"] == id).unwrap().clone();
    // The median in its table.
    let genie = cell("genie.tiny-llama.fp16.p32.g16-a07015f9");
    assert_eq!(
        (&genie["points"][0]["at"], &genie["points"][0]["median"], &genie["device_class"]),
        (&json!(37.2091), &json!(true), &json!("emulator"))
    );
    assert_eq!(cell("qnn.tiny-llama.fp16.p32.g16-ff2cb743")["points"][0]["without"], "skipped");
    let remarks = found["remarks"].to_string();
    assert!(remarks.contains("1 of 1 runs have no column power_avg_w"), "{remarks}");
    assert!(remarks.contains("1 of 1 runs have no decode_tok_s_centre"), "{remarks}");

    // The fewest columns that there can be.
    let old = night(0, 1.0, 1.0).write(&dir.path().join("runs"));
    fs::write(old.join("cells.csv"), "cell,status,decode_tok_s\na,ok,20\nb,failed,\nc,ok,fast\n").unwrap();
    fs::write(old.join("manifest.json"), r#"{"started_utc": "2025-01-01T00:00:00Z", "finished_utc": "2025-01-01T01:00:00Z"}"#).unwrap();
    let found = history(dir.path(), &[]);
    let cells = found["metrics"][0]["cells"].as_array().unwrap();
    let of = |id: &str| cells.iter().find(|c| c["cell"] == id).unwrap()["points"][0].clone();
    assert_eq!((&of("a")["at"], &of("b")["without"], &of("c")["without"]), (&json!(20.0), &json!("failed"), &json!("absent")));
    assert!(found["remarks"].to_string().contains("1 figure in cells.csv are not numbers"), "{}", found["remarks"]);
    assert!(human(dir.path(), &[]).contains("scenario without a name"));
}

/// Figures of another class, method, scenario or device are another line.
#[test]
fn lines_never_mix() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let values = noisy(20.0, 0.03, 20, 1);
    let cell = || Cell::new(MNN).values("decode_tok_s", &values);
    let made = |day: u32, cell: Cell, change: &dyn Fn(&mut Value)| {
        let mut run = Run::night(day).cell(cell);
        change(&mut run.manifest);
        run.write(&runs);
    };
    made(0, cell(), &|_| ());
    made(1, cell().with("decode_method", "composed"), &|_| ());
    made(2, cell().with("device_class", "emulator"), &|_| ());
    made(3, cell().with("device", "phone-2"), &|m| m["device"]["name"] = json!("phone-2"));
    made(4, cell(), &|m| m["scenario"]["name"] = json!("weekly"));
    made(5, cell(), &|_| ());
    let found = history(dir.path(), &[]);
    let lines: Vec<String> = found["metrics"][0]["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            let word = |name: &str| c[name].as_str().unwrap().to_owned();
            let runs: Vec<&Value> = c["points"].as_array().unwrap().iter().map(|p| &p["run"]).collect();
            format!("{} {} {} [{}] {runs:?}", word("scenario"), word("device"), word("device_class"), word("method"))
                .replace("Number(", "")
                .replace(')', "")
        })
        .collect();
    assert_eq!(
        lines,
        [
            "nightly phone-1 emulator [] [2]",
            "nightly phone-1 phone [] [0, 5]",
            "nightly phone-1 phone [composed] [1]",
            "nightly phone-2 phone [] [3]",
            "weekly phone-1 phone [] [4]"
        ]
    );
    assert_eq!(order(&history(dir.path(), &["--scenario", "weekly"])).len(), 1);
    assert_eq!(order(&history(dir.path(), &["--device", "phone-2"])).len(), 1);
    assert_eq!(order(&history(dir.path(), &["--nights", "1"])).len(), 3, "one of each scenario and device");
    assert_eq!(history(dir.path(), &["--cell", "p32"])["metrics"][0]["cells"].as_array().unwrap().len(), 5);
    run(bench(dir.path()).args(["history", "runs", "--cell", "p33"])).expect(4).says(&["no cell of 6 runs has \"p33\" in its id"]);
    run(bench(dir.path()).args(["history", "runs", "--device", "x"])).expect(4).says(&["none of 6 runs is of that device and scenario"]);
}

#[test]
fn a_command_line_that_makes_no_sense_is_usage() {
    let dir = tempfile::tempdir().unwrap();
    let folder = night(0, 1.0, 1.0).write(&dir.path().join("runs"));
    fs::create_dir(dir.path().join("none")).unwrap();
    let cases: [(&[&str], &str, i32); 7] = [
        (&["no-such"], "name the folder that holds the run folders", 2),
        (&[folder.to_str().unwrap()], "is one run folder: name the folder that holds it", 2),
        (&["none"], "none holds no finished run", 4),
        (&["runs", "--metric", "decode_tok"], "did you mean decode_tok_s?", 2),
        (&["runs", "--nights", "0"], "--nights", 2),
        (&["runs", "--tolerance", "200%"], "under 100 %", 2),
        (&["runs", "--keep", "3", "--nights", "2"], "--nights", 2),
    ];
    for (arguments, words, code) in cases {
        run(bench(dir.path()).arg("history").args(arguments)).expect(code).says(&[words]);
    }
}

/// What a night may delete: beyond the last N, and not beside a step.
#[test]
fn runs_beside_a_step_are_never_old() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    for day in 0..40 {
        night(day, if day < 15 { 1.0 } else { 0.93 }, 1.0).write(&runs);
    }
    fs::create_dir(runs.join("empty")).unwrap();
    let mut unfinished = night(41, 1.0, 1.0);
    unfinished.manifest["finished_utc"] = Value::Null;
    unfinished.write(&runs);
    let text = human(dir.path(), &["--keep", "30"]);
    let names = |what: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(what)?.split(' ').next().map(|name| name[6..8].to_owned())).collect()
    };
    // Days of January: 15 and 16 lie beside the step, 1 to 10 are older than the last 30.
    assert_eq!(names("step "), ["15", "16"], "{text}");
    assert_eq!(names("old "), ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"], "{text}");
    let text = human(dir.path(), &["--keep", "20"]);
    assert_eq!(text.lines().filter(|line| line.starts_with("old ")).count(), 18, "{text}");
    assert!(!text.contains("old 20260115") && !text.contains("old 20260116"), "{text}");
}

/// A hostile name steers no terminal, and is no line of its own in what a script reads.
#[test]
fn names_are_hostile() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let mut run = night(0, 1.0, 1.0);
    run.id = "x\nold 20260102T020000Z-nightly-000001".to_owned();
    run.manifest["run"] = json!("y\u{1b}[31m");
    run.cells[0] = Cell::new("mnn.\u{1b}[2J\u{202e}.w4").values("decode_tok_s", &[1.0]);
    run.write(&runs);
    night(1, 1.0, 1.0).write(&runs);
    let text = human(dir.path(), &[]);
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    assert_eq!(human(dir.path(), &["--keep", "1"]), "");
}

/// Every PC is `local`: the same name with another processor is another line, never a step.
#[test]
fn another_processor_is_another_line() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    for day in 0..16 {
        let mut run = night(day, if day < 8 { 1.0 } else { 2.0 }, 1.0);
        run.manifest["device"]["soc_model"] = json!(if day < 8 { 57 } else { 69 });
        run.write(&runs);
    }
    let found = history(dir.path(), &["--cell", MNN]);
    let metric = &found["metrics"][0];
    let cells = metric["cells"].as_array().unwrap();
    let chips: Vec<(&Value, usize)> = cells.iter().map(|cell| (&cell["chip"], cell["points"].as_array().unwrap().len())).collect();
    assert_eq!(chips, [(&json!("soc_model 57"), 8), (&json!("soc_model 69"), 8)]);
    assert_eq!(metric["steps"], json!([]));
    let text = human(dir.path(), &["--cell", MNN]);
    assert!(text.contains(&format!("{MNN} on soc_model 57\n")) && text.contains(&format!("{MNN} on soc_model 69\n")), "{text}");
}

/// The site of thirty nights, kept by two processes at once, in a real browser: nothing complains, and what is drawn is what the tables say.
#[test]
fn the_site_of_many_nights_in_chromium() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    for day in 0..30 {
        night(day, if day < 20 { 1.0 } else { 0.9 }, 1.0).write(&runs);
    }
    let site = || {
        let mut command = bench(dir.path());
        command.args(["report", "--site", "site", "runs/20260130T020000Z-nightly-00001d"]).stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let both = [site(), site()];
    assert!(both.map(|mut child| child.wait().unwrap().success()).iter().all(|done| *done));
    let files: Vec<_> = fs::read_dir(dir.path().join("site")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files.len(), 4, "index, device, model, the run: {files:?}");
    let seen = |page: &str| {
        let mut browser = std::process::Command::new(support::chromium());
        browser.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-sync",
        ]);
        browser.args(["--disable-component-update", "--enable-logging=stderr", "--virtual-time-budget=3000"]);
        browser.arg(format!("--user-data-dir={}", dir.path().join("profile").display())).arg("--dump-dom");
        let seen = run(browser.arg(format!("file://{}/site/{page}", dir.path().display()))).expect(0);
        assert!(!seen.stderr.contains("CONSOLE"), "{page}: {}", seen.stderr);
        seen.stdout
    };
    let index = seen("index.html");
    for words in ["<b>30</b> runs", "href=\"device-phone-1.html\"", "href=\"20260130T020000Z-nightly-00001d/index.html\"", MNN, LONG] {
        assert!(index.contains(words), "{words}");
    }
    let model = seen("model-tiny.html");
    assert!(model.contains("step on 2026-01-21") && model.contains("href=\"device-phone-1.html\""), "{model}");
    let device = seen("device-phone-1.html");
    assert!(device.contains("step on 2026-01-21") && !device.contains("NaN"), "{device}");
    // The line of MNN's decode rate: 30 nights over 230 pixels, of which the first twenty lie above the others.
    let drawing = device
        .split("decode_tok_s of ")
        .find(|part| part.starts_with("mnn · tiny · w4 · 32 → 16 "))
        .unwrap()
        .split("</svg>")
        .next()
        .unwrap();
    let points = drawing.split("points=\"").map(|part| part.split('"').next().unwrap()).find(|points| points.matches(',').count() == 30);
    let heights: Vec<f64> = points.unwrap().split_whitespace().map(|at| at.split(',').nth(1).unwrap().parse().unwrap()).collect();
    let lowest_before = heights[..20].iter().copied().fold(0.0, f64::max);
    assert!(heights[20..].iter().all(|height| *height > lowest_before), "{heights:?}");
    assert!(drawing.contains("points=\"160,0 160,36"), "the step is between the 20th and the 21st night: {drawing}");
}

/// A night of a PC: the emulator's cell and the processor's own step at the same time, by different shares.
#[test]
fn classes_have_lines_and_steps_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    for day in 0..24 {
        let late = |share: f64| if day < 12 { 1.0 } else { share };
        let cell = |id: &str, class: &str, level: f64| {
            Cell::new(id).with("device_class", class).values("decode_tok_s", &noisy(level, 0.003, 10, u64::from(day) * 9 + id.len() as u64))
        };
        let night = Run::night(day).cell(cell(MNN, "pc", 40.0 * late(0.9))).cell(cell(GENIE, "emulator", 2.0 * late(1.2)));
        night.write(&dir.path().join("runs"));
    }
    let text = human(dir.path(), &[]);
    let (emulator, pc) = text.split_once("(pc)").unwrap();
    for (part, cell, change) in [(emulator, GENIE, ", better"), (pc, MNN, ", worse")] {
        assert_eq!(part.matches("step on 2026-01-13").count(), 1, "{text}");
        assert!(part.contains(&format!("cells: {cell}\n")) && part.contains(change), "{text}");
    }
    assert!(!text.contains("some better, some worse"), "{text}");
    let found = history(dir.path(), &[]);
    let steps = found["metrics"][0]["steps"].as_array().unwrap();
    let classes: Vec<_> = steps.iter().map(|step| (step["device_class"].as_str().unwrap(), step["at"].as_u64().unwrap())).collect();
    assert_eq!(classes, [("pc", 12), ("emulator", 12)]);
}
