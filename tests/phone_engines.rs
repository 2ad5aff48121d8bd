//! `bench run` against the test phone with a matrix of backends: the real engines on the HTP emulator inside the phone, and stand-ins for the
//! vendors' tools (`tests/standins/android`), which take the real command line and print the real layout: what they show is that `bench`
//! stages, calls, reads and refuses rightly, never how fast anything is.

#[path = "device/harness.rs"]
mod harness;
#[path = "phone/small_model.rs"]
mod small_model;
mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use harness::{Adbd, Phone};
use serde_json::{Value, json};
use small_model::small_model;
use support::{Ran, Row, finish, number, only_run, python, root, run, table, wait_until};

const PHONE_TMP: &str = "/data/local/tmp";

/// A phone, a server, and the folder of a user: programs for devices in `libexec`, the stand-ins' SDK in `libexec/qairt`.
struct Lab {
    phone: Phone,
    adb: Adbd,
    dir: tempfile::TempDir,
    machine: &'static str,
}

impl Lab {
    fn start(machine: &'static str) -> Option<Self> {
        harness::possible().then(|| {
            let lab = Self { phone: Phone::start_as(machine), adb: Adbd::start(), dir: tempfile::tempdir().unwrap(), machine };
            let folder = lab.path(&format!("libexec/{machine}-unknown-linux-musl"));
            fs::create_dir_all(&folder).unwrap();
            fs::copy(agent(machine), folder.join("bench-agent")).unwrap();
            lab
        })
    }

