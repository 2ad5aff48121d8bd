//! The command line: exit codes (design 7 and 2b.17), data that prints right, and words that help.

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use support::{Ran, Scenario, bench, only_run, root, run, table};

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stdout))
}

fn here() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_command_line_that_makes_no_sense_is_usage() {
    let dir = here();
    let scenario = Scenario::default().write(dir.path());
    let scenario = scenario.to_str().unwrap();
    let cases: [(&[&str], &str); 12] = [
        (&[], "Usage"),
        (&["fly"], "unrecognized subcommand"),
        (&["run"], "SCENARIO"),
        (&["run", scenario, "--format", "xml"], "xml"),
        (&["run", scenario, "--retry-failed"], "--resume"),
        (&["check"], "SCENARIOS"),
        (&["parse", "no-such-tool", scenario], "no backend `no-such-tool`: "),
        (&["runtimes", "install", "cuda"], "python or qairt or android"),
        (&["completions", "teletype"], "teletype"),
        (&["plan", scenario, "--only", "quant=w5"], "`w5` is not a value of `quant`"),
        (&["plan", scenario, "--only", "backend"], "is not key=value"),
        (&["report", "."], "not a run folder"),
    ];
    for (arguments, words) in cases {
        run(bench(dir.path()).args(arguments)).expect(2).says(&[words]);
    }
    let help = run(bench(dir.path()).arg("--help")).expect(0);
    for word in ["run", "plan", "check", "runtimes", "report", "parse", "schema", "completions", "130 interrupted"] {
        assert!(help.stdout.contains(word), "{word}");
    }
}

