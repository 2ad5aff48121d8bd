//! Genie as a backend: our own runner over libGenie.so, two context binaries, a private copy of the configuration.

use std::collections::BTreeMap;

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure,
    FailureKind, Hint, Installed, Invocation, JOB_FILE, Launch, Need, ParseError, Parsed, Paths, Program, Recipe, Source, StagedFile, Step,
    Unit, check_count, check_tokens, job, job_bytes, knowledge::Table, parsed_from_events,
};
use bench_backend_qnn::context::{self, package};
use serde_json::{Value, json};

/// Qualcomm Genie.
#[derive(Debug, Clone, Copy)]
pub struct Genie;

const CONFIG: &str = "genie_config.json";
const PROFILE: &str = "genie_profile.json";

fn runner() -> Need {
    Need::Runner { name: "bench-genie-runner".to_owned() }
}

/// The private copy of the configuration (rule R4): the user's own, or a minimal one, with greedy sampling, local paths and no stop.
fn config(launch: &Launch<'_>) -> Result<Value, Failure> {
    let usage = |message: String| Failure::new(FailureKind::Usage, message);
    let cell = launch.cell;
    let Some(g) = &cell.model.geometry else {
        return Err(usage(format!("models.{}: no geometry", cell.model.name)));
    };
    let bins: Vec<&String> = launch.artifact.files.iter().filter(|f| has_extension(f, "bin")).collect();
    if bins.is_empty() {
        return Err(usage("the artifact holds no context binary (*.bin)".to_owned()));
    }
    // Prefill before decode, as Genie's own bundles list them.
    let mut bins: Vec<String> = bins.into_iter().cloned().collect();
    bins.sort_by_key(|name| (name.contains("decode"), name.clone()));
    let threads: u32 = cell.asked(Axis::Threads).and_then(|t| t.parse().ok()).unwrap_or(2);
    let own = launch.artifact.meta.get("config").is_some();
    let mut config = launch.artifact.meta.get("config").cloned().unwrap_or_else(|| {
        json!({"dialog": {"version": 1, "type": "basic",
            "context": {"version": 1, "size": cell.model.context, "n-vocab": g.vocab, "bos-token": g.bos, "eos-token": g.eos, "pad-token": g.pad},
            "tokenizer": {"version": 1, "path": "tokenizer.json"},
            "engine": {"version": 1, "n-threads": threads,
                "backend": {"version": 1, "type": "QnnHtp", "QnnHtp": {"version": 1, "use-mmap": false, "spill-fill-bufsize": 0,
                    "mmap-budget": 0, "poll": false, "cpu-mask": "0x3", "kv-dim": g.head_dim, "pos-id-dim": g.head_dim.map(|d| d / 2),
                    "allow-async-init": false, "rope-theta": g.rope_theta}},
                "model": {"version": 1, "type": "binary", "binary": {"version": 1}}}}})
    });
    let Some(dialog) = config.get_mut("dialog").and_then(Value::as_object_mut) else {
        return Err(usage("the Genie configuration has no table `dialog`".to_owned()));
    };
    dialog.insert("sampler".to_owned(), json!({"version": 1, "seed": 42, "temp": 1.0, "top-k": 1, "top-p": 1.0}));
    dialog.remove("stop-sequence");
    dialog.remove("max-num-tokens");
    if let Some(binary) = dialog.get_mut("engine").and_then(|e| e.pointer_mut("/model/binary")).and_then(Value::as_object_mut) {
        binary.insert("ctx-bins".to_owned(), json!(bins));
    }
    if let Some(tokenizer) = dialog.get_mut("tokenizer").and_then(Value::as_object_mut) {
        tokenizer.insert("path".to_owned(), json!("tokenizer.json"));
    }
    // Dialogs with a draft model have a list of engines.
    match dialog.get_mut("engine") {
        Some(Value::Object(engine)) if own && cell.asked(Axis::Threads).is_some() => {
            engine.insert("n-threads".to_owned(), json!(threads));
        }
        Some(Value::Object(_)) => {}
        Some(Value::Array(_)) if cell.asked(Axis::Threads).is_none() => {}
        Some(Value::Array(_)) => return Err(usage("`threads` can't be set in a Genie configuration with several engines".to_owned())),
        _ => return Err(usage("the Genie configuration has no table `dialog.engine`".to_owned())),
    }
    Ok(config)
}

fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit('.').next().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

impl Backend for Genie {
    fn id(&self) -> &'static str {
        "genie"
    }

    fn describe(&self) -> Description {
        Description { name: "Genie", default_unit: Unit::Npu, makes: context::MADE, layers: false }
    }

    fn needs(&self, _: &DeviceFacts) -> Vec<Need> {
        vec![package(), runner()]
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
        if device.os != "linux" || device.arch != "x86_64" {
            return Availability::Refused { reason: "on a PC Genie runs on Linux x86_64 only".to_owned() };
        }
        match (installed.get(&package()), installed.get(&runner())) {
            (None, _) => Availability::Missing {
                what: "the Python package onnxruntime-qnn, which holds libGenie.so and the HTP emulator".to_owned(),
                remedy: "bench runtimes install python".to_owned(),
            },
            (_, None) => Availability::Missing {
                what: "our runner bench-genie-runner".to_owned(),
                remedy: "cargo build --workspace, or name its folder in BENCH_LIBEXEC".to_owned(),
            },
            (Some(found), Some(_)) => {
                Availability::Ready { version: format!("onnxruntime-qnn {}", found.version.as_deref().unwrap_or("unknown")) }
            }
        }
    }

    fn axis(&self, axis: Axis, value: &str) -> AxisFit {
        match (axis, value) {
            (Axis::Unit, "npu") | (Axis::Context | Axis::Threads | Axis::Variant, _) | (Axis::Kv, "8" | "16") => AxisFit::Settable,
            (Axis::Unit, _) => {
                AxisFit::Unsupported("Genie runs on the NPU here; its CPU and GPU engines need models of their own".to_owned())
            }
            (Axis::Kv, _) => AxisFit::Unsupported("the KV cache has 8 or 16 bits".to_owned()),
            (Axis::Batch, _) => AxisFit::Fixed("1"),
            (Axis::PerfProfile, _) => AxisFit::Fixed("runtime-default"),
        }
    }

    fn device_class(&self, _: &Cell, device: &DeviceFacts) -> DeviceClass {
        context::device_class(device)
    }

    fn recipe(&self, cell: &Cell, device: &DeviceFacts) -> Option<Recipe> {
        context::recipe(cell, device)
    }

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        let mut job = job(launch)?;
        let libraries = launch.installed.path(&package());
        job.runtime.insert("genie".to_owned(), format!("{libraries}/libGenie.so"));
        job.runtime.insert("config".to_owned(), CONFIG.to_owned());
        job.threads = None;
        if context::device_class(launch.device) == DeviceClass::Emulator {
            // The emulator runs binaries of every Hexagon version: a phone would refuse them.
            job.options.insert("htp_arch".to_owned(), launch.device.htp_arch.to_string());
        }
        let config = serde_json::to_vec_pretty(&config(launch)?).unwrap_or_default();
        let mut files = vec![
            StagedFile { name: JOB_FILE.to_owned(), source: Source::Bytes(job_bytes(&job)) },
            StagedFile { name: CONFIG.to_owned(), source: Source::Bytes(config) },
        ];
        files.extend(
            launch
                .artifact
                .files
                .iter()
                .filter(|f| has_extension(f, "bin") || f.as_str() == "tokenizer.json")
                .map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) }),
        );
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, _: &Paths) -> Vec<Step> {
        let libraries = launch.installed.path(&package()).to_owned();
        let env = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), libraries)]);
        let invocation =
            Invocation { program: Program::Need(runner()), args: vec![JOB_FILE.to_owned()], env, outputs: vec![PROFILE.to_owned()] };
        vec![Step { name: "query".to_owned(), invocation }]
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        let mut parsed = parsed_from_events(captured)?;
        for q in &mut parsed.queries {
            // Asked for one token, Genie hands it out and counts none.
            if q.generated_reported == Some(0) && q.tokens.len() == 1 {
                q.generated_reported = None;
            }
            // Genie counts the first token among the generated ones, but starts the clock of the generation after it.
            if let Some(n) = q.generated_reported.filter(|n| *n > 1) {
                q.reported.insert("decode_steps".to_owned(), f64::from(n - 1));
            }
        }
        if let Some(version) = parsed.notes.get("genie_api").cloned() {
            parsed.notes.insert("runtime_version".to_owned(), format!("Genie API {version}"));
        }
        parsed.notes.insert("engine".to_owned(), "genie".to_owned());
        Ok(parsed)
    }

    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, captured: &Captured) -> Checks {
        let (count, mut reasons) = check_count(expected, parsed);
        let (tokens, token_agreement, why) = check_tokens(cell.quant, expected, parsed);
        reasons.extend(why);
        // Genie does not say what it ran on. Its engine is QnnHtp by configuration; the evidence is the HTP library in its process.
        let mapped = captured.evidence.mapped.iter().any(|l| l.contains("libQnnHtp"));
        let (unit, unit_found) = match (mapped, parsed.unit_reported.as_deref()) {
            (true, Some("npu") | None) => (Check::Confirmed, Some("npu".to_owned())),
            (_, Some(other)) if other != cell.unit.as_str() => (Check::Contradicted, Some(other.to_owned())),
            _ => (Check::NotCheckable, None),
        };
        match unit {
            Check::Contradicted => reasons.push(format!("{} asked, {} found", cell.unit, unit_found.as_deref().unwrap_or("nothing"))),
            Check::NotCheckable => reasons.push("libQnnHtp.so was not seen in the process".to_owned()),
            Check::Confirmed => {}
        }
        Checks { count, tokens, unit, token_agreement, unit_found, reasons }
    }

    fn knowledge(&self) -> &'static Table {
        &crate::TABLE
    }

    fn explain(&self, failure: &Failure, launch: &Launch<'_>) -> Option<Hint> {
        bench_backend_qnn::explain(self, failure, launch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_backend_api::{Artifact, Geometry, Model, Quant, Setting, Workload};

    /// The configuration that a user's own becomes.
    fn adapted(own: &Value, threads: Option<&str>) -> Result<Value, Failure> {
        let geometry: Geometry =
            serde_json::from_value(json!({"name": "t", "layers": 1, "hidden": 8, "heads": 1, "kv_heads": 1, "head_dim": 8,
            "ffn": 8, "vocab": 64, "rope_theta": 1e4, "norm_eps": 1e-5, "tied_embeddings": false, "experts": 0, "lm_head_bits": 16,
            "embedding_bits": 16, "seed": 1, "bos": 0, "eos": 1, "pad": 2}))
            .expect("a geometry");
        let cell = Cell {
            backend: "genie".to_owned(),
            model: Model { name: "m".to_owned(), context: 128, chunk: 32, geometry: Some(geometry) },
            quant: Quant::Fp16,
            workload: Workload::Generate { prompt_tokens: 32, gen_tokens: 8 },
            unit: Unit::Npu,
            axes: threads.map(|t| (Axis::Threads, Setting::Asked(t.to_owned()))).into_iter().collect(),
        };
        let artifact = Artifact { files: vec!["m.bin".to_owned()], meta: json!({"config": own}) };
        let device = DeviceFacts {
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
        };
        let installed = Installed::default();
        config(&Launch {
            cell: &cell,
            pass: bench_backend_api::Pass::Measure,
            prompts: &[],
            texts: &[],
            artifact: &artifact,
            installed: &installed,
            device: &device,
        })
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
}
