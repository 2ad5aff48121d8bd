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