/// A file's name is text like any other: it steers no terminal and turns no line.
#[test]
fn a_hostile_path_stays_text() {
    let dir = here();
    let bad = "x\u{1b}[31m\u{202e}y.toml";
    fs::write(dir.path().join(bad), "name = \"\u{202e}z\"\n[device\u{202e}x]\n").unwrap();
    let good = "g\u{1b}[31m\u{202e}.toml";
    fs::copy(Scenario::default().write(dir.path()), dir.path().join(good)).unwrap();
    let gone = "gone\u{1b}[31m\u{202e}.toml";
    for (arguments, code) in [
        (vec!["check", bad], 3),
        (vec!["check", good], 0),
        (vec!["check", gone], 3),
        (vec!["plan", bad], 3),
        (vec!["plan", good], 0),
        (vec!["run", gone], 3),
        (vec!["doctor", bad], 3),
        (vec!["gate", gone], 2),
        (vec!["compare", gone, bad], 2),
        (vec!["history", gone], 2),
        (vec!["plan", good, "--format", bad], 2),
        (vec!["compare", good, good, "--metric", bad], 2),
        (vec![bad], 2),
    ] {
        let ran = run(bench(dir.path()).args(&arguments)).expect(code);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(['\u{1b}', '\u{202e}']), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_scenario_that_is_not_there_or_not_right_is_three() {
    let dir = here();
    for verb in ["run", "plan", "check"] {
        run(bench(dir.path()).args([verb, "no-such.toml"])).expect(3).says(&["no-such.toml"]);
    }
    fs::write(dir.path().join("broken.toml"), "name = \"x\"\n[device\n").unwrap();
    let ran = run(bench(dir.path()).args(["run", "broken.toml"])).expect(3).says(&["broken.toml", "the scenario is invalid"]);
    assert_eq!(ran.stdout, "");
    assert!(!dir.path().join("results").exists(), "a run folder of an invalid scenario");
}

/// Three mistakes at known places of a file.
fn wrong(dir: &Path, name: &str) -> String {
    let good = Scenario::default().write(dir);
    let text = fs::read_to_string(good).unwrap();
    let text = text
        .replace("quant = \"fp32\"", "quant = \"fp23\"")
        .replace("timeout = \"60s\"", "timeuot = \"60s\"")
        .replace("geometry = \"tiny.toml\"", "geometry = \"tinny.toml\"");
    fs::write(dir.join(name), &text).unwrap();
    text
}

fn place(text: &str, word: &str) -> (u64, u64) {
    let line = text.lines().position(|l| l.contains(word)).unwrap();
    (line as u64 + 1, text.lines().nth(line).unwrap().find(word).unwrap() as u64 + 1)
}

#[test]
fn check_names_every_mistake_of_every_file_at_once() {
    let dir = here();
    let good = Scenario { name: "good", variants: vec!["ok", "x"], ..Scenario::default() }.write(dir.path());
    let text = wrong(dir.path(), "bad.toml");
    wrong(dir.path(), "worse.toml");
    fs::write(dir.path().join("cut.toml"), "name = ").unwrap();
    let files = ["bad.toml", good.to_str().unwrap(), "worse.toml", "cut.toml"];

    let ran = run(bench(dir.path()).arg("check").args(files).args(["--format", "json"])).expect(3);
    let all = json(&ran);
    let oks: Vec<bool> = all.as_array().unwrap().iter().map(|f| f["ok"].as_bool().unwrap()).collect();
    assert_eq!(oks, [false, true, false, false]);
    assert_eq!(all[1]["cells"], 2);
    for place_of in [0, 2] {
        let problems = all[place_of]["problems"].as_array().unwrap();
        let errors: Vec<&Value> = problems.iter().filter(|p| p["severity"] == "error").collect();
        assert_eq!(errors.len(), 3, "{problems:#?}");
        for (word, help) in [("\"fp23\"", "fp32"), ("timeuot", "timeout"), ("\"tinny.toml\"", "relative")] {
            let (line, column) = place(&text, word);
            let found = errors.iter().find(|p| p["line"] == line).unwrap_or_else(|| panic!("nothing on line {line}: {errors:#?}"));
            assert_eq!(found["column"], column, "{found}");
            assert!(found["help"].as_str().unwrap().contains(help), "{found}");
        }
    }

    let human = run(bench(dir.path()).arg("check").args(files)).expect(3);
    for words in ["bad.toml:", "worse.toml:", "cut.toml:", "timeuot", "did you mean"] {
        assert!(human.stderr.contains(words), "no {words:?} in {}", human.stderr);
    }
    // The wrong text is shown and underlined.
    assert!(human.stderr.contains("quant = \"fp23\"") && human.stderr.matches("──").count() > 2, "{}", human.stderr);
    assert!(human.stdout.contains("good.toml: ok, 2 cells"), "{}", human.stdout);

    let shipped = root().join("scenarios/pc.toml");
    run(bench(dir.path()).arg("check").arg(shipped)).expect(0);
}

#[test]
fn plan_shows_cells_in_both_forms_and_only_picks_some() {
    let dir = here();
    let pc = root().join("scenarios/pc.toml");
    let plan = |more: &[&str]| run(bench(dir.path()).arg("plan").arg(&pc).args(more));
    let all = json(&plan(&["--format", "json"]).expect(0));
    let ids = |v: &Value| v["cells"].as_array().unwrap().iter().map(|c| c["cell"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let unique: BTreeSet<String> = ids(&all).into_iter().collect();
    // Four engines, three quantisations each, two prompt lengths.
    assert_eq!((ids(&all).len(), unique.len()), (24, 24));
    let (expected, worst) = (all["expected_s"].as_f64().unwrap(), all["worst_s"].as_f64().unwrap());
    assert!(expected > 0.0 && expected < worst, "{all}");
    // Design 2b.2: an id is backend, model, quantisation, lengths, and eight hex digits.
    for id in &unique {
        let (name, hash) = id.rsplit_once('-').unwrap();
        assert!(hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        assert!(name.ends_with(".p32.g16") || name.ends_with(".p96.g16"), "{id}");
    }

    let some = json(&plan(&["--only", "backend=genie,quant=w4a16,backend=mnn", "--format", "json"]).expect(0));
    assert!(ids(&some).iter().all(|id| id.starts_with("genie.tiny-llama.w4a16.")), "mnn has no w4a16: {some}");
    assert_eq!(ids(&some).len(), 2);
    let one = json(&plan(&["--only", &format!("cell={}", ids(&all)[0]), "--format", "json"]).expect(0));
    assert_eq!(ids(&one), ids(&all)[..1]);
    plan(&["--only", "backend=genie,quant=fp32"]).expect(4).says(&["selects none"]);

    let human = plan(&["--only", "prompt-tokens=96"]).expect(0).stdout;
    let lines = |beginning: &str| human.lines().filter(|l| l.starts_with(beginning)).count();
    // As many as a run would measure and skip: three of them are of QNN.
    assert_eq!((lines("run "), lines("skip  qnn."), lines("skip ")), (9, 3, 3), "{human}");
    assert!(human.contains("\n9 cells to run, 3 skipped; "), "{human}");
    assert!(
        all["cells"].as_array().unwrap().iter().all(|c| c["skipped"].is_string() == c["cell"].as_str().unwrap().starts_with("qnn.")),
        "{all}"
    );
    assert!(human.contains("expected") && human.contains("worst"), "{human}");
    // There is no SDK here. What `bench run` would install is no reason to skip a cell.
    let lacks: Vec<&str> = human.lines().filter(|l| l.contains("its cells are skipped unless this is mended")).collect();
    assert!(lacks.len() == 1 && lacks[0].starts_with("qnn: ") && lacks[0].contains("QAIRT"), "{human}");
    assert!(!human.contains("flash"), "nothing is sent anywhere: {human}");

    let phone =
        Scenario { device: "soc = \"SM8650\"".to_owned(), variants: vec!["ok", "nulls"], model_bytes: 4_000_000, ..Scenario::default() };
    let planned = run(bench(dir.path()).arg("plan").arg(phone.write(dir.path()))).expect(0).stdout;
    // Two cells share the one file.
    assert!(planned.contains("models take 4 MB on the device's flash;"), "{planned}");
    // No runner for a phone is here: nothing would be measured, and nothing sent.
    let planned = run(bench(dir.path()).arg("plan").arg(root().join("scenarios/phone.toml"))).expect(0).stdout;
    assert!(planned.contains("models take 0 MB on") && planned.contains("\n0 cells to run, 8 skipped; 0 launches;"), "{planned}");
}

#[test]
fn nothing_to_run_is_four_and_an_unavailable_backend_five() {
    let dir = here();
    // A context too short for the prompt: no cell can run.
    let path = Scenario::default().write(dir.path());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("context = 64", "context = 20")).unwrap();
    run(bench(dir.path()).arg("run").arg(&path).arg("--no-report")).expect(4).says(&["nothing to run"]);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    assert_eq!(cells[0]["status"], "skipped");
    assert_eq!(cells[0]["reason"], "context 20 is shorter than 16 prompt + 8 generated tokens");

    // One backend is there and one is not: skipped with its remedy and exit 0, or 5 with --strict.
    let dir = here();
    let path = Scenario::default().write(dir.path());
    let both = fs::read_to_string(&path).unwrap().replace(
        "[matrix]\nbackend = \"standin\"",
        "[backends.absent]\ncommand = [\"no-such-engine\"]\n[matrix]\nbackend = [\"standin\", \"absent\"]",
    );
    fs::write(&path, &both).unwrap();
    run(bench(dir.path()).arg("run").arg(&path).args(["--no-report", "--out", "lenient"])).expect(0);
    let cells = table(&only_run(&dir.path().join("lenient")), "cells.csv");
    let statuses: Vec<&str> = cells.iter().map(|c| c["status"].as_str()).collect();
    assert_eq!(statuses, ["ok", "skipped"]);
    run(bench(dir.path()).arg("run").arg(&path).args(["--no-report", "--strict"])).expect(5).says(&["no-such-engine"]);
    // The missing one alone.
    run(bench(dir.path()).arg("run").arg(&path).args(["--no-report", "--only", "backend=absent"])).expect(5).says(&["no-such-engine"]);
    // 5 before 6.
    fs::write(&path, both.replace("variant = [\"ok\"]", "variant = [\"exit-3\"]")).unwrap();
    run(bench(dir.path()).arg("run").arg(&path).args(["--no-report"])).expect(6);
    run(bench(dir.path()).arg("run").arg(&path).args(["--no-report", "--strict"])).expect(5);
}

#[test]
fn the_schema_is_the_shipped_one_and_knows_the_shipped_scenarios() {
    let dir = here();
    let printed = run(bench(dir.path()).arg("schema")).expect(0).stdout;
    assert_eq!(printed, fs::read_to_string(root().join("scenarios/schema.json")).unwrap(), "run `bench schema > scenarios/schema.json`");
    let schema: Value = serde_json::from_str(&printed).unwrap();
    for key in ["name", "device", "models", "matrix", "measure", "verify", "telemetry", "backends", "artifact"] {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
}

#[test]
fn completions_are_accepted_by_their_shells() {
    let dir = here();
    for (shell, mark) in [("bash", "complete -F"), ("zsh", "#compdef bench"), ("fish", "complete -c bench")] {
        let text = run(bench(dir.path()).args(["completions", shell])).expect(0).stdout;
        assert!(text.contains(mark) && text.contains("runtimes"), "{shell}: {text}");
        let file = dir.path().join(shell);
        fs::write(&file, text).unwrap();
        // The shell itself, where it is installed.
        if let Ok(status) = Command::new(shell).arg("-n").arg(&file).status() {
            assert!(status.success(), "{shell} can't read its completions");
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_bug() {
    let dir = here();
    wrong(dir.path(), "bad.toml");
    let pc = root().join("scenarios/pc.toml").display().to_string();
    let bench = env!("CARGO_BIN_EXE_bench");
    for (script, code) in [
        // More than a pipe holds, to a reader that reads one line; then one that never reads.
        (format!("{bench} schema | head -n 1"), 0),
        (format!("{bench} schema | true"), 0),
        (format!("{bench} completions bash | true"), 0),
        (format!("{bench} plan {pc} | true"), 0),
        (format!("{bench} --help | true"), 0),
        (format!("{bench} runtimes list | true"), 0),
        (format!("{{ {bench} check bad.toml; }} 2>&1 | true"), 3),
        (format!("{{ {bench} run no-such.toml; }} 2>&1 | true"), 3),
    ] {
        let script =
            format!("set -o pipefail; for i in 1 2 3 4 5; do {script} >/dev/null; c=$?; [ $c = {code} ] || exit $c; done; exit {code}");
        let ran =
            run(Command::new("bash").args(["-c", &script]).current_dir(dir.path()).env("BENCH_CACHE", dir.path()).stdin(Stdio::null()));
        assert_eq!(ran.code(), code, "{script}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
}

#[test]
fn parse_tells_good_output_from_a_failed_run_and_from_something_else() {
    let dir = here();
    // A good output, one of a failed run, and one of another tool, for each framework.
    for (backend, good, failed) in [
        ("genie", "genie/fixtures/profile-one-query.json", Some("genie/fixtures/fail-context-exceeded.txt")),
        ("qnn", "qnn/fixtures/viewer-detailed.txt", Some("qnn/fixtures/netrun-fail.txt")),
        ("ort-qnn", "ort-qnn/fixtures/perf-new.txt", Some("ort-qnn/fixtures/fallback-silent.txt")),
        ("ort-genai", "ort-genai/fixtures/averages.txt", None),
        ("mnn", "mnn/fixtures/bench.json", Some("mnn/fixtures/fail_missing_weight.stdout")),
        ("llama-cpp", "llama-cpp/fixtures/bench.json", Some("llama-cpp/fixtures/fail_oom.stderr")),
        ("snpe", "snpe/fixtures/diagview-dsp-int8-2.37.txt", Some("snpe/fixtures/fail-dlc.txt")),
        ("executorch", "executorch/fixtures/made.etdp", Some("executorch/fixtures/fail-no-snapdragon.txt")),
    ] {
        let file = |name: &str| root().join("backends").join(name);
        let object = json(&run(bench(dir.path()).arg("parse").arg(backend).arg(file(good))).expect(0));
        assert_eq!(object["backend"], backend);
        assert!(object["source"].as_str().unwrap().ends_with(good), "{object}");
        assert_eq!(object["failure"], Value::Null, "{backend}");
        let measurements = object["measurements"].as_array().unwrap();
        assert!(!measurements.is_empty(), "{backend}");
        for m in measurements {
            assert!(m["label"].is_string() && m["metrics"].as_object().unwrap().values().all(Value::is_number), "{backend}: {m}");
        }
        assert!(object["layers"].is_array() && object["warnings"].is_array());

        if let Some(failed) = failed {
            let object = json(&run(bench(dir.path()).arg("parse").arg(backend).arg(file(failed))).expect(6));
            assert!(!object["failure"]["message"].as_str().unwrap().is_empty(), "{backend}");
        }
        let human = run(bench(dir.path()).args(["parse", backend, "--format", "human"]).arg(file(good))).expect(0);
        assert!(!human.stdout.trim().is_empty());

        let other = dir.path().join("other.txt");
        fs::write(&other, "Dear Sir or Madam,\nthis is a letter.\n").unwrap();
        run(bench(dir.path()).arg("parse").arg(backend).arg(&other)).expect(2).says(&["other.txt", backend]);
        run(bench(dir.path()).arg("parse").arg(backend).arg("no-such-file")).expect(2).says(&["no-such-file"]);
        run(bench(dir.path()).arg("parse").arg(backend).arg(dir.path())).expect(2);
    }
    // A number that a file ends in may be half of one: 249 of 249.377 a second, or 2. It is left out, and that is said.
    let cut = dir.path().join("cut.txt");
    let text = fs::read_to_string(root().join("backends/ort-qnn/fixtures/perf-new.txt")).unwrap();
    let line = text.lines().find(|l| l.starts_with("Number of inferences per second:")).unwrap();
    let at = text.find(line).unwrap() + "Number of inferences per second: 249".len();
    fs::write(&cut, &text[..at]).unwrap();
    let object = json(&run(bench(dir.path()).args(["parse", "ort-qnn"]).arg(&cut)).expect(0));
    assert_eq!(object["measurements"][0]["metrics"]["throughput_inf_s"], Value::Null, "{object}");
    assert!(
        object["warnings"].as_array().unwrap().iter().any(|w| w.as_str().unwrap().contains("cut.txt line 9: the file ends in `249`")),
        "{object}"
    );
    // Endless input is refused, not read until the memory is full.
    run(bench(dir.path()).args(["parse", "mnn", "/dev/zero"]))
        .expect(2)
        .says(&["/dev/zero", "more than 256 MB; so much is read of one plain file alone"]);
    // Several files are the outputs of one run.
    let pair = ["bench.md", "bench.stderr"].map(|f| root().join("backends/llama-cpp/fixtures").join(f));
    let object = json(&run(bench(dir.path()).args(["parse", "llama-cpp"]).args(pair)).expect(0));
    assert_eq!(object["source"].as_array().unwrap().len(), 2);
}

#[test]
fn a_report_is_one_file_that_needs_no_network() {
    let dir = here();
    let scenario = Scenario { variants: vec!["ok", "exit-3"], ..Scenario::default() }.write(dir.path());
    let ran = run(bench(dir.path()).arg("run").arg(&scenario)).expect(6);
    let run_dir = only_run(&dir.path().join("results"));
    let page = dir.path().join("reports").join(run_dir.file_name().unwrap()).join("index.html");
    assert!(ran.stderr.contains("page: "), "{}", ran.stderr);
    let html = fs::read_to_string(&page).unwrap();
    // What failed is on the page with the reason, and nothing is fetched.
    assert!(html.contains("licence server says no") && html.contains("<svg"));
    for word in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(word), "{word}");
    }
    fs::remove_file(&page).unwrap();
    let again = run(bench(dir.path()).arg("report").arg(&run_dir)).expect(0);
    assert!(again.stdout.trim().ends_with("index.html") && page.is_file(), "{}", again.stdout);
    // A run that was killed before its tables were written has everything that they are made from.
    fs::remove_file(run_dir.join("cells.csv")).unwrap();
    run(bench(dir.path()).arg("report").arg(&run_dir)).expect(0);
    assert_eq!(table(&run_dir, "cells.csv").len(), 2);
}
