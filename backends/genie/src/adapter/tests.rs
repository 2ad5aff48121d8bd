mod device;

use super::*;
use bench_backend_api::{Artifact, Geometry, Model, Quant, Setting, Workload};
use serde_json::{Value, json};

fn cell(axes: &[(Axis, &str)]) -> Cell {
    let geometry: Geometry =
        serde_json::from_value(json!({"name": "t", "layers": 1, "hidden": 8, "heads": 1, "kv_heads": 1, "head_dim": 8,
            "ffn": 8, "vocab": 64, "rope_theta": 1e4, "norm_eps": 1e-5, "tied_embeddings": false, "experts": 0, "lm_head_bits": 16,
            "embedding_bits": 16, "seed": 1, "bos": 0, "eos": 1, "pad": 2}))
        .expect("a geometry");
    Cell {
        backend: "genie".to_owned(),
        model: Model { name: "m".to_owned(), context: 128, chunk: Some(32), geometry: Some(geometry) },
        quant: Quant::Fp16,
        workload: Workload::Generate { prompt_tokens: 3, gen_tokens: 8 },
        unit: Unit::Npu,
        axes: axes.iter().map(|(axis, value)| (*axis, Setting::Asked((*value).to_owned()))).collect(),
    }
}

fn pc() -> DeviceFacts {
    DeviceFacts {
        name: "d".to_owned(),
        class: DeviceClass::Pc,
        os: "linux".to_owned(),
        arch: "x86_64".to_owned(),
        cpu: None,
        cores: None,
        memory_mb: None,
        kernel: None,
        soc_model: 57,
        htp_arch: 75,
        remote: false,
        soc: None,
        vtcm_mb: None,
        no_llm: None,
    }
}

#[test]
fn our_runner_alone_answers_several_lengths_in_one_process() {
    let mixes = |axes: &[(Axis, &str)]| Genie.mixes_lengths(&cell(axes), &pc());
    assert!(mixes(&[]) && mixes(&[(Axis::Variant, "bench-genie-runner")]) && mixes(&[(Axis::Variant, "of-the-files")]));
    assert!(!mixes(&[(Axis::Variant, "genie-app")]) && !mixes(&[(Axis::Variant, "genie-t2t-run")]));
}

/// The configuration that a user's own becomes.
fn adapted(own: &Value, threads: Option<&str>) -> Result<Value, Failure> {
    let cell = cell(&threads.map(|t| (Axis::Threads, t)).into_iter().collect::<Vec<_>>());
    let artifact = Artifact { files: vec!["m.bin".to_owned()], meta: json!({"config": own}) };
    let (installed, device) = (Installed::default(), pc());
    let pass = bench_backend_api::Pass::Measure;
    config(
        &Launch { cell: &cell, pass, prompts: &[], texts: &[], artifact: &artifact, installed: &installed, device: &device },
        Wanted::default(),
    )
}

/// What the profiling pass of an artifact stages and runs, by name.
fn profiled(files: &[&str], device: &DeviceFacts, pass: bench_backend_api::Pass) -> (Vec<String>, Vec<String>) {
    let found = |need: Need| (need, bench_backend_api::Found { path: "/x".to_owned(), version: Some("1".to_owned()) });
    let installed = Installed(Genie.needs(device).into_iter().map(found).collect());
    let graph = |tokens: u32, binary: &str| {
        json!({"tokens": tokens, "binary": binary, "inputs": {"ids": {"dtype": "int32", "shape": [1, tokens]}},
            "outputs": {"logits": {"dtype": "float16", "shape": [8]}}})
    };
    let meta = json!({"graphs": {"prefill": graph(32, "prefill.bin"), "decode": graph(1, "decode.bin")}});
    let artifact = Artifact { files: files.iter().map(|f| (*f).to_owned()).collect(), meta };
    let (cell, prompts) = (cell(&[]), [vec![0, 4, 5]]);
    let launch = Launch { cell: &cell, pass, prompts: &prompts, texts: &[], artifact: &artifact, installed: &installed, device };
    let files: Vec<String> = Genie.stage(&launch).expect("staged").into_iter().map(|f| f.name).collect();
    for name in &files {
        assert_eq!(files.iter().filter(|f| *f == name).count(), 1, "{name} is staged twice");
    }
    let paths = Paths { work: "/w".to_owned(), events: "events.jsonl".to_owned() };
    (files, Genie.steps(&launch, &paths).into_iter().map(|step| step.name).collect())
}

#[test]
fn the_profiling_pass_runs_the_same_binaries_under_a_tool_that_tells_operations() {
    use bench_backend_api::Pass::{Measure, Profile};
    let whole = ["prefill.bin", "decode.bin", "prefill.onnx", "decode.onnx", "meta.json", "tokenizer.json"];
    let (files, steps) = profiled(&whole, &pc(), Profile);
    assert_eq!(steps, ["operations", "query"]);
    assert!(["operations.json", "job.json", "prefill.onnx", "meta.json"].iter().all(|f| files.iter().any(|name| name == f)), "{files:?}");
    let (files, steps) = profiled(&whole, &pc(), Measure);
    assert!(steps == ["query"] && !files.iter().any(|f| f.contains(".onnx")), "{steps:?} {files:?}");
    // A user's own bundle has no wrappers.
    assert_eq!(profiled(&["prefill.bin", "decode.bin", "tokenizer.json"], &pc(), Profile).1, ["query"]);
    // Elsewhere the SDK's tool is the other one, whose libraries are Genie's.
    let phone = DeviceFacts { os: "android".to_owned(), arch: "aarch64".to_owned(), remote: true, class: DeviceClass::Phone, ..pc() };
    let (files, steps) = profiled(&whole, &phone, Profile);
    assert_eq!(steps, ["prefill", "prefill-viewer", "decode", "decode-viewer", "query"]);
    assert!(files.iter().any(|f| f == "qnn-net-run") && !files.iter().any(|f| f.contains("onnx")), "{files:?}");
    assert_eq!(profiled(&whole, &phone, Measure).1, ["query"]);
}

