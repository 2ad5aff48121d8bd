//! `bench trace`: what it writes keeps the format's rules (checked by another program), shows every launch, query and token where the evidence says
//! that it was, and takes what is torn or hostile.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use support::{Ran, Scenario, bench, only_run, root, run, table};

/// Checks a file with tests/trace_check.py; gives its events and what else it says.
#[track_caller]
fn checked(file: &Path) -> (Vec<Value>, Value) {
    let told = run(Command::new("python3").arg(root().join("tests/trace_check.py")).arg(file)).expect(0);
    let counted: Value = serde_json::from_str(&told.stdout).unwrap();
    let mut trace: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let Value::Array(events) = trace["traceEvents"].take() else { panic!("no events") };
    assert_eq!(counted["events"], events.len());
    (events, trace["otherData"].take())
}

fn trace(dir: &Path, run_folder: &Path, more: &[&str]) -> Ran {
    run(bench(dir).arg("trace").arg(run_folder).args(more))
}

fn of_kind<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |e| e["ph"] == kind)
}

fn named<'a>(events: &'a [Value], start: &'a str) -> Vec<&'a Value> {
    of_kind(events, "X").filter(|e| e["name"].as_str().unwrap().starts_with(start)).collect()
}

/// Begin and end in whole ns.
fn ns(span: &Value) -> (u64, u64) {
    let whole = |us: f64| (us * 1e3).round() as u64;
    let from = span["ts"].as_f64().unwrap();
    (whole(from), whole(from + span["dur"].as_f64().unwrap()))
}

/// A run of two cells of the stand-in, two launches each.
fn measured(dir: &Path) -> PathBuf {
    let scenario = Scenario { name: "traced", variants: vec!["a", "b"], launches: 2, ..Scenario::default() }.write(dir);
    run(bench(dir).arg("run").arg(scenario).args(["--out", "r"])).expect(0);
    only_run(&dir.join("r"))
}

#[test]
fn the_example_is_drawn_from_its_tables() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let said =
        trace(dir.path(), &example, &["--out", "t.json"]).expect(0).says(&["operations are told in cycles", "the journal is not here"]);
    assert_eq!(said.stdout, "t.json\n");
    let (events, other) = checked(&dir.path().join("t.json"));
    let (tokens, launches, samples) = (table(&example, "tokens.csv"), table(&example, "launches.csv"), table(&example, "samples.csv"));
    let prefilled = samples.iter().filter(|row| !row["ttft_ms"].is_empty()).count();
    let timed = table(&example, "layers.csv").iter().filter(|row| row["value_unit"] == "us").count();
    // Each launch; each token; each query with its decode, and its prefill where a TTFT is told; each operation that has a time.
    let wanted = launches.len() + tokens.len() + samples.len() * 2 + prefilled + timed;
    assert_eq!(of_kind(&events, "X").count(), wanted);
    assert_eq!(of_kind(&events, "C").count(), table(&example, "telemetry.csv").len());
    assert!(other["clock"].as_str().unwrap().contains("time 0 is its spawn"));
    // No operation in cycles has become a length.
    assert!(events.iter().all(|e| !e["name"].as_str().unwrap().contains("OpId_")));
    let first = &tokens[1];
    let shown = named(&events, "token 1").into_iter().find(|e| e["args"]["query"] == 0).unwrap();
    let end_ms = (shown["ts"].as_f64().unwrap() + shown["dur"].as_f64().unwrap()) / 1e3;
    assert!((end_ms - first["t_ms"].parse::<f64>().unwrap()).abs() < 1e-6, "{shown}");

    let one = trace(dir.path(), &example, &["--out", "one.json", "--cell", "mnn.tiny-llama.fp32.p32.", "--launch", "3"]).expect(0);
    assert!(one.stderr.contains("1 launches, "), "{}", one.stderr);
    trace(dir.path(), &example, &["--out", "x", "--cell", "nothing"])
        .expect(2)
        .says(&["no launch fits --cell and --launch; the first of 126"]);
    assert!(!dir.path().join("x").exists() && !dir.path().join("x.tmp").exists());
}

#[test]
fn a_run_lies_on_the_devices_clock() {
    let dir = tempfile::tempdir().unwrap();
    let run_folder = measured(dir.path());
    trace(dir.path(), &run_folder, &[]).expect(0);
    let (events, other) = checked(&run_folder.join("trace.json"));

    // Submissions and tokens are those of the runner's own events, to the nanosecond.
    let mut told: (Vec<u64>, Vec<u64>) = Default::default();
    let mut launches = 0;
    for entry in glob(&run_folder.join("logs/local")) {
        let text = fs::read_to_string(entry.join("events.jsonl")).unwrap();
        for event in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            match event["event"].as_str() {
                Some("prompt") => told.0.push(event["t_ns"].as_u64().unwrap()),
                Some("token") => told.1.push(event["t_ns"].as_u64().unwrap()),
                _ => {}
            }
        }
        launches += 1;
    }
    let mut drawn: (Vec<u64>, Vec<u64>) = (
        named(&events, "query").into_iter().map(|e| ns(e).0).collect(),
        named(&events, "token").into_iter().chain(named(&events, "first token")).map(|e| ns(e).1).collect(),
    );
    for list in [&mut told.0, &mut told.1, &mut drawn.0, &mut drawn.1] {
        list.sort_unstable();
    }
    assert_eq!((launches, told.0.len(), told.1.len()), (4, 12, 96));
    assert_eq!(told, drawn);

    // Here both clocks are this machine's: what one is to the other is known without bench.
    let uptime: f64 = fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse().unwrap();
    let offset = uptime - SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let host = &other["host_clock"][0];
    assert!((host["device_minus_host_ns"].as_f64().unwrap() / 1e9 - offset).abs() < 0.1, "{host} is not {offset} s");
    // A launch in the journal holds the launch of the device.
    let slack = ((host["error_ms"].as_f64().unwrap() + 2.0) * 1e6) as u64;
    let track =
        |tid: u64| events.iter().filter(move |e| e["ph"] == "X" && e["tid"] == tid && e["name"].as_str().unwrap().contains(" measure-"));
    let (harness, runner): (Vec<&Value>, Vec<&Value>) = (track(1).collect(), track(2).collect());
    assert_eq!((harness.len(), runner.len()), (4, 4));
    for (outer, inner) in harness.into_iter().zip(runner) {
        assert_eq!(outer["name"], inner["name"]);
        assert!(ns(outer).0 <= ns(inner).0 + slack && ns(inner).1 <= ns(outer).1 + slack, "{outer} does not hold {inner}");
    }
    for name in ["segment 0", "block 0", "load", "prefill", "decode", "until its program starts (staging)"] {
        assert!(!named(&events, name).is_empty(), "{name}");
    }
    assert!(of_kind(&events, "C").any(|e| e["name"] == "process rss_kb" && e["args"]["kB"].as_f64() > Some(0.0)));
}

