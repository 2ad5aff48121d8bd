//! On a device that is another machine.

use bench_backend_api::{Artifact, Ended, Evidence, FailureKind, Found, GraphTime, Model, Quant, Setting, Workload};
use serde_json::{Value, json};

use super::*;

fn cell(axes: &[(Axis, &str)]) -> Cell {
    let geometry = json!({"name": "t", "layers": 1, "hidden": 8, "heads": 1, "kv_heads": 1, "head_dim": 8, "ffn": 8, "vocab": 64,
        "rope_theta": 1e4, "norm_eps": 1e-5, "tied_embeddings": false, "experts": 0, "lm_head_bits": 16, "embedding_bits": 16, "seed": 1,
        "bos": 0, "eos": 1, "pad": 2});
    Cell {
        backend: "ort-qnn".into(),
        model: Model { name: "m".into(), context: 128, chunk: Some(32), geometry: serde_json::from_value(geometry).unwrap() },
        quant: Quant::Fp16,
        workload: Workload::Generate { prompt_tokens: 3, gen_tokens: 8 },
        unit: Unit::Npu,
        axes: axes.iter().map(|(axis, value)| (*axis, Setting::Asked((*value).to_owned()))).collect(),
    }
}

fn phone() -> DeviceFacts {
    let facts = json!({"name": "d", "class": "phone", "os": "android", "arch": "aarch64", "cpu": null, "cores": 8, "memory_mb": null,
        "kernel": null, "soc_model": 57, "htp_arch": 75, "remote": true});
    serde_json::from_value(facts).unwrap()
}

fn installed(without: &[&str]) -> Installed {
    let found = |need: Need| (need, Found { path: "/host/x".into(), version: Some("1.32.0".into()) });
    Installed(OrtQnn.needs(&phone()).into_iter().filter(|n| !without.contains(&tool::file_of(n).as_str())).map(found).collect())
}

fn artifact(files: &[&str]) -> Artifact {
    Artifact { files: files.iter().map(|f| (*f).to_owned()).collect(), meta: json!({}) }
}

const WHOLE: [&str; 5] = ["prefill.onnx", "prefill.bin", "decode.onnx", "decode.bin", "meta.json"];

fn made(axes: &[(Axis, &str)], pass: Pass, without: &[&str], files: &[&str]) -> Result<(Vec<StagedFile>, Vec<Step>), Failure> {
    let (cell, artifact, device, installed) = (cell(axes), artifact(files), phone(), installed(without));
    let launch =
        Launch { cell: &cell, pass, prompts: &[vec![0, 4, 5]], texts: &[], artifact: &artifact, installed: &installed, device: &device };
    let files = OrtQnn.stage(&launch)?;
    Ok((files, OrtQnn.steps(&launch, &Paths { work: "/w".into(), events: "e".into() })))
}

