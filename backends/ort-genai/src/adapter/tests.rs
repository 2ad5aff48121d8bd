use bench_backend_api::{Artifact, Ended, Evidence, Found, Model, Pass, Program, Quant, Workload};
use serde_json::{Value, json};

use super::*;

fn cell(unit: Unit) -> Cell {
    Cell {
        backend: "ort-genai".into(),
        model: Model { name: "m".into(), context: 4096, chunk: Some(128), geometry: None },
        quant: Quant::W4a16,
        workload: Workload::Generate { prompt_tokens: 128, gen_tokens: 33 },
        unit,
        axes: std::collections::BTreeMap::default(),
    }
}

fn phone() -> DeviceFacts {
    let facts = json!({"name": "d", "class": "phone", "os": "android", "arch": "aarch64", "cpu": null, "cores": 8, "memory_mb": null,
        "kernel": null, "soc_model": 57, "htp_arch": 75, "remote": true});
    serde_json::from_value(facts).unwrap()
}

fn installed(without: &[&str]) -> Installed {
    let found = |need: Need| (need, Found { path: "/host/x".into(), version: None });
    Installed(OrtGenai.needs(&phone()).into_iter().filter(|n| !without.contains(&tool::file_of(n).as_str())).map(found).collect())
}

fn made(unit: Unit, files: &[&str], without: &[&str]) -> Result<(Vec<StagedFile>, Step), Failure> {
    let artifact = Artifact { files: files.iter().map(|f| (*f).to_owned()).collect(), meta: Value::Null };
    let (cell, device, installed, prompts) = (cell(unit), phone(), installed(without), vec![vec![1; 128]; 6]);
    let launch = Launch {
        cell: &cell,
        pass: Pass::Measure,
        prompts: &prompts,
        texts: &[],
        artifact: &artifact,
        installed: &installed,
        device: &device,
    };
    let staged = OrtGenai.stage(&launch)?;
    Ok((staged, OrtGenai.steps(&launch, &Paths { work: "/w".into(), events: "e".into() }).remove(0)))
}

#[test]
fn the_benchmark_is_asked_for_the_cells_lengths() {
    let (files, step) = made(Unit::Npu, &["phi/genai_config.json", "phi/model.onnx"], &[]).unwrap();
    assert_eq!(step.invocation.program, Program::Staged("model_benchmark".into()));
    // formats/onnxruntime.md; five measured queries after one that is thrown away.
    assert_eq!(step.invocation.args.join(" "), "-i ./phi -b 1 -l 128 -g 33 -r 5 -w 1");
    let has = |name: &str| files.iter().any(|f| f.name == name);
    assert!(["libonnxruntime-genai.so", "libQnnHtpV75Skel.so", "libonnxruntime_providers_qnn.so", "phi/model.onnx"].iter().all(|n| has(n)));
    let (files, step) = made(Unit::Cpu, &["genai_config.json"], &[]).unwrap();
    assert!(step.invocation.args.join(" ").starts_with("-i . ") && !files.iter().any(|f| f.name.contains("Qnn")));
    assert!(made(Unit::Npu, &["model.onnx"], &[]).unwrap_err().message.contains("genai_config.json"));
    assert!(made(Unit::Npu, &["genai_config.json"], &["libQnnHtp.so"]).unwrap_err().message.contains("libQnnHtp.so is missing"));
    let Availability::Missing { what, remedy } = OrtGenai.probe(&phone(), &installed(&["model_benchmark"])) else { panic!() };
    assert!(what == "model_benchmark" && remedy.contains("onnxruntime-genai"), "{what}: {remedy}");
    let pc = DeviceFacts { remote: false, ..phone() };
    assert!(matches!(OrtGenai.probe(&pc, &installed(&[])), Availability::Refused { .. }));
}

/// As model_benchmark prints it (samples/onnxruntime); the figures are ours: 5 x 128 tokens in 160 ms each, 5 x 32 steps of 25 ms.
const PRINTED: &str = "Batch size: 1, prompt tokens: 128, tokens to generate: 33\nPrompt processing (time to first token):\n\tavg (us):       160000\n\
    \tavg (tokens/s): 800\n\tp50 (us):       159000\n\tstddev (us):    100.5\n\tn:              5 * 128 token(s)\nToken generation:\n\
    \tavg (us):       25000\n\tavg (tokens/s): 40\n\tp50 (us):       24900\n\tstddev (us):    11.67\n\tn:              160 * 1 token(s)\n\
    Peak working set size: 1000000 bytes (0.001 GB)\n";

fn captured(stdout: &str, mapped: &[&str]) -> Captured {
    let told = json!({"tool": "model_benchmark", "notes": {"engine": "genai", "repetitions": "5"}}).to_string();
    let files = [(Told::FILE, told), ("stdout.txt", stdout.to_owned())];
    Captured {
        files: files.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect(),
        ended: Ended { reason: "exited".into(), code: Some(0), ..Ended::default() },
        evidence: Evidence { mapped: mapped.iter().map(|m| (*m).to_owned()).collect(), device_nodes: Vec::new() },
    }
}

#[test]
fn its_means_are_one_row() {
    let whole = captured(PRINTED, &["/w/libonnxruntime.so", "/w/libQnnHtp.so"]);
    let parsed = OrtGenai.parse(&whole).unwrap();
    let [query] = parsed.queries.as_slice() else { panic!("{parsed:?}") };
    assert_eq!((query.aggregate_n, query.reported["ttft_us"]), (Some(5), 160_000.0));
    assert!((query.reported["decode_steps"] / query.reported["decode_us"] - 40e-6).abs() < 1e-12, "{query:?}");
    assert_eq!(parsed.notes["engine"], "genai");
    let expected = Expected { prompt_tokens: 128, gen_tokens: 33, queries: 6, ..Expected::default() };
    let check = |unit: Unit, captured: &Captured| OrtGenai.verify(&cell(unit), &expected, &OrtGenai.parse(captured).unwrap(), captured);
    let checks = check(Unit::Npu, &whole);
    assert_eq!(
        (checks.count, checks.tokens, checks.unit),
        (Check::Confirmed, Check::NotCheckable, Check::Confirmed),
        "{:?}",
        checks.reasons
    );
    // The provider that fell back to the CPU prints the same.
    let mut fallen = captured(PRINTED, &["/w/libonnxruntime.so"]);
    // A launch so short that the library may have come after the last look.
    assert_eq!(check(Unit::Npu, &fallen).unit, Check::NotCheckable);
    fallen.ended.window_ns = Some((1_000_000_000, 9_000_000_000));
    assert_eq!((check(Unit::Npu, &fallen).unit, check(Unit::Cpu, &fallen).unit), (Check::Contradicted, Check::NotCheckable));
    let short = captured(&PRINTED.replace("prompt tokens: 128", "prompt tokens: 64"), &["/w/libQnnHtp.so"]);
    assert_eq!(check(Unit::Npu, &short).count, Check::Contradicted);
    assert!(OrtGenai.parse(&captured("", &[])).unwrap().failure.unwrap().message.contains("printed nothing"));
    let cut = &PRINTED[..PRINTED.find("Prompt proc").unwrap()];
    assert!(OrtGenai.parse(&captured(cut, &[])).unwrap().failure.is_some());
}