#[test]
fn what_the_other_tool_says_is_layers_and_nothing_else() {
    let csv = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n\
        1,EXECUTE,90,US,BACKEND,ROOT,QNN (execute) time\n1,EXECUTE,12,CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)\n\
        1,NODE,12,CYCLES,BACKEND,SUB-EVENT,layers.0.q:OpId_7 (cycles)\n";
    let files = [("profile_decode.csv".to_owned(), csv.as_bytes().to_vec())].into();
    let mut parsed = Parsed::default();
    same_binary::layers(&Captured { files, ..Captured::default() }, &mut parsed);
    let layer = &parsed.layers[0];
    assert_eq!((layer.name.as_str(), layer.phase.as_str(), layer.value), ("layers.0.q:OpId_7", "decode", Some(12.0)));
    assert_eq!((layer.method.as_str(), parsed.layers.len()), ("same binary, qnn-detailed", 1));
    assert!(parsed.npu.is_none() && parsed.graphs.is_empty() && parsed.warnings.is_empty(), "{parsed:?}");
    // Its failure is told, and Genie's step runs all the same.
    let ended = bench_backend_api::Ended { reason: "exited".to_owned(), code: Some(3), ..bench_backend_api::Ended::default() };
    let failed = Captured { files: [("stderr.txt".to_owned(), b"no device\n".to_vec())].into(), ended, ..Captured::default() };
    let why = Genie.excuse("operations", &failed).expect("excused");
    assert!(why.contains("exit status 3: no device"), "{why}");
    assert_eq!(Genie.excuse("query", &failed), None);
}

#[test]
fn a_users_configuration_is_changed_or_refused_and_never_a_panic() {
    let good = json!({"dialog": {"stop-sequence": ["x"], "engine": {"n-threads": 1, "model": {"binary": {}}}}});
    let config = adapted(&good, Some("3")).expect("adapted");
    assert_eq!(config.pointer("/dialog/engine/n-threads"), Some(&json!(3)));
    assert_eq!(config.pointer("/dialog/engine/model/binary/ctx-bins"), Some(&json!(["m.bin"])));
    assert_eq!(config.pointer("/dialog/stop-sequence"), None);
    for engine in [json!("x"), json!(null), json!(7), json!(true)] {
        for threads in [None, Some("3")] {
            let failure = adapted(&json!({"dialog": {"engine": engine}}), threads).expect_err("no engine");
            assert_eq!((failure.kind, failure.message.contains("`dialog.engine`")), (FailureKind::Usage, true), "{failure}");
        }
    }
    for own in [json!({}), json!("x"), json!([1]), json!({"dialog": []})] {
        assert_eq!(adapted(&own, Some("3")).expect_err("no dialog").kind, FailureKind::Usage);
    }
    let several = json!({"dialog": {"engine": [{"role": "target"}, {"role": "draft"}]}});
    assert!(adapted(&several, None).is_ok());
    assert_eq!(adapted(&several, Some("3")).expect_err("which").kind, FailureKind::Usage);
}

/// Dialog types and keys: formats/genie.md, from the samples of QAIRT 2.40 and of Qualcomm's AI Hub.
#[test]
fn the_configuration_that_was_used_says_how_tokens_are_made() {
    let parsed = |config: &Value| {
        let files = [("events.jsonl", b"{\"v\":1,\"event\":\"end\",\"t_ns\":9}\n".to_vec()), (CONFIG, serde_json::to_vec(config).unwrap())];
        let files = files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
        let parsed = Genie.parse(&Captured { files, ..Captured::default() }).expect("events");
        (parsed.speculative().map(str::to_owned), parsed.notes.get("sampling").cloned(), parsed.notes.get("context").cloned())
    };
    let dialog = |kind: &str, sampler: Value| json!({"dialog": {"type": kind, "sampler": sampler, "context": {"size": 4096}}});
    let word = |text: &str| Some(text.to_owned());
    // The copy that bench makes of a shipped configuration.
    let shipped = json!({"dialog": {"version": 1, "type": "ssd-q1", "sampler": {"version": 1, "temp": 0.8, "top-k": 40, "top-p": 0.95},
        "context": {"size": 4096, "n-vocab": 64}, "engine": {"n-threads": 3, "model": {"binary": {}}}}});
    assert_eq!(parsed(&adapted(&shipped, None).unwrap()), (word("ssd-q1"), word("greedy"), word("4096")));
    assert_eq!(parsed(&shipped), (word("ssd-q1"), word("drawn: temp 0.8, top-k 40, top-p 0.95"), word("4096")));
    for kind in ["lade", "spd", "eaglet"] {
        assert_eq!(parsed(&dialog(kind, json!({"greedy": true}))).0.as_deref(), Some(kind));
    }
    for kind in ["basic", "kv-share", "multistream"] {
        assert_eq!(parsed(&dialog(kind, json!({"temp": 0.0}))), (None, word("greedy"), word("4096")));
    }
    for none in [json!({}), json!([1]), json!({"dialog": 7})] {
        assert_eq!(parsed(&none), (None, None, None));
    }
}