#[test]
fn our_runner_finds_its_libraries_in_the_work_folder() {
    let (files, steps) = made(&[(Axis::PerfProfile, "burst")], Pass::Measure, &[], &WHOLE).unwrap();
    let names: Vec<&str> = files.iter().map(|f| f.name.as_str()).collect();
    for name in [
        "bench-ort-qnn-runner",
        "libonnxruntime.so",
        "libonnxruntime_providers_qnn.so",
        "libQnnHtpV75Stub.so",
        "libQnnHtpV75Skel.so",
        "decode.bin",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let Some(Source::Bytes(job)) = files.iter().find(|f| f.name == JOB_FILE).map(|f| &f.source) else { panic!() };
    let job: Value = serde_json::from_slice(job).unwrap();
    let wanted =
        json!({"onnxruntime": "./libonnxruntime.so", "qnn_backend": "./libQnnHtp.so", "qnn_ep": "./libonnxruntime_providers_qnn.so"});
    assert_eq!((&job["runtime"], &job["perf_profile"]), (&wanted, &json!("burst")));
    let [step] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(
        (&step.invocation.program, step.invocation.env["LD_LIBRARY_PATH"].as_str()),
        (&Program::Staged("bench-ort-qnn-runner".into()), "/w")
    );
    assert_eq!(OrtQnn.probe(&phone(), &installed(&[])), Availability::Ready { version: "onnxruntime 1.32.0, bench-ort-qnn-runner".into() });
}

/// A prefill is composed of as many executions as the prompt has chunks: an AR that nobody tells is not guessed.
#[test]
fn perf_test_needs_the_ar_of_the_prefill() {
    let (device, installed) = (phone(), installed(&["bench-ort-qnn-runner"]));
    let mut cell = cell(&[]);
    cell.model.chunk = None;
    let staged = |meta: Value| {
        let artifact = Artifact { meta, ..artifact(&WHOLE) };
        let prompts = [vec![0, 4, 5]];
        let (pass, texts) = (Pass::Measure, &[][..]);
        OrtQnn.stage(&Launch { cell: &cell, pass, prompts: &prompts, texts, artifact: &artifact, installed: &installed, device: &device })
    };
    let refused = staged(json!({})).unwrap_err();
    assert_eq!((refused.kind, refused.hint.as_deref()), (FailureKind::Usage, Some("state `chunk` in [models.m]")));
    let files = staged(json!({"graphs": {"prefill": {"tokens": 64}}})).unwrap();
    let Some(Source::Bytes(told)) = files.iter().find(|f| f.name == "told.json").map(|f| &f.source) else { panic!() };
    assert_eq!(serde_json::from_slice::<Value>(told).unwrap()["notes"]["chunk"], "64");
}

#[test]
fn without_it_perf_test_runs_both_graphs() {
    let runner = "bench-ort-qnn-runner";
    let (_, steps) = made(&[(Axis::PerfProfile, "burst")], Pass::Measure, &[runner, "libonnxruntime_providers_qnn.so"], &WHOLE).unwrap();
    let names: Vec<&str> = steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["prefill", "decode"]);
    // formats/onnxruntime.md, of a build with the provider inside.
    let wanted = [
        "-I",
        "-s",
        "-m",
        "times",
        "-r",
        "20",
        "-e",
        "qnn",
        "-i",
        "backend_path|libQnnHtp.so htp_performance_mode|burst",
        "-C",
        "session.disable_cpu_ep_fallback|1",
        "decode.onnx",
        "decode.csv",
    ];
    assert_eq!(steps[1].invocation.args, wanted);
    let (files, steps) = made(&[], Pass::Profile, &[runner], &WHOLE).unwrap();
    let words = steps[0].invocation.args.join(" ");
    assert!(words.contains("--plugin_eps QNNExecutionProvider") && !words.contains(" -e qnn"), "{words}");
    assert!(words.contains("profiling_level|detailed profiling_file_path|profile_prefill.csv"), "{words}");
    assert_eq!(steps[0].invocation.outputs, [Told::FILE, "profile_prefill.csv"]);
    assert!(files.iter().any(|f| f.name == "libonnxruntime_providers_qnn.so"));
    let failure = made(&[], Pass::Measure, &[runner], &WHOLE[..2]).err().unwrap();
    assert!(failure.message.contains("no decode.onnx"), "{failure}");
    let Availability::Missing { what, remedy } = OrtQnn.probe(&phone(), &installed(&[runner, "onnxruntime_perf_test"])) else { panic!() };
    assert!(what == runner && remedy.contains("--ndk"), "{what}: {remedy}");
}

/// As perf_test prints it (formats/onnxruntime.md); the figures are ours.
fn printed(ms: f64) -> String {
    format!(
        "Session creation time cost: 0.31 s\nFirst inference time cost: 9 ms\nTotal inference time cost: {} s\nTotal inference requests: 20\n\
         Average inference time cost total: {ms} ms\nTotal inference run time: {} s\nNumber of inferences per second: {}\nAvg CPU usage: 2 %\n\
         Peak working set size: 158171136 bytes\n",
        ms * 20.0 / 1e3,
        ms * 20.0 / 1e3,
        1e3 / ms
    )
}

fn captured(decode: &str) -> Captured {
    let told = json!({"tool": "onnxruntime_perf_test", "notes": {"engine": "graph", "chunk": "32", "executions": "20"}});
    let files = [
        (Told::FILE, told.to_string()),
        ("prefill/stdout.txt", printed(6.4)),
        ("prefill/stderr.txt", String::new()),
        ("decode/stdout.txt", decode.to_owned()),
    ];
    Captured {
        files: files.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect(),
        ended: Ended { reason: "exited".into(), code: Some(0), ..Ended::default() },
        evidence: Evidence { mapped: vec!["/w/libQnnHtp.so".into()], device_nodes: Vec::new() },
    }
}

#[test]
fn its_averages_are_graph_times_and_nothing_else() {
    let whole = captured(&printed(1.25));
    let parsed = OrtQnn.parse(&whole).unwrap();
    let graph = |phase: &str, tokens, latency_ms| GraphTime { phase: phase.into(), tokens, part: 1, parts: 1, n: 20, latency_ms };
    assert_eq!((&parsed.failure, parsed.graphs.as_slice()), (&None, &[graph("prefill", 32, 6.4), graph("decode", 1, 1.25)][..]));
    assert_eq!((parsed.queries.len(), parsed.notes["engine"].as_str()), (0, "graph"));
    let checks = OrtQnn.verify(&cell(&[]), &Expected::default(), &parsed, &whole);
    assert_eq!((checks.count, checks.tokens, checks.unit), (Check::NotCheckable, Check::NotCheckable, Check::Confirmed));
    for bad in ["", "Setting intra_op_num_threads to 1\n", "Run failed:the model is bad\n"] {
        assert!(OrtQnn.parse(&captured(bad)).unwrap().failure.is_some(), "{bad:?}");
    }
}
