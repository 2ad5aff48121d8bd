//! On a device that is another machine.

use bench_backend_api::{Artifact, Ended, Evidence, Found, Model, Pass, Setting, Workload};
use serde_json::Value;

use super::*;

fn cell(unit: Unit, axes: &[(Axis, &str)]) -> Cell {
    Cell {
        backend: "mnn".into(),
        model: Model { name: "m".into(), context: 128, chunk: Some(32), geometry: None },
        quant: Quant::W4,
        workload: Workload::Generate { prompt_tokens: 64, gen_tokens: 16 },
        unit,
        axes: axes.iter().map(|(axis, value)| (*axis, Setting::Asked((*value).to_owned()))).collect(),
    }
}

fn phone() -> DeviceFacts {
    let facts = json!({"name": "d", "class": "phone", "os": "android", "arch": "aarch64", "cpu": null, "cores": 8, "memory_mb": null,
        "kernel": null, "soc_model": 57, "htp_arch": 75, "remote": true});
    serde_json::from_value(facts).unwrap()
}

fn installed(without: &[&str]) -> Installed {
    let found = |need: Need| (need, Found { path: "/host/x".into(), version: Some("3.6.1".into()) });
    Installed(
        Mnn.needs(&phone()).into_iter().filter(|n| !without.contains(&bench_backend_api::tool::file_of(n).as_str())).map(found).collect(),
    )
}

const FILES: [&str; 4] = ["config.json", "llm.mnn", "llm.mnn.weight", "tokenizer.txt"];

fn made(cell: &Cell, files: &[&str], without: &[&str]) -> Result<(Vec<StagedFile>, Step), Failure> {
    asked(cell, files, without, &[])
}

fn asked(cell: &Cell, files: &[&str], without: &[&str], texts: &[String]) -> Result<(Vec<StagedFile>, Step), Failure> {
    let meta = json!({"config": {"llm_model": "llm.mnn", "backend_type": "cpu", "reuse_kv": true}});
    let artifact = Artifact { files: files.iter().map(|f| (*f).to_owned()).collect(), meta };
    let (device, installed) = (phone(), installed(without));
    // One discarded query and three measured ones.
    let prompts = vec![vec![1; 64]; 4];
    let launch =
        Launch { cell, pass: Pass::Measure, prompts: &prompts, texts, artifact: &artifact, installed: &installed, device: &device };
    let staged = Mnn.stage(&launch)?;
    Ok((staged, Mnn.steps(&launch, &Paths { work: "/w".into(), events: "e".into() }).remove(0)))
}

fn names(files: &[StagedFile]) -> Vec<&str> {
    files.iter().map(|f| f.name.as_str()).collect()
}

#[test]
fn llm_bench_is_asked_for_one_combination() {
    let (files, step) = made(&cell(Unit::Cpu, &[]), &FILES, &[]).unwrap();
    assert!(!Mnn.mixes_lengths(&cell(Unit::Cpu, &[]), &phone()));
    assert_eq!(step.invocation.program, Program::Staged("llm_bench".into()));
    // Options: the tool's own help (samples/mnn-native/help.txt). Its repetitions are the measured queries.
    let wanted = "-m ./config.json -a cpu -c 2 -t 4 -p 0 -n 0 -pg 64,16 -rep 3 -j result.json";
    assert_eq!(step.invocation.args.join(" "), wanted);
    assert!(["llm_bench", "libMNN.so", "llm.mnn.weight"].iter().all(|n| names(&files).contains(n)));
    assert!(!names(&files).iter().any(|n| n.contains("htpops") || n.contains("_CL") || n.contains("Qnn")), "{:?}", names(&files));

    let (files, step) = made(&cell(Unit::Gpu, &[]), &FILES, &[]).unwrap();
    assert!(step.invocation.args.join(" ").contains("-a opencl -c 2 -t 68 ") && names(&files).contains(&"libMNN_CL.so"));
    let (files, step) = made(&cell(Unit::Npu, &[(Axis::Threads, "2")]), &FILES, &[]).unwrap();
    assert!(step.invocation.args.join(" ").contains("-a hexagon -c 2 -t 2 ") && names(&files).contains(&"libMNN_htpops_skel.so"));
    // A model compiled for the NPU runs as a plugin of the CPU's backend.
    let offline = ["config.json", "config_qnn.json", "qnn/llm.mnn", "qnn/graph.bin"];
    let (files, step) = made(&cell(Unit::Npu, &[]), &offline, &[]).unwrap();
    assert!(step.invocation.args.join(" ").starts_with("-m ./config_qnn.json -a cpu "));
    assert!(["libQnnHtp.so", "libQnnHtpV75Skel.so", "qnn/graph.bin"].iter().all(|n| names(&files).contains(n)));
    let failure = made(&cell(Unit::Gpu, &[]), &FILES, &["libMNN_CL.so"]).unwrap_err();
    assert!(failure.message.contains("unit = gpu: libMNN_CL.so is missing"), "{failure}");
    assert!(made(&cell(Unit::Cpu, &[]), &FILES[1..], &[]).unwrap_err().message.contains("config.json"));
}