    /// With the stand-ins' SDK, on a phone for aarch64 where this machine can have one.
    fn with_tools() -> Option<Self> {
        let lab = Self::start(tools_machine())?;
        let made = Command::new(root().join("tests/standins/android/make-sdk.sh")).arg(lab.path("libexec")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // The server knows the phone before a first run, so that its stand-ins can be told what to do.
        run(lab.bench(Command::new("adb")).args(["connect", &lab.phone.address])).expect(0);
        Some(lab)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn sdk(&self) -> PathBuf {
        self.path("libexec/qairt")
    }

    /// `bench` as a user of this phone has it; with the SDK where one was made.
    fn bench(&self, mut command: Command) -> Command {
        command.env("ADB_SERVER_SOCKET", self.adb.address.to_string()).env("BENCH_LIBEXEC", self.path("libexec"));
        if self.sdk().is_dir() {
            command.env("QAIRT_SDK_ROOT", self.sdk());
        }
        command
    }

    fn command(&self, scenario: &Path) -> Command {
        let mut command = self.bench(support::bench(self.dir.path()));
        command.arg("run").arg(scenario).args(["--no-report", "--reconnect", "20s"]);
        command
    }

    fn spawn(&self, scenario: &Path) -> Child {
        self.command(scenario).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a scenario, and hands out its run folder and rows; the folder is moved aside for the next one.
    #[track_caller]
    fn rows(&self, scenario: &Path, code: i32) -> (PathBuf, Vec<Row>) {
        self.keep(run(&mut self.command(scenario)), code)
    }

    #[track_caller]
    fn keep(&self, ran: Ran, code: i32) -> (PathBuf, Vec<Row>) {
        ran.expect(code);
        let folder = only_run(&self.path("results"));
        let kept = self.path("kept").join(folder.file_name().unwrap());
        fs::create_dir_all(self.path("kept")).unwrap();
        fs::rename(folder, &kept).unwrap();
        let rows = table(&kept, "cells.csv");
        (kept, rows)
    }

    fn shell(&self, script: &str) -> String {
        let mut command = Command::new("adb");
        command.args(["-s", &self.phone.address, "shell", script]).env("ADB_SERVER_SOCKET", self.adb.address.to_string());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// What the stand-ins on the phone do from now on.
    fn tools_do(&self, knobs: &Value) {
        let text = knobs.to_string();
        assert_eq!(self.shell(&format!("echo '{text}' > {PHONE_TMP}/standin.json; cat {PHONE_TMP}/standin.json")).trim(), text);
    }

    /// Nothing runs and nothing lies in the phone's work folders.
    #[track_caller]
    fn left_nothing(&self) {
        let script = "for p in /proc/[0-9]*; do c=$(readlink $p/cwd); case $c in */bench/work/*) echo $p $c;; esac; done; ls /data/local/tmp/bench/work";
        assert_eq!(self.shell(script), "");
    }

    /// The process of a tool that works on the phone.
    fn pid_of(&self, tool: &str) -> String {
        // The stand-ins are Python; their agent has the name in no argument of its own.
        let script = format!(
            "for p in /proc/[0-9]*; do case $(cat $p/comm) in python3*) grep -q work/.*/{tool} $p/cmdline && echo ${{p#/proc/}};; esac; done 2>/dev/null"
        );
        let mut found = String::new();
        wait_until("a tool on the phone", || {
            self.shell(&script).lines().last().unwrap_or_default().clone_into(&mut found);
            !found.is_empty()
        });
        found
    }
}

fn agent(machine: &str) -> PathBuf {
    static AARCH64: OnceLock<PathBuf> = OnceLock::new();
    if machine == "aarch64" { AARCH64.get_or_init(|| harness::static_agent("aarch64")).clone() } else { harness::agent().to_owned() }
}

/// Programs for aarch64 run in the phone through qemu-user, in a table of formats that a user namespace has of its own since Linux 6.7.
fn tools_machine() -> &'static str {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let new = (numbers.next(), numbers.next()) >= (Some(6), Some(7));
    let qemu = ["/usr/bin", "/usr/local/bin"].iter().any(|d| Path::new(d).join("qemu-aarch64-static").is_file());
    if new && qemu { "aarch64" } else { "x86_64" }
}

/// What every run of these tests measures.
const PROMPT: u32 = 40;
const GENERATED: u32 = 8;

/// Every tool, by backend. The name is the value of `variant` that asks for it, where a backend has several.
const TOOLS: [(&str, &[&str]); 5] = [
    ("qnn", &["qnn-net-run"]),
    ("genie", &["genie-app", "genie-t2t-run"]),
    ("ort-qnn", &["onnxruntime_perf_test"]),
    ("ort-genai", &["model_benchmark"]),
    ("mnn", &["llm_bench", "llm_demo"]),
];

/// A scenario of the small model for some tools: a cell each. `files` of a backend's artifact can be other ones.
fn tools_scenario(lab: &Lab, name: &str, tools: &[&str], files: &[(&str, &str)], matrix: &str, measure: &str) -> PathBuf {
    small_model(lab.dir.path(), PROMPT);
    let usual = [
        // A backend with one program has it by any name that its files are declared for.
        ("qnn", "variant = \"qnn-net-run\"\nfiles = [\"model/*.bin\", \"model/meta.json\"]"),
        ("genie", r#"files = ["model/*.bin", "model/meta.json", "model/tokenizer.json"]"#),
        ("ort-qnn", r#"files = ["model/*.bin", "model/p*.onnx", "model/d*.onnx", "model/meta.json"]"#),
        ("ort-genai", "variant = \"model_benchmark\"\nfiles = [\"model/genai/*\"]"),
        ("mnn", "config = \"model/config.json\"\nfiles = [\"model/llm.*\", \"model/tokenizer.txt\", \"model/prompt.txt\"]"),
    ];
    let all: Vec<&str> = TOOLS.iter().flat_map(|(_, own)| own.iter().copied()).collect();
    let head = format!(
        "name = \"{name}\"\n[device]\nserial = \"{}\"\n[models.small]\ncontext = 128\nchunk = 32\ngeometry = \"small.toml\"\n",
        lab.phone.address
    );
    let (mut backends, mut artifacts, mut exclude) = (Vec::new(), Vec::new(), Vec::new());
    for (backend, own) in TOOLS.iter().filter(|(_, own)| own.iter().any(|tool| tools.contains(tool))) {
        let usual = usual.iter().find(|(b, _)| b == backend).unwrap().1;
        let files = files.iter().find(|(b, _)| b == backend).map_or(usual, |(_, files)| files);
        artifacts.push(format!("[[artifact]]\nmodel = \"small\"\nquant = \"w4a16\"\nbackend = \"{backend}\"\n{files}\n"));
        let foreign: Vec<&str> = all.iter().copied().filter(|tool| tools.contains(tool) && !own.contains(tool)).collect();
        if !foreign.is_empty() {
            exclude.push(format!("{{ backend = \"{backend}\", variant = {foreign:?} }}"));
        }
        backends.push(*backend);
    }
    let rest = format!(
        "[matrix]\nbackend = {backends:?}\nmodel = \"small\"\nquant = \"w4a16\"\nprompt-tokens = {PROMPT}\ngen-tokens = {GENERATED}\n\
         variant = {tools:?}\nexclude = [{}]\n{matrix}\n[measure]\nqueries = 2\nwarmup = {{ min = 1, max = 1 }}\n\
         repetitions = {{ min = 1, max = 1 }}\ntimeout = \"60s\"\n{measure}\n[verify]\nreference = \"none\"\n",
        exclude.join(", ")
    );
    let path = lab.path(&format!("{name}.toml"));
    fs::write(&path, head + &artifacts.concat() + &rest).unwrap();
    path
}

/// The row of a tool.
#[track_caller]
fn of<'a>(rows: &'a [Row], tool: &str) -> &'a Row {
    rows.iter().find(|r| r["variant"] == tool).unwrap_or_else(|| panic!("no {tool} in {rows:#?}"))
}

#[track_caller]
fn near(row: &Row, column: &str, wanted: f64, slack: f64) {
    let value = number(row, column).unwrap_or_else(|| panic!("{column} is empty: {row:#?}"));
    assert!((value - wanted).abs() <= wanted * slack, "{column}: {value}, {wanted} wanted");
}

/// The folder of a cell's launch.
fn logs(folder: &Path, cell: &Row, launch: &str) -> PathBuf {
    let mut found = glob::glob(&format!("{}/logs/*/{}/{launch}", folder.display(), cell["cell"])).unwrap().flatten();
    found.next().unwrap_or_else(|| panic!("no {launch} of {}", cell["cell"]))
}

fn record(folder: &Path, cell: &Row) -> Value {
    serde_json::from_slice(&fs::read(logs(folder, cell, "measure-000").join("launch.json")).unwrap()).unwrap()
}

/// Every path that a log of a launch holds is one of the device: none of the user's folder, the repository or the cache.
#[track_caller]
fn no_host_path(lab: &Lab, folder: &Path) {
    let home = std::env::var("HOME").unwrap_or_default();
    let host = [lab.dir.path().display().to_string(), root().display().to_string(), format!("{home}/.cache")];
    let mut read = 0;
    for file in glob::glob(&format!("{}/logs/**/*", folder.display())).unwrap().flatten().filter(|f| f.is_file()) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        for path in &host {
            assert!(!text.contains(path.as_str()), "{} names {path}", file.display());
        }
        read += 1;
    }
    assert!(read > 3, "{read} files");
}

#[test]
fn the_real_engines_run_in_the_phone() {
    let Some(lab) = Lab::start("x86_64") else { return };
    let geometry = root().join("scenarios/models/tiny-llama.toml");
    let text = format!(
        "name = \"engines\"\n[device]\nserial = \"{}\"\nsoc = \"SM8650\"\n[models.tiny-llama]\ncontext = 128\nchunk = 32\ngeometry = \"{}\"\n\
         [matrix]\nbackend = [\"genie\", \"ort-qnn\"]\nmodel = \"tiny-llama\"\nquant = \"fp16\"\nprompt-tokens = {PROMPT}\ngen-tokens = {GENERATED}\n\
         [measure]\nqueries = 2\nwarmup = {{ min = 1, max = 1 }}\nrepetitions = {{ min = 1, max = 1 }}\ntimeout = \"1m\"\nprofile = \"layers\"\n\
         [verify]\nreference = \"fp32\"\n",
        lab.phone.address,
        geometry.display()
    );
    let scenario = lab.path("engines.toml");
    fs::write(&scenario, text).unwrap();
    let mut command = lab.bench(python::real(lab.dir.path()));
    command.arg("run").arg(&scenario).args(["--yes", "--no-report"]);
    let (folder, rows) = lab.keep(run(&mut command), 0);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let name = &row["backend"];
        let checks = ["status", "check_count", "check_tokens", "check_unit", "unit_found"].map(|c| row[c].as_str());
        assert_eq!(checks, ["ok", "confirmed", "confirmed", "confirmed", "npu"], "{row:#?}");
        assert_eq!(number(row, "token_agreement"), Some(1.0), "{name}");
        let said = ["device_class", "ttft_method", "ttft_scope", "tool", "padded_prompt_tokens"].map(|c| row[c].as_str());
        assert_eq!(said, ["emulator", "token_event", "ids", &format!("bench-{name}-runner"), "64"], "{name}");
        assert!(number(row, "ttft_ms").unwrap() > 0.0 && number(row, "decode_tok_s").unwrap() > 0.0, "{name}");
        // Two context binaries of about a megabyte each, the emulator's libraries of tens of megabytes, a small tokenizer.
        let made = python::cache().join("artifacts").join(&row["artifact"]);
        let size = |file: &str| fs::metadata(made.join(file)).unwrap().len() as f64 / 1e6;
        let binaries = size("prefill.bin") + size("decode.bin");
        let model = number(row, "model_mb").unwrap();
        assert!(model >= binaries && model < binaries + 0.1, "{name}: {model} MB, {binaries} in the binaries");
        assert!(number(row, "runtime_mb").unwrap() > 20.0, "{name}");
        // Genie loads it even when it is asked with token ids.
        let tokenizer = number(row, "tokenizer_mb");
        assert!(
            if name == "genie" { tokenizer.is_some_and(|mb| (0.01..0.03).contains(&mb)) } else { tokenizer.is_none() },
            "{tokenizer:?}"
        );
    }
    let answers = |backend: &str| -> Vec<String> {
        let cell = &rows.iter().find(|r| r["backend"] == backend).unwrap()["cell"];
        let mine = |t: &&Row| &t["cell"] == cell && t["pass"] == "measure";
        table(&folder, "tokens.csv").iter().filter(mine).map(|t| t["id"].clone()).collect()
    };
    assert_eq!(answers("genie").len(), 3 * GENERATED as usize);
    assert_eq!(answers("genie"), answers("ort-qnn"));
    let layers = table(&folder, "layers.csv");
    let of: BTreeSet<_> = layers.iter().map(|l| (l["backend"].as_str(), l["phase"].as_str(), l["device_class"].as_str())).collect();
    assert_eq!(of, BTreeSet::from([("ort-qnn", "prefill", "emulator"), ("ort-qnn", "decode", "emulator")]));
    assert!(layers.len() > 100, "{} operations", layers.len());
    no_host_path(&lab, &folder);
    a_users_bundle_is_imported_and_runs(&lab, &python::cache().join("artifacts").join(&rows[0]["artifact"]));
    lab.left_nothing();
}

/// Numbers of the stand-ins, in us: a prefill graph of 32 tokens, a decode graph; a token of the prompt, a token of the answer. Long enough for the
/// agent to see the libraries of each process (at 0.4 and 1 s).
const NUMBERS: &str = r#"{"average_us": {"prefill": 6400, "decode": 1250}, "prefill_us": 150, "decode_us": 50000, "init_us": 800000, "inference_ms": 4.0, "sleep_s": 0.5, "yields": 2}"#;

#[test]
fn the_vendors_tools_run_in_the_phone() {
    let Some(lab) = Lab::with_tools() else { return };
    let tools: Vec<&str> = TOOLS.iter().flat_map(|(_, own)| own.iter().copied()).collect();
    let scenario = tools_scenario(&lab, "tools", &tools, &[], "perf-profile = \"burst\"", "profile = \"layers\"");
    lab.tools_do(&serde_json::from_str(NUMBERS).unwrap());
    let (folder, rows) = lab.rows(&scenario, 0);
    assert_eq!(rows.len(), tools.len());
    for row in &rows {
        // A backend with one program needs no column to tell which.
        let tool = if row["backend"] == "qnn" { "" } else { &row["variant"] };
        assert_eq!((row["status"].as_str(), row["tool"].as_str()), ("ok", tool), "{row:#?}");
        // The NPU of an x86_64 phone is emulated, its CPU is not that of a phone either.
        let class = if lab.machine == "aarch64" { "phone" } else { "emulator" };
        assert_eq!(row["device_class"], class, "{row:#?}");
    }
    let said = |tool: &str, columns: [&str; 4]| columns.map(|c| of(&rows, tool)[c].clone());
    let methods = ["ttft_method", "prefill_method", "decode_method", "perf_profile"];
    for tool in ["qnn-net-run", "onnxruntime_perf_test"] {
        assert_eq!(said(tool, methods), ["composed", "composed", "composed", "burst"], "{tool}");
        assert!(number(of(&rows, tool), "itl_p50_ms").is_none() && of(&rows, tool)["absent"].contains("itl_p50_ms="), "{tool}");
    }
    for tool in ["qnn-net-run", "onnxruntime_perf_test", "genie-app"] {
        assert_eq!((of(&rows, tool)["chunk"].as_str(), of(&rows, tool)["padded_prompt_tokens"].as_str()), ("32", "64"), "{tool}");
    }
    // 40 tokens are two runs of a graph for 32: 12.8 ms; a step of 1.25 ms makes 800 tokens a second.
    let qnn = of(&rows, "qnn-net-run");
    near(qnn, "ttft_ms", 12.8, 1e-5);
    near(qnn, "prefill_tok_s", 3125.0, 1e-5);
    near(qnn, "decode_tok_s", 800.0, 1e-5);
    // Every graph takes 4 ms there, with a spread of a few percent.
    near(of(&rows, "onnxruntime_perf_test"), "ttft_ms", 8.0, 0.1);
    near(of(&rows, "onnxruntime_perf_test"), "decode_tok_s", 250.0, 0.1);
    for tool in ["genie-app", "genie-t2t-run"] {
        assert_eq!(said(tool, methods)[0], "runtime_reported", "{tool}");
        assert_eq!(
            said(tool, ["perf_profile", "check_count", "check_unit", "ttft_scope"]),
            ["burst", "confirmed", "confirmed", "ids"],
            "{tool}"
        );
    }
    // 40 x 150 us, then 7 steps of 50 ms that really pass.
    let app = of(&rows, "genie-app");
    assert!(
        (6.0..60.0).contains(&number(app, "ttft_ms").unwrap()) && (10.0..=20.0).contains(&number(app, "decode_tok_s").unwrap()),
        "{app:#?}"
    );
    // One query a process: only a first one (rule R1).
    let t2t = of(&rows, "genie-t2t-run");
    assert!((6.0..60.0).contains(&number(t2t, "first_query_ttft_ms").unwrap()) && number(t2t, "ttft_ms").is_none(), "{t2t:#?}");
    assert!(t2t["absent"].contains("ttft_ms="), "{}", t2t["absent"]);
    let samples = table(&folder, "samples.csv");
    let kinds = |tool: &str| -> Vec<String> {
        samples.iter().filter(|s| s["cell"] == of(&rows, tool)["cell"] && s["pass"] == "measure").map(|s| s["query_kind"].clone()).collect()
    };
    assert_eq!((kinds("genie-t2t-run"), kinds("llm_demo")), (vec!["first_query".to_owned()], vec!["first_query".to_owned()]));
    assert_eq!(kinds("genie-app"), ["first_query", "warm_query", "warm_query"]);
    // Means of the tool's own: 40 x 150 us, 20 tokens a second.
    for (tool, method) in [("model_benchmark", "runtime_reported"), ("llm_bench", "derived")] {
        assert_eq!(said(tool, methods)[..2], [method, "runtime_reported"], "{tool}");
        near(of(&rows, tool), "ttft_ms", 6.0, 0.05);
        near(of(&rows, tool), "decode_tok_s", 20.0, 0.05);
    }
    // A question a process here too; its time is printed with two digits behind the point, the speed of the prefill is better.
    let demo = of(&rows, "llm_demo");
    assert_eq!(said("llm_demo", ["ttft_method", "ttft_scope", "ttft_ms", "unit_requested"]), ["derived", "text", "", "cpu"]);
    near(demo, "first_query_ttft_ms", 6.0, 0.05);
    // What was asked of the processors (rule R10): on a phone the votes that go with a burst.
    for tool in ["qnn-net-run", "genie-app", "genie-t2t-run", "onnxruntime_perf_test"] {
        assert!(of(&rows, tool)["votes"].contains("perf_profile=burst"), "{tool}: {}", of(&rows, tool)["votes"]);
    }
    let hexagon = lab.machine == "aarch64";
    for (vote, there) in [("shared_buffer=true", hexagon), ("rpc_polling_time_us=9999", hexagon), ("rpc_control_latency_us=100", true)] {
        assert_eq!(qnn["votes"].contains(vote), there, "{vote}: {}", qnn["votes"]);
    }
    let npu = ["npu_duty_method", "npu_util_pct", "yields", "hvx_threads", "contended"];
    if hexagon {
        // The stand-in viewer: 80 us less than a graph's time on the accelerator, 3 us less for the call, 40 us for FastRPC: 6320 and 1170 of 6397 and
        // 1247 us. 20 executions of two graphs gave way twice each.
        near(qnn, "npu_duty_pct", 100.0 * 7490.0 / 7644.0, 1e-5);
        near(qnn, "rpc_share", 80.0 / 7644.0, 1e-5);
        assert_eq!(npu.map(|column| qnn[column].as_str()), ["derived:qnn-profile", "", "80", "4", "yields"]);
    } else {
        assert_eq!(npu.map(|column| qnn[column].as_str()), [""; 5], "an emulator is no NPU");
        assert!(qnn["absent"].contains("npu_duty_pct=emulated") && qnn["absent"].contains("yields=emulated"), "{}", qnn["absent"]);
    }
    assert_eq!(of(&rows, "llm_bench")["perf_profile"], "n/a");
    // The stand-in writes into its profile what it read of the vote.
    let profile = fs::read(logs(&folder, qnn, "measure-000").join("decode/out_decode__qnn-profiling-data_0.log")).unwrap();
    assert!(String::from_utf8_lossy(&profile).contains(r#""perf_profile": "burst""#));
    let layers = table(&folder, "layers.csv");
    assert!(layers.iter().any(|l| l["backend"] == "qnn") && layers.iter().any(|l| l["backend"] == "ort-qnn"));
    no_host_path(&lab, &folder);
    lab.left_nothing();
}

#[test]
fn what_would_mislead_is_refused() {
    let Some(lab) = Lab::with_tools() else { return };
    // Rule R11: figures are composed of all graphs, or not at all.
    let parts = [
        ("qnn", "variant = \"qnn-net-run\"\nfiles = [\"model/prefill.bin\", \"model/meta.json\"]"),
        ("ort-qnn", r#"files = ["model/*.bin", "model/p*.onnx", "model/meta.json"]"#),
    ];
    let tools = ["qnn-net-run", "onnxruntime_perf_test"];
    let (_, rows) = lab.rows(&tools_scenario(&lab, "parts", &tools, &parts, "", ""), 6);
    for (tool, missing) in [("qnn-net-run", "decode.bin"), ("onnxruntime_perf_test", "decode.onnx")] {
        let row = of(&rows, tool);
        assert_eq!((row["status"].as_str(), row["failure_kind"].as_str()), ("failed", "usage"), "{row:#?}");
        assert!(row["reason"].contains(missing) && row["ttft_ms"].is_empty(), "{}", row["reason"]);
    }
    // Rule R10: without this library a burst is none, and no tool says so.
    let target = if lab.machine == "aarch64" { "aarch64-android" } else { "x86_64-linux-clang" };
    let libraries = lab.sdk().join("lib").join(target);
    fs::remove_file(libraries.join("libQnnHtpNetRunExtensions.so")).unwrap();
    let tools = ["qnn-net-run", "genie-app", "genie-t2t-run"];
    let (_, rows) = lab.rows(&tools_scenario(&lab, "burst", &tools, &[], "perf-profile = \"burst\"", ""), 6);
    for row in &rows {
        assert_eq!((row["status"].as_str(), row["failure_kind"].as_str()), ("failed", "usage"), "{row:#?}");
        assert!(
            row["reason"].contains("perf-profile = burst") && row["reason"].contains("libQnnHtpNetRunExtensions.so"),
            "{}",
            row["reason"]
        );
    }
    // Without a library of the DSP nothing is begun.
    if lab.machine == "aarch64" {
        fs::remove_file(lab.sdk().join("lib/hexagon-v75/unsigned/libQnnHtpV75Skel.so")).unwrap();
        let (folder, rows) = lab.rows(&tools_scenario(&lab, "skel", &tools, &[], "", ""), 5);
        for row in &rows {
            assert_eq!(row["status"], "skipped");
            assert!(row["reason"].contains("libQnnHtpV75Skel.so") && row["reason"].contains("QAIRT_SDK_ROOT"), "{}", row["reason"]);
        }
        assert!(!folder.join("logs").exists() || fs::read_dir(folder.join("logs")).unwrap().next().is_none());
    }
}

/// Failure of each tool; its kind, and words of the reason.
type Failures = &'static [(&'static str, &'static str, &'static str, &'static [&'static str])];

const FIRST: Failures = &[
    (
        "qnn-net-run",
        "err5005",
        "model",
        &["err 5005", "made for soc_model 57, Hexagon v75 with QNN 2.31.0", "it met soc_model 57, Hexagon v75 and QNN 2.37.0"],
    ),
    ("genie-app", "open-session", "device", &["0x80000406", "ADSP_LIBRARY_PATH"]),
    ("genie-t2t-run", "err5005", "model", &["err 5005", "with QNN 2.31.0"]),
    ("onnxruntime_perf_test", "run-failed", "runtime", &["prefill", "6031"]),
    ("model_benchmark", "run-failed", "runtime", &["6031"]),
    ("llm_bench", "onforward", "runtime", &["onForward"]),
    // It returns 0.
    ("llm_demo", "init", "model", &["Load module failed"]),
];

const SECOND: Failures = &[
    ("genie-app", "map-at", "", &["map::at"]),
    ("genie-t2t-run", "context-exceeded", "", &["Context Size was exceeded"]),
    ("onnxruntime_perf_test", "crash", "runtime", &["signal 11"]),
    ("model_benchmark", "killed", "", &["signal 9"]),
    ("llm_bench", "killed", "", &["signal 9"]),
    ("llm_demo", "no-block", "", &["llm_demo"]),
];

#[test]
fn failures_of_the_tools_are_rows_that_explain_themselves() {
    let Some(lab) = Lab::with_tools() else { return };
    for (name, failures) in [("first", FIRST), ("second", SECOND)] {
        let fail: serde_json::Map<String, Value> = failures.iter().map(|(tool, fail, _, _)| ((*tool).to_owned(), json!(fail))).collect();
        lab.tools_do(&json!({"fail": fail, "sleep_s": 0}));
        let tools: Vec<&str> = failures.iter().map(|(tool, ..)| *tool).collect();
        let (folder, rows) = lab.rows(&tools_scenario(&lab, name, &tools, &[], "", ""), 6);
        for (tool, fail, kind, words) in failures {
            let row = of(&rows, tool);
            println!("{tool} {fail}: {} {} {}", row["status"], row["failure_kind"], row["reason"]);
            assert_eq!(row["status"], "failed", "{tool} {fail}");
            assert!(kind.is_empty() || row["failure_kind"] == *kind, "{tool} {fail}: {}", row["failure_kind"]);
            for word in *words {
                assert!(row["reason"].contains(word), "{tool} {fail}: no {word:?} in {}", row["reason"]);
            }
            assert!(row["ttft_ms"].is_empty() && row["decode_tok_s"].is_empty(), "{tool} {fail}");
        }
        assert!(table(&folder, "samples.csv").is_empty());
    }
    // A crash after whole results costs nothing, and is said.
    lab.tools_do(&json!({"fail": {"qnn-net-run": "crash-at-exit"}, "sleep_s": 0}));
    let (folder, rows) = lab.rows(&tools_scenario(&lab, "late", &["qnn-net-run"], &[], "", ""), 0);
    assert_eq!(rows[0]["status"], "ok");
    let warnings = record(&folder, &rows[0])["parsed"]["warnings"].to_string();
    assert!(warnings.contains("crashed at exit, after whole results"), "{warnings}");
    lab.left_nothing();
}

#[test]
fn the_phones_own_log_tells_who_ended_a_program() {
    let Some(mut lab) = Lab::with_tools() else { return };
    for (tool, line, words) in [
        (
            "genie-t2t-run",
            "system 479 I lowmemorykiller: Kill 'genie-t2t-run' (PID), uid 2000, oom_score_adj 0 to free 4445960kB rss, 3990164kB anon rss",
            &["signal 9", "lowmemorykiller: Kill 'genie-t2t-run' (PID)", "memory"][..],
        ),
        (
            "llm_demo",
            "main PID W llm_demo: type=1400 audit(0.0:7): avc:  denied  { read } for pid=PID comm=\"llm_demo\" name=\"fastrpc-cdsp\" dev=\"tmpfs\" \
             scontext=u:r:shell:s0 tcontext=u:object_r:vendor_xdsp_device:s0 tclass=chr_file permissive=0",
            &["signal 9", "avc:  denied", "SELinux"][..],
        ),
    ] {
        lab.tools_do(&json!({"fail": {tool: "hang"}}));
        let scenario = tools_scenario(&lab, "killed", &[tool], &[], "", "");
        let child = lab.spawn(&scenario);
        let pid = lab.pid_of(tool);
        lab.phone.tell(&format!("log {}", line.replace("PID", &pid)));
        // Of another program, which has nothing to do with it.
        lab.phone.tell("log system 479 I lowmemorykiller: Kill 'com.example.camera' (1), uid 10085, oom_score_adj 905 to free 60288kB rss");
        lab.shell(&format!("kill -9 {pid}"));
        let (folder, rows) = lab.keep(finish(child), 6);
        let row = &rows[0];
        assert_eq!(row["status"], "failed");
        for word in words {
            let word = word.replace("PID", &pid);
            assert!(row["reason"].contains(&word), "{tool}: no {word:?} in {}", row["reason"]);
        }
        assert!(!row["reason"].contains("com.example.camera"), "{}", row["reason"]);
        let log = fs::read_to_string(logs(&folder, row, "measure-000").join("logcat.txt")).unwrap();
        assert!(log.contains(&pid) && log.contains("com.example.camera"), "{log}");
    }
    lab.left_nothing();
}

/// The folder that AI Hub gives, made of the repository's own artifact: import, check, run.
fn a_users_bundle_is_imported_and_runs(lab: &Lab, artifact: &Path) {
    let ours = |meta: &PathBuf| {
        fs::read_to_string(meta).is_ok_and(|text| text.contains("\"name\": \"tiny-llama\"") && text.contains("\"vocab\": 512"))
    };
    let metas = glob::glob(&format!("{}/artifacts/text-*/meta.json", python::cache().display())).unwrap();
    let tokenizer = metas.flatten().find(ours).expect("a tokenizer").with_file_name("tokenizer.json");
    let bundle = lab.path("my bundle");
    fs::create_dir(&bundle).unwrap();
    for (from, name) in [("prefill.bin", "tiny_fp16_prefill_ar32.bin"), ("decode.bin", "tiny_fp16_decode_ar1.bin")] {
        fs::copy(artifact.join(from), bundle.join(name)).unwrap();
    }
    fs::copy(tokenizer, bundle.join("tokenizer.json")).unwrap();
    let htp = json!({"version": 1, "use-mmap": false, "spill-fill-bufsize": 0, "mmap-budget": 0, "poll": false, "cpu-mask": "0x3", "kv-dim": 32,
        "pos-id-dim": 16, "allow-async-init": false, "rope-theta": 10000});
    let engine = json!({"version": 1, "n-threads": 2, "backend": {"version": 1, "type": "QnnHtp", "QnnHtp": htp},
        "model": {"version": 1, "type": "binary",
            "binary": {"version": 1, "ctx-bins": ["tiny_fp16_prefill_ar32.bin", "tiny_fp16_decode_ar1.bin"]}}});
    // It samples and stops, as shipped ones do, which is not what a measurement wants (rule R4).
    let config = json!({"dialog": {"version": 1, "type": "basic", "stop-sequence": ["the"], "max-num-tokens": 3,
        "context": {"version": 1, "size": 128, "n-vocab": 512, "bos-token": 0, "eos-token": 1, "pad-token": 2},
        "sampler": {"version": 1, "seed": 42, "temp": 0.8, "top-k": 40, "top-p": 0.95},
        "tokenizer": {"version": 1, "path": "somewhere/tokenizer.json"}, "engine": engine}});
    fs::write(bundle.join("genie_config.json"), config.to_string()).unwrap();
    let bench = || lab.bench(python::real(lab.dir.path()));
    let said = run(bench().arg("import").arg(&bundle).args(["--name", "mine"])).expect(0).stdout;
    assert!(said.contains("made for                           SM8650 (Hexagon v75)"), "{said}");
    let scenario = lab.path("scenarios/mine.toml");
    run(bench().arg("check").arg(&scenario)).expect(0);
    // As it was written, but for the number of launches: the phone is found by its chip.
    let text = fs::read_to_string(&scenario).unwrap().replace("min = 5", "min = 1");
    fs::write(&scenario, text).unwrap();
    let (folder, rows) = lab.keep(run(bench().arg("run").arg(&scenario).args(["--yes", "--no-report"])), 0);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    let checks = ["status", "backend", "check_count", "check_tokens", "check_unit"].map(|c| row[c].as_str());
    assert_eq!(checks, ["ok", "genie", "confirmed", "not-checkable", "confirmed"], "{row:#?}");
    assert_eq!((row["device"].as_str(), row["device_class"].as_str()), (lab.phone.address.as_str(), "emulator"));
    assert!(number(row, "ttft_ms").is_some() && number(row, "decode_tok_s").is_some(), "{row:#?}");
    near(row, "tokenizer_mb", 0.0188, 0.2);
    let changes = record(&folder, row)["parsed"]["notes"]["config_changes"].to_string();
    assert!(changes.contains("stop-sequence") && changes.contains("temp"), "{changes}");
    no_host_path(lab, &folder);
}
