//! Every adapter on a device that is another machine: no path of this machine reaches it.

use std::collections::BTreeMap;

use bench_backend_api::{
    Artifact, Availability, Axis, Backend, Cell, DeviceClass, DeviceFacts, Found, Installed, Launch, Model, Need, Pass, Paths, Program,
    Quant, Setting, Source, Unit, Workload, tool::file_of,
};
use serde_json::json;

use super::BACKENDS;

/// What stands in every host path, and in nothing else.
const HOST: &str = "/host-only/";

fn device(os: &str, arch: &str, htp_arch: u32) -> DeviceFacts {
    DeviceFacts {
        name: "serial".into(),
        class: DeviceClass::Phone,
        os: os.into(),
        arch: arch.into(),
        cpu: None,
        cores: Some(8),
        memory_mb: None,
        kernel: None,
        soc_model: 57,
        htp_arch,
        remote: true,
        soc: None,
        vtcm_mb: None,
        no_llm: None,
    }
}

fn installed(needs: impl IntoIterator<Item = Need>) -> Installed {
    let found = |need: Need| {
        let path = format!("{HOST}{}", file_of(&need));
        (need, Found { path, version: Some("1.2.3".into()) })
    };
    Installed(needs.into_iter().map(found).collect())
}

/// A folder that every backend finds its model in, with a configuration that is full of paths of this machine.
fn artifact(backend: &str) -> Artifact {
    let graph = |tokens: u32, binary: &str| {
        json!({"tokens": tokens, "binary": binary, "inputs": {"input_ids": {"dtype": "int32", "shape": [1, tokens]}},
            "outputs": {"logits": {"dtype": "float16", "shape": [1, tokens, 8]}}})
    };
    let files = [
        "prefill.onnx",
        "prefill.bin",
        "decode.onnx",
        "decode.bin",
        "meta.json",
        "tokenizer.json",
        "genai_config.json",
        "config.json",
        "llm.mnn",
        "prompt.txt",
    ];
    let mnn = json!({"llm_model": format!("{HOST}llm.mnn"), "tmp_path": format!("{HOST}tmp"), "backend_type": "cpu"});
    let genie = json!({"dialog": {"context": {"size": 128, "n-vocab": 64, "bos-token": 0, "eos-token": 1},
        "tokenizer": {"path": format!("{HOST}tokenizer.json")}, "engine": {"backend": {"type": "QnnHtp", "extensions": format!("{HOST}ext.json")},
        "model": {"binary": {"ctx-bins": [format!("{HOST}prefill.bin"), format!("{HOST}decode.bin")]}}}}});
    let own = if backend == "mnn" { mnn } else { genie };
    let meta = json!({"graphs": {"prefill": graph(32, "prefill.bin"), "decode": graph(1, "decode.bin")}, "config": own});
    Artifact { files: files.map(str::to_owned).to_vec(), meta }
}

fn cell(backend: &dyn Backend, unit: Unit, axes: &[(Axis, &str)]) -> Cell {
    let geometry = json!({"name": "t", "layers": 1, "hidden": 8, "heads": 1, "kv_heads": 1, "head_dim": 8, "ffn": 8, "vocab": 64,
        "rope_theta": 1e4, "norm_eps": 1e-5, "tied_embeddings": false, "experts": 0, "lm_head_bits": 16, "embedding_bits": 16, "seed": 1,
        "bos": 0, "eos": 1, "pad": 2});
    let axes: BTreeMap<Axis, Setting> = axes.iter().map(|(axis, value)| (*axis, Setting::Asked((*value).to_owned()))).collect();
    Cell {
        backend: backend.id().to_owned(),
        model: Model { name: "m".into(), context: 128, chunk: Some(32), geometry: serde_json::from_value(geometry).expect("a geometry") },
        quant: Quant::W4,
        workload: Workload::Generate { prompt_tokens: 3, gen_tokens: 8 },
        unit,
        axes,
    }
}