#[test]
fn llm_demo_reads_a_private_copy_of_the_configuration() {
    let demo = cell(Unit::Gpu, &[(Axis::Variant, "llm_demo")]);
    assert!(made(&demo, &FILES, &[]).unwrap_err().message.contains("prompt.txt"));
    let (files, step) = made(&demo, &[&FILES[..], &["prompt.txt"]].concat(), &[]).unwrap();
    assert_eq!(step.invocation.args, ["./config.json", "./prompt.txt", "16"]);
    let (own, _) = asked(&demo, &FILES, &[], &["a line".to_owned()]).unwrap();
    assert!(own.iter().any(|f| f.name == "prompt.txt" && f.source == Source::Bytes(b"a line".to_vec())));
    for odd in ["two\nlines", "# none", ""] {
        assert!(asked(&demo, &FILES, &[], &[odd.to_owned()]).is_err(), "{odd:?}");
    }
    let config: Vec<_> = files.iter().filter(|f| f.name == "config.json").collect();
    let [StagedFile { source: Source::Bytes(bytes), .. }] = config.as_slice() else { panic!("{config:?}") };
    let config: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(
        (&config["backend_type"], &config["reuse_kv"], &config["sampler_type"], &config["use_template"]),
        (&json!("opencl"), &json!(false), &json!("greedy"), &json!(false))
    );
    let notes = |files: &[StagedFile]| {
        let told = files.iter().find(|f| f.name == Told::FILE).map(|f| f.source.clone());
        let Some(Source::Bytes(bytes)) = told else { panic!("{told:?}") };
        let notes = serde_json::from_slice::<Told>(&bytes).unwrap().notes;
        ["sampling", "prompt"].map(|key| notes.get(key).cloned().unwrap_or_default())
    };
    assert_eq!(notes(&own), ["greedy", ""], "its question is bench's prompt");
    assert_eq!(notes(&files), ["greedy", "the artifact's prompt.txt"]);
    // llm_bench takes the model's own sampler, and ids of its own.
    let (bench, _) = made(&cell(Unit::Cpu, &[]), &FILES, &[]).unwrap();
    assert_eq!(notes(&bench), ["", "the tool's own, the same for every query"]);
}

#[test]
fn without_a_build_the_remedy_says_how() {
    let Availability::Missing { what, remedy } = Mnn.probe(&phone(), &installed(&["llm_bench", "llm_demo"])) else { panic!() };
    assert!(what == "llm_bench" && remedy.contains("MNN_BUILD_LLM"), "{what}: {remedy}");
    assert_eq!(Mnn.probe(&phone(), &installed(&["llm_demo"])), Availability::Ready { version: "MNN 3.6.1".into() });
}

fn told(tool: &str, offline: bool) -> String {
    json!({"tool": tool, "notes": {"repetitions": "3", "query": if tool == "llm_demo" { "0" } else { "3" }, "offline_qnn": offline.to_string(),
        "ttft_method": "derived"}})
    .to_string()
}

fn captured(told: String, files: &[(&str, String)], mapped: &str) -> Captured {
    let mut all: BTreeMap<String, Vec<u8>> = files.iter().map(|(name, text)| ((*name).to_owned(), text.clone().into_bytes())).collect();
    all.insert(Told::FILE.to_owned(), told.into_bytes());
    Captured {
        files: all,
        ended: Ended { reason: "exited".into(), code: Some(0), ..Ended::default() },
        evidence: Evidence { mapped: vec![mapped.to_owned()], device_nodes: Vec::new() },
    }
}

/// As llm_bench -j writes it (samples/mnn-native/json.json); the figures are ours.
fn result(backend: &str, tok_s: f64) -> String {
    json!({"model": ".", "modelSize": 1.25, "backend": backend, "threads": 4, "useMmap": false, "precision": 2, "memory": 2, "power": 0,
        "quantKv": 0, "flashAttention": 1, "results": [{"type": "prefill_and_decode", "prompt_len": 64, "generate_len": 16,
            "prefill_tps": 320.0, "prefill_std": 1.5, "decode_tps": tok_s, "decode_std": 0.2}]})
    .to_string()
}

