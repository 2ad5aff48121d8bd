//! Every adapter's command lines against the stand-ins for the vendors' tools, which take no other: what is staged for a phone is laid out in
//! a plain folder, its steps are run there, and what they leave is read. No device is needed; a run over ADB is another test's.

mod support;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use bench::registry::BACKENDS;
use bench_backend_api::{
    Artifact, Axis, Backend, Captured, Cell, Check, DeviceClass, DeviceFacts, Ended, Evidence, Expected, Found, Geometry, Installed,
    Launch, Model, Need, Parsed, Pass, Paths, Program, Quant, Setting, Source, Unit, Workload,
};
use serde_json::json;
use support::root;

const PROMPT: u32 = 3;
const GENERATED: u32 = 8;

/// The stand-ins' folders and a model of a few bytes in each engine's form.
struct Bed {
    dir: tempfile::TempDir,
    sdk: PathBuf,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sdk = dir.path().join("sdk");
        let made = Command::new(root().join("tests/standins/android/make-sdk.sh")).arg(&sdk).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let model = dir.path().join("model");
        fs::create_dir(&model).unwrap();
        let binary = b"\0v2.37.0.250724175447\0input_ids\0logits\0";
        for (name, bytes) in [
            ("prefill.bin", &binary[..]),
            ("decode.bin", binary),
            ("prefill.onnx", b"\x08\x08"),
            ("decode.onnx", b"\x08\x08"),
            ("model.onnx", b"\x08\x08"),
            ("tokenizer.json", br#"{"model": {"type": "WordLevel", "vocab": {}}}"#),
            ("tokenizer.txt", b""),
            ("genai_config.json", br#"{"model": {"context_length": 128, "decoder": {"filename": "model.onnx", "session_options": {"provider_options": [{"qnn": {}}]}}}}"#),
            ("config.json", br#"{"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight"}"#),
            ("llm.mnn", b"m"),
            ("llm.mnn.weight", b"w"),
        ] {
            fs::write(model.join(name), bytes).unwrap();
        }
        Self { dir, sdk }
    }

    fn artifact(&self, backend: &str) -> Artifact {
        let model = self.dir.path().join("model");
        let mut files: Vec<String> = fs::read_dir(model).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        let graph = |tokens: u32, binary: &str| {
            json!({"tokens": tokens, "binary": binary, "inputs": {"input_ids": {"dtype": "int32", "shape": [1, tokens]}},
                "outputs": {"logits": {"dtype": "float16", "shape": [1, tokens, 8]}}})
        };
        let mut meta = json!({"graphs": {"prefill": graph(32, "prefill.bin"), "decode": graph(1, "decode.bin")}});
        if backend == "mnn" {
            meta["config"] = json!({"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight", "backend_type": "cpu"});
        }
        Artifact { files, meta }
    }

    /// Where the stand-ins have what a need names; our own runners are nowhere.
    fn installed(&self, needs: Vec<Need>, device: &DeviceFacts) -> Installed {
        let target = device.qairt_target();
        let places = |need: &Need| match need {
            Need::QairtFile { path } => vec![self.sdk.join("qairt").join(path)],
            Need::DeviceLibrary { set, name } if set == "qairt" => {
                vec![self.sdk.join("qairt/lib").join(target).join(name), self.sdk.join("qairt/lib/hexagon-v75/unsigned").join(name)]
            }
            Need::DeviceLibrary { set, name } => {
                // The provider for NPUs brings the libraries of QNN, and so does a build with it inside.
                let qnn = [self.sdk.join("qairt/lib").join(target).join(name), self.sdk.join("qairt/lib/hexagon-v75/unsigned").join(name)];
                [self.sdk.join(set).join(target).join(name)].into_iter().chain(qnn).collect()
            }
            _ => Vec::new(),
        };
        let found = |need: Need| {
            let path = places(&need).into_iter().find(|p| p.is_file())?;
            Some((need, Found { path: path.display().to_string(), version: Some("2.37.0".into()) }))
        };
        Installed(needs.into_iter().filter_map(found).collect())
    }
}

fn device(arch: &str) -> DeviceFacts {
    DeviceFacts {
        name: "phone".into(),
        class: DeviceClass::Phone,
        os: "android".into(),
        arch: arch.into(),
        cpu: None,
        cores: Some(8),
        memory_mb: None,
        kernel: None,
        soc_model: 57,
        htp_arch: 75,
        remote: true,
        soc: None,
        vtcm_mb: Some(8),
        no_llm: None,
    }
}

fn cell(backend: &str, axes: &[(Axis, &str)]) -> Cell {
    let geometry = Geometry {
        name: "t".into(),
        layers: Some(1),
        hidden: Some(8),
        heads: Some(1),
        kv_heads: Some(1),
        head_dim: Some(8),
        ffn: Some(8),
        vocab: Some(64),
        rope_theta: Some(1e4),
        norm_eps: Some(1e-5),
        seed: Some(1),
        bos: Some(0),
        eos: Some(1),
        pad: Some(2),
        ..Geometry::default()
    };
    Cell {
        backend: backend.to_owned(),
        model: Model { name: "m".into(), context: 128, chunk: Some(32), geometry: Some(geometry) },
        quant: Quant::W4,
        workload: Workload::Generate { prompt_tokens: PROMPT, gen_tokens: GENERATED },
        unit: if backend == "mnn" { Unit::Cpu } else { Unit::Npu },
        axes: axes.iter().map(|(axis, value)| (*axis, Setting::Asked((*value).to_owned()))).collect(),
    }
}

/// Stages, runs and reads one launch; the checks' verdict on count and unit with it.
fn launch(bed: &Bed, backend: &dyn Backend, device: &DeviceFacts, axes: &[(Axis, &str)], pass: Pass) -> (Parsed, [Check; 2]) {
    let (cell, artifact) = (cell(backend.id(), axes), bed.artifact(backend.id()));
    let installed = bed.installed(backend.needs(device), device);
    // One discarded query and two measured ones.
    let prompts = vec![vec![0, 4, 5], vec![0, 6, 7], vec![0, 8, 9]];
    let launch = Launch { cell: &cell, pass, prompts: &prompts, texts: &[], artifact: &artifact, installed: &installed, device };
    let work = tempfile::tempdir_in(bed.dir.path()).unwrap();
    for file in backend.stage(&launch).unwrap_or_else(|e| panic!("{}: {e}", backend.id())) {
        let to = work.path().join(&file.name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        match &file.source {
            Source::Bytes(bytes) => fs::write(&to, bytes).unwrap(),
            Source::Artifact(name) => symlink(bed.dir.path().join("model").join(name), &to).unwrap(),
            Source::Need(need) => symlink(installed.path(need), &to).unwrap(),
        }
    }
    let paths = Paths { work: work.path().display().to_string(), events: "events.jsonl".into() };
    let captured = run(&backend.steps(&launch, &paths), work.path());
    let parsed = backend.parse(&captured).unwrap_or_else(|e| panic!("{}: {e}", backend.id()));
    assert_eq!(parsed.failure, None, "{} on {}: {}", backend.id(), device.arch, captured.last_words(5));
    let expected = Expected { prompt_tokens: PROMPT, gen_tokens: GENERATED, queries: 3, ..Expected::default() };
    let checks = backend.verify(&cell, &expected, &parsed, &captured);
    assert_eq!(checks.tokens, Check::NotCheckable, "{}", backend.id());
    (parsed, [checks.count, checks.unit])
}

fn run(steps: &[bench_backend_api::Step], work: &Path) -> Captured {
    let mut whole = Captured { ended: Ended { reason: "exited".into(), code: Some(0), ..Ended::default() }, ..Captured::default() };
    for step in steps {
        let Program::Staged(name) = &step.invocation.program else { panic!("{step:?}") };
        let ran = Command::new(work.join(name))
            .args(&step.invocation.args)
            .current_dir(work)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(&step.invocation.env)
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{} {:?}: {}\n{}\n{}",
            step.name,
            step.invocation.args,
            ran.status,
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        );
        let outputs = step.invocation.outputs.iter().filter_map(|name| Some((name.clone(), fs::read(work.join(name)).ok()?)));
        let files: BTreeMap<String, Vec<u8>> =
            [("stdout.txt".to_owned(), ran.stdout), ("stderr.txt".to_owned(), ran.stderr)].into_iter().chain(outputs).collect();
        for (name, bytes) in files {
            if steps.len() > 1 {
                whole.files.insert(format!("{}/{name}", step.name), bytes.clone());
            }
            whole.files.insert(name, bytes);
        }
        // The agent's evidence: what was staged to be loaded.
        let libraries = fs::read_dir(work)
            .unwrap()
            .map(|f| f.unwrap().path().display().to_string())
            .filter(|p| Path::new(p).extension().is_some_and(|e| e == "so"));
        whole.evidence = Evidence { mapped: libraries.collect(), device_nodes: Vec::new() };
    }
    whole
}

fn backend(id: &str) -> &'static dyn Backend {
    *BACKENDS.iter().find(|b| b.id() == id).unwrap_or_else(|| panic!("{id}"))
}

#[test]
fn the_tools_of_a_phone_take_what_the_adapters_ask() {
    let bed = Bed::new();
    for arch in ["aarch64", "x86_64"] {
        let device = device(arch);
        for axes in [&[][..], &[(Axis::PerfProfile, "burst")]] {
            for pass in [Pass::Measure, Pass::Profile] {
                for id in ["qnn", "ort-qnn"] {
                    let (parsed, [count, unit]) = launch(&bed, backend(id), &device, axes, pass);
                    let graphs: Vec<_> = parsed.graphs.iter().map(|g| (g.phase.as_str(), g.tokens)).collect();
                    assert_eq!(graphs, [("prefill", 32), ("decode", 1)], "{id}");
                    assert!(parsed.graphs.iter().all(|g| g.latency_ms > 0.0), "{id}");
                    assert_eq!((count, unit), (Check::NotCheckable, Check::Confirmed), "{id}");
                }
            }
        }
        let (parsed, checks) = launch(&bed, backend("genie"), &device, &[(Axis::PerfProfile, "burst")], Pass::Measure);
        assert_eq!((parsed.queries.len(), parsed.notes["tool"].as_str(), checks), (3, "genie-app", [Check::Confirmed; 2]));
        let (parsed, checks) = launch(&bed, backend("genie"), &device, &[(Axis::Variant, "genie-t2t-run")], Pass::Measure);
        assert_eq!((parsed.queries.len(), checks), (1, [Check::Confirmed; 2]));
        assert!(parsed.queries[0].reported["ttft_us"] > 0.0 && parsed.notes.contains_key("reported_load_ms"));
        let (parsed, checks) = launch(&bed, backend("mnn"), &device, &[], Pass::Measure);
        assert_eq!((parsed.queries[0].aggregate_n, parsed.queries[0].query, checks), (Some(2), 2, [Check::NotCheckable, Check::Confirmed]));
        let (parsed, checks) = launch(&bed, backend("ort-genai"), &device, &[], Pass::Measure);
        assert_eq!((parsed.queries[0].aggregate_n, checks), (Some(2), [Check::Confirmed; 2]));
    }
}