/// Everything that reaches the device of one launch, as one text. `None` where the adapter refuses.
fn told(backend: &dyn Backend, device: &DeviceFacts, installed: &Installed, cell: &Cell, pass: Pass) -> Option<String> {
    let (artifact, prompts) = (artifact(backend.id()), [vec![0, 4, 5], vec![0, 6, 7]]);
    let launch = Launch { cell, pass, prompts: &prompts, texts: &[], artifact: &artifact, installed, device };
    let files = backend.stage(&launch).ok()?;
    let steps = backend.steps(&launch, &Paths { work: "/data/local/tmp/bench/w".into(), events: "events.jsonl".into() });
    assert!(!steps.is_empty(), "{}: staged and nothing to run", backend.id());
    let mut text = String::new();
    for file in &files {
        assert!(!file.name.starts_with('/') && !file.name.split('/').any(|part| part == ".."), "{}: {}", backend.id(), file.name);
        assert_eq!(files.iter().filter(|f| f.name == file.name).count(), 1, "{}: {} is staged twice", backend.id(), file.name);
        if let Source::Bytes(bytes) = &file.source {
            text.push_str(&String::from_utf8_lossy(bytes));
        }
    }
    for step in steps {
        let Program::Staged(name) = &step.invocation.program else {
            panic!("{}: {:?} is not staged", backend.id(), step.invocation.program)
        };
        assert!(files.iter().any(|f| f.name == *name), "{}: {name} is not among the staged files", backend.id());
        text.push_str(&step.invocation.args.join("\n"));
        text.extend(step.invocation.env.iter().map(|(k, v)| format!("\n{k}={v}\n")));
        assert!(step.invocation.env.get("LD_LIBRARY_PATH").is_some_and(|v| v == "/data/local/tmp/bench/w"), "{}", backend.id());
    }
    Some(text)
}

#[test]
fn no_path_of_this_machine_reaches_another() {
    let mut launches: BTreeMap<&str, usize> = BTreeMap::new();
    for device in [device("android", "aarch64", 75), device("android", "x86_64", 75), device("linux", "aarch64", 73)] {
        for backend in BACKENDS {
            let needs = backend.needs(&device);
            assert!(
                !needs.iter().any(|n| matches!(n, Need::Python | Need::PythonPackage { .. })),
                "{}: Python of this machine",
                backend.id()
            );
            let all = installed(needs.clone());
            assert!(
                matches!(backend.probe(&device, &all), Availability::Ready { .. }),
                "{}: {:?}",
                backend.id(),
                backend.probe(&device, &all)
            );
            // Everything, and everything but one file: the adapter takes another way or refuses.
            let some = needs.iter().map(|left| installed(needs.iter().filter(|n| *n != left).cloned()));
            for installed in std::iter::once(all).chain(some) {
                for axes in [&[][..], &[(Axis::PerfProfile, "burst")], &[(Axis::Variant, "llm_demo")]] {
                    for (unit, pass) in [(Unit::Npu, Pass::Measure), (Unit::Cpu, Pass::Measure), (Unit::Npu, Pass::Profile)] {
                        let Some(text) = told(*backend, &device, &installed, &cell(*backend, unit, axes), pass) else { continue };
                        assert!(!text.contains(HOST), "{} on {}: {text}", backend.id(), device.arch);
                        *launches.entry(backend.id()).or_default() += 1;
                    }
                }
            }
        }
    }
    assert_eq!(launches.len(), BACKENDS.len(), "{launches:?}");
    assert!(launches.values().all(|n| *n >= 20), "{launches:?}");
}

#[test]
fn an_emulated_npu_is_never_a_phone() {
    for backend in BACKENDS {
        let class = |arch: &str| backend.device_class(&cell(*backend, Unit::Npu, &[]), &device("android", arch, 75));
        assert_eq!(class("aarch64"), DeviceClass::Phone, "{}", backend.id());
        if backend.id() != "mnn" {
            assert_eq!(class("x86_64"), DeviceClass::Emulator, "{}", backend.id());
        }
    }
}

#[test]
fn without_anything_the_remedy_is_named() {
    let device = device("android", "aarch64", 75);
    for backend in BACKENDS {
        let Availability::Missing { what, remedy } = backend.probe(&device, &Installed::default()) else { panic!("{}", backend.id()) };
        assert!(!what.is_empty() && remedy.len() > 20, "{}: {what}, {remedy}", backend.id());
    }
}