#[test]
fn a_mean_is_one_row_and_no_word_of_the_tool_is_taken_on_trust() {
    let expected = Expected { prompt_tokens: 64, gen_tokens: 16, queries: 4, ..Expected::default() };
    let check = |unit: Unit, backend: &str, offline: bool, mapped: &str| {
        let captured = captured(told("llm_bench", offline), &[("result.json", result(backend, 20.0))], mapped);
        let parsed = Mnn.parse(&captured).unwrap();
        (Mnn.verify(&cell(unit, &[]), &expected, &parsed, &captured), parsed)
    };
    let (checks, parsed) = check(Unit::Cpu, "CPU", false, "/w/libMNN.so");
    let [query] = parsed.queries.as_slice() else { panic!("{parsed:?}") };
    // 64 tokens at 320 a second are 0.2 s; 15 steps at 20 a second are 0.75 s.
    assert_eq!(
        (query.query, query.aggregate_n, query.reported["prefill_us"], query.reported["decode_us"]),
        (3, Some(3), 200_000.0, 750_000.0)
    );
    assert_eq!(
        (checks.count, checks.tokens, checks.unit),
        (Check::NotCheckable, Check::NotCheckable, Check::Confirmed),
        "{:?}",
        checks.reasons
    );
    assert_eq!(check(Unit::Gpu, "CPU", false, "/w/libMNN.so").0.unit, Check::Contradicted);
    assert_eq!(check(Unit::Gpu, "OPENCL", false, "/w/libMNN.so").0.unit, Check::NotCheckable);
    assert_eq!(check(Unit::Gpu, "OPENCL", false, "/vendor/lib64/libOpenCL.so").0.unit, Check::Confirmed);
    let (checks, _) = check(Unit::Npu, "CPU", true, "/w/libQnnHtp.so");
    assert_eq!((checks.unit, checks.unit_found.as_deref()), (Check::Confirmed, Some("npu")));
    let other = captured(told("llm_bench", false), &[("result.json", result("CPU", 20.0).replace("64", "32"))], "/w/libMNN.so");
    assert_eq!(Mnn.verify(&cell(Unit::Cpu, &[]), &expected, &Mnn.parse(&other).unwrap(), &other).count, Check::Contradicted);
}

#[test]
fn the_profiling_pass_asks_llm_bench_for_its_operators_on_the_cpu() {
    let words = |unit: Unit, pass: Pass| {
        let cell = cell(unit, &[]);
        let artifact = Artifact { files: FILES.map(str::to_owned).to_vec(), meta: json!({"config": {"llm_model": "llm.mnn"}}) };
        let (device, installed, prompts) = (phone(), installed(&[]), vec![vec![1; 64]; 4]);
        let launch =
            Launch { cell: &cell, pass, prompts: &prompts, texts: &[], artifact: &artifact, installed: &installed, device: &device };
        Mnn.steps(&launch, &Paths { work: "/w".into(), events: "e".into() }).remove(0).invocation.args.join(" ")
    };
    assert!(words(Unit::Cpu, Pass::Profile).ends_with(" --profile"));
    assert!(!words(Unit::Cpu, Pass::Measure).contains("--profile") && !words(Unit::Gpu, Pass::Profile).contains("--profile"));
    // The tool's own table, of another run than the speeds.
    let table = include_str!("../../fixtures/profile_by_type.stdout").to_owned();
    let table = table.split_once("=====").map(|(_, rest)| format!("====={rest}")).unwrap();
    let run = captured(told("llm_bench", false), &[("result.json", result("CPU", 20.0)), ("stdout.txt", table)], "/w/libMNN.so");
    let parsed = Mnn.parse(&run).unwrap();
    assert!(parsed.failure.is_none() && !parsed.layers.is_empty(), "{parsed:?}");
    assert!(parsed.layers.iter().all(|l| l.unit.as_deref() == Some("cpu") && l.method == "mnn-llm-bench-profile-by-type"));
}

#[test]
fn absurd_speeds_and_empty_output_are_failures() {
    // What llm_bench prints with exit status 0 where it loaded nothing.
    let absurd = captured(told("llm_bench", false), &[("result.json", result("CPU", 8_000_000.0))], "");
    assert!(Mnn.parse(&absurd).unwrap().failure.is_some());
    assert!(Mnn.parse(&captured(told("llm_bench", false), &[], "")).unwrap().failure.unwrap().message.contains("printed nothing"));
    let stdout = "config path is ./config.json\nLLM init error\n".to_owned();
    assert!(Mnn.parse(&captured(told("llm_demo", false), &[("stdout.txt", stdout)], "")).unwrap().failure.is_some());
}

#[test]
fn llm_demo_tells_its_counts() {
    let block = "prompt file is ./prompt.txt\nwords\n\n#################################\nprompt tokens num = 64\ndecode tokens num = 16\n\
        prefill time = 0.20 s\n decode time = 0.80 s\n sample time = 0.05 s\nprefill speed = 320.00 tok/s\n decode speed = 20.00 tok/s\n\
        ##################################\n";
    let captured = captured(told("llm_demo", false), &[("stdout.txt", block.to_owned())], "/w/libMNN.so");
    let parsed = Mnn.parse(&captured).unwrap();
    assert_eq!((&parsed.failure, parsed.queries[0].query, parsed.queries[0].aggregate_n), (&None, 0, Some(1)));
    let expected = Expected { prompt_tokens: 64, gen_tokens: 16, queries: 4, ..Expected::default() };
    let checks = Mnn.verify(&cell(Unit::Cpu, &[]), &expected, &parsed, &captured);
    assert_eq!((checks.count, checks.unit), (Check::Confirmed, Check::NotCheckable));
    let other = Expected { prompt_tokens: 63, ..expected };
    assert_eq!(Mnn.verify(&cell(Unit::Cpu, &[]), &other, &parsed, &captured).count, Check::Contradicted);
}