/// Folders of launches below a device's.
fn glob(device: &Path) -> Vec<PathBuf> {
    let below = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    below(device.to_path_buf()).into_iter().flat_map(below).collect()
}

#[test]
fn what_is_torn_is_drawn_as_far_as_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let run_folder = measured(dir.path());
    let cut = |path: &Path, bytes: usize| {
        let whole = fs::read(path).unwrap();
        fs::write(path, &whole[..whole.len() - bytes]).unwrap();
    };
    trace(dir.path(), &run_folder, &["--out", "whole.json"]).expect(0);
    let whole = checked(&dir.path().join("whole.json")).0;
    let folders = glob(&run_folder.join("logs/local"));
    // Half a row of samples; one row, whatever it is cut to.
    cut(&folders[0].join("telemetry.csv"), 2);
    trace(dir.path(), &run_folder, &["--out", "t.json"]).expect(0);
    let counters = |events: &[Value]| of_kind(events, "C").count();
    assert_eq!(counters(&checked(&dir.path().join("t.json")).0), counters(&whole) - 1);
    // A launch whose record was never written, and a journal that ends within a line.
    fs::remove_file(folders[1].join("launch.json")).unwrap();
    cut(&run_folder.join("journal.jsonl"), 5);
    trace(dir.path(), &run_folder, &["--out", "t.json"]).expect(0).says(&["have no record", "journal.jsonl:", "3 launches"]);
    checked(&dir.path().join("t.json"));
    // Without the manifest nobody knows the clocks: the tables are left, and their last line is half.
    fs::write(run_folder.join("manifest.json"), "{").unwrap();
    cut(&run_folder.join("tokens.csv"), 3);
    trace(dir.path(), &run_folder, &["--out", "t.json"]).expect(0).says(&["is damaged", "tokens.csv ends within a line", "4 launches"]);
    checked(&dir.path().join("t.json"));
    for table in ["launches.csv", "tokens.csv", "samples.csv"] {
        fs::remove_file(run_folder.join(table)).unwrap();
    }
    trace(dir.path(), &run_folder, &["--out", "gone.json"]).expect(2).says(&["no launch is recorded here"]);
    trace(dir.path(), &dir.path().join("nowhere"), &[]).expect(2).says(&["no launch is recorded here"]);
    assert!(!dir.path().join("gone.json").exists());
}

#[test]
fn hostile_names_and_numbers_are_only_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    fs::create_dir(&folder).unwrap();
    let name = "c\u{1b}]0;x\u{7}\u{202e}</script><script>alert(1)</script>";
    fs::write(
        folder.join("launches.csv"),
        format!("cell,pass,launch,status,wall_ms\n\"{name}\",measure,0,ok,-5\nb,measure,99999999999,ok,1\n"),
    )
    .unwrap();
    let tokens = [("0", "5"), ("0", "1e300"), ("0", "nan"), ("1", "3"), ("1", "-4"), ("-1", "2")];
    let rows = tokens.iter().map(|(query, t)| format!("\"{name}\",measure,0,{query},0,{t}\n")).collect::<Vec<_>>().concat();
    fs::write(folder.join("tokens.csv"), format!("cell,pass,launch,query,i,t_ms\n{rows}")).unwrap();
    let values = ["1", "inf", "nan", "-1e308", "x", ""];
    let rows = values.iter().map(|v| format!("{v},\"{name}\",measure,0,cooling,\"a\"\"b\n\",{v},\"u\tu\"\n")).collect::<Vec<_>>().concat();
    let bad = "\u{0},\u{0}\n1\n\"";
    fs::write(folder.join("telemetry.csv"), format!("t_ms,cell,pass,launch,source,name,value,unit\n{rows}{bad}")).unwrap();
    trace(dir.path(), &folder, &["--out", "t.json"]).expect(0);
    let (events, _) = checked(&dir.path().join("t.json"));
    assert_eq!(of_kind(&events, "C").map(|e| e["args"]["u u"].as_f64().unwrap()).collect::<Vec<_>>(), [1.0, -1e308]);
    assert!(named(&events, "c\u{fffd}]0;x\u{fffd}\u{fffd}</script>").len() == 1, "the launch has its name, which steers nothing");
}
