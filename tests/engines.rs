//! The real engines: Genie and ONNX Runtime on Qualcomm's HTP emulator, and MNN. What is right passes, and what is damaged, made for
//! another chip, or run somewhere else than asked for never does.
//!
//! They need the Python environment in the user's cache (`bench runtimes install python`), and install it where it is missing, unless
//! BENCH_TEST_OFFLINE is set; then they fail, since a test that is skipped in silence proves nothing.

#[path = "engines/profile.rs"]
mod profile;
mod support;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use bench_backend_api::{Backend, Captured, Cell, Check, Expected};
use bench_backend_ort_qnn::OrtQnn;
use profile::{operations_have_their_places, where_the_time_goes};
use serde_json::{Value, json};
use support::{
    Row, bench, finish, number, only_run, processes_with,
    python::{cache, python, real},
    root, run, table, wait_until,
};

/// A small scenario over the tiny model. `more` are further tables, for instance artifacts.
fn scenario(dir: &Path, name: &str, model: &str, matrix: &str, measure: &str, more: &str) -> PathBuf {
    let geometry = root().join("scenarios/models/tiny-llama.toml");
    let text = format!(
        "name = \"{name}\"\n[device]\nlocal = true\nsoc = \"SM8650\"\n[models.tiny-llama]\n{model}\ngeometry = \"{}\"\n\
         [matrix]\nmodel = \"tiny-llama\"\n{matrix}\n[measure]\nwarmup = {{ min = 1, max = 1 }}\nrepetitions = {{ min = 1, max = 1 }}\ntimeout = \"1m\"\n{measure}\n\
         [verify]\nreference = \"fp32\"\n{more}\n",
        geometry.display()
    );
    let path = dir.join(format!("{name}.toml"));
    fs::write(&path, text).unwrap();
    path
}

const MODEL: &str = "context = 128\nchunk = 32";
const EXCLUDE: &str = "exclude = [{ backend = \"mnn\", quant = \"fp16\" }, { backend = [\"genie\", \"ort-qnn\"], quant = \"fp32\" }]";

/// Ids of the generated tokens by query, of one cell's first measured launch.
fn answers(tokens: &[Row], cell: &str) -> BTreeMap<u32, Vec<u32>> {
    let mut answers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for t in tokens.iter().filter(|t| t["cell"] == cell && t["pass"] == "measure" && t["launch"] == "0") {
        answers.entry(t["query"].parse().unwrap()).or_default().push(t["id"].parse().unwrap());
    }
    answers
}

#[test]
fn three_engines_give_the_same_tokens_and_the_evidence_for_their_unit() {
    let dir = tempfile::tempdir().unwrap();
    let matrix = format!(
        "backend = [\"genie\", \"ort-qnn\", \"mnn\"]\nquant = [\"fp32\", \"fp16\"]\nprompt-tokens = [40, 200]\ngen-tokens = 8\n{EXCLUDE}"
    );
    let path = scenario(dir.path(), "three", MODEL, &matrix, "queries = 2\nprofile = \"layers\"", "");
    run(real(dir.path()).arg("run").arg(&path).arg("--yes")).expect(0);
    let run_dir = only_run(&dir.path().join("results"));
    let cells = table(&run_dir, "cells.csv");
    assert_eq!(cells.len(), 6);
    // A prompt that is longer than the context is a row with its reason.
    for cell in cells.iter().filter(|c| c["prompt_tokens"] == "200") {
        assert_eq!(cell["status"], "skipped");
        assert_eq!(cell["reason"], "context 128 is shorter than 200 prompt + 8 generated tokens");
    }
    let measured: Vec<&Row> = cells.iter().filter(|c| c["prompt_tokens"] == "40").collect();
    let tokens = table(&run_dir, "tokens.csv");
    let mut all = Vec::new();
    for cell in &measured {
        let name = &cell["cell"];
        assert_eq!(cell["status"], "ok", "{cell:?}");
        assert_eq!([&cell["check_count"], &cell["check_tokens"], &cell["check_unit"]], ["confirmed"; 3], "{name}");
        assert_eq!(number(cell, "token_agreement"), Some(1.0), "{name}");
        let (class, unit) = if cell["backend"] == "mnn" { ("pc", "cpu") } else { ("emulator", "npu") };
        assert_eq!(
            (cell["device_class"].as_str(), cell["unit_found"].as_str(), cell["unit_requested"].as_str()),
            (class, unit, unit),
            "{name}"
        );
        // 40 tokens are two chunks of 32 for the engines with a static graph.
        let padded = if cell["backend"] == "mnn" { None } else { Some(64.0) };
        assert_eq!(number(cell, "padded_prompt_tokens"), padded, "{name}");
        assert!(!cell["runtime_version"].is_empty() && !cell["artifact"].is_empty(), "{name}");
        // Times hang together: first token, then seven steps.
        let (ttft, e2e, tpot) = (number(cell, "ttft_ms").unwrap(), number(cell, "e2e_ms").unwrap(), number(cell, "tpot_ms").unwrap());
        assert!(ttft > 0.0 && e2e > ttft && tpot > 0.0, "{name}: {ttft} {e2e} {tpot}");
        assert!(number(cell, "peak_mem_mb").unwrap() > 10.0 && number(cell, "first_launch_load_ms").unwrap() > 0.0);
        if let Some(own) = number(cell, "reported_decode_tok_s") {
            let ratio = own / number(cell, "decode_tok_s").unwrap();
            assert!((0.5..2.0).contains(&ratio), "{name}: the runtime's own rate is {ratio} of ours");
        }
        let answer = answers(&tokens, name);
        assert_eq!(answer.keys().copied().collect::<Vec<_>>(), [0, 1, 2], "{name}");
        assert!(answer.values().all(|ids| ids.len() == 8), "{name}");
        all.push(answer);
    }
    assert_eq!(all.len(), 3);
    assert!(all.windows(2).all(|w| w[0] == w[1]), "the engines disagree: {all:?}");
    // Different prompts, different answers: equal ones would also come from an engine that looks at nothing.
    assert_ne!(all[0][&1], all[0][&2]);

    // Operations from the profile pass, of both graphs, whose times feed nothing else.
    let layers = table(&run_dir, "layers.csv");
    // Genie's are those of its binaries under ONNX Runtime's provider (rule R12): the same operations in the same order.
    let names = |backend: &str, phase: &str| -> Vec<&str> {
        layers.iter().filter(|l| l["backend"] == backend && l["phase"] == phase).map(|l| l["name"].as_str()).collect()
    };
    for phase in ["prefill", "decode"] {
        assert_eq!(names("genie", phase), names("ort-qnn", phase));
    }
    assert!(layers.iter().filter(|l| l["backend"] == "genie").all(|l| l["method"] == "same binary, qnn-detailed"));
    for (backend, class, unit) in [("ort-qnn", "emulator", "npu"), ("genie", "emulator", "npu"), ("mnn", "pc", "cpu")] {
        for phase in ["prefill", "decode"] {
            let of: Vec<&Row> = layers.iter().filter(|l| l["backend"] == backend && l["phase"] == phase).collect();
            assert!(of.iter().all(|l| l["device_class"] == class && l["unit"] == unit), "{backend}");
            assert!(of.len() > 50, "{backend} {phase}: {} operations", of.len());
            let share: f64 = of.iter().filter_map(|l| number(l, "share")).sum();
            assert!((share - 1.0).abs() < 0.01, "{backend} {phase}: shares sum to {share}");
            if backend == "mnn" {
                // The graph as src/prepare/kind_mnn.py makes it, of two blocks: seven matrices, two norms and one attention in each, then the
                // last norm and the head.
                let count = |kind: &str| of.iter().filter(|l| l["op_type"] == kind).count();
                assert_eq!(["Convolution", "LayerNorm", "Attention"].map(count), [15, 5, 2], "{phase}");
                // Two measured queries, each of one prefill and of seven steps.
                let forwards = if phase == "prefill" { "2" } else { "14" };
                assert!(of.iter().all(|l| l["count"] == forwards && l["method"] == "mnn-callback" && number(l, "value").unwrap() > 0.0));
            }
        }
    }
    where_the_time_goes(&run_dir, &measured);
    operations_have_their_places(&run_dir, &layers);
    let samples = table(&run_dir, "samples.csv");
    assert_eq!(samples.iter().filter(|s| s["pass"] == "measure").count(), 9);
    let telemetry = table(&run_dir, "telemetry.csv");
    assert!(telemetry.iter().any(|t| t["source"] == "process" && t["name"].contains("rss")));

    damaged_artifacts(&run_dir, &cells);
    a_unit_that_mnn_lacks();
    a_context_that_the_files_do_not_have(&cells);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten().filter(|e| e.path().is_file()) {
        let target = to.join(entry.file_name());
        fs::copy(entry.path(), &target).unwrap();
        // Made artifacts are read-only.
        let mut permissions = fs::metadata(&target).unwrap().permissions();
        #[expect(clippy::permissions_set_readonly_false, reason = "a copy in a folder of the test")]
        permissions.set_readonly(false);
        fs::set_permissions(&target, permissions).unwrap();
    }
}

/// Runs a Python program of the environment.
fn script(arguments: &[&str]) {
    let ran = run(Command::new(python()).args(arguments).stdin(Stdio::null()));
    assert!(ran.status.success(), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
}

/// The folder of a made artifact in the cache.
fn made(cells: &[Row], backend: &str) -> PathBuf {
    let cell = cells.iter().find(|c| c["backend"] == backend && c["status"] == "ok").unwrap();
    cache().join("artifacts").join(&cell["artifact"])
}

fn cut(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// One run with every kind of damaged or foreign artifact, and with good ones between them.
fn damaged_artifacts(_: &Path, cells: &[Row]) {
    let dir = tempfile::tempdir().unwrap();
    let here = |name: &str| dir.path().join(name);
    let (context, mnn) = (made(cells, "ort-qnn"), made(cells, "mnn"));
    assert_eq!(context, made(cells, "genie"), "Genie and ONNX Runtime are compared on the same context binaries");

    copy(&context, &here("same"));
    copy(&context, &here("truncated"));
    cut(&here("truncated/decode.bin"), |bytes| bytes.truncate(bytes.len() / 2));
    copy(&context, &here("corrupt"));
    cut(&here("corrupt/decode.bin"), |bytes| {
        let (from, to) = (bytes.len() / 4, bytes.len() / 4 * 3);
        bytes[from..to].iter_mut().for_each(|b| *b ^= 0x5a);
    });
    copy(&context, &here("empty"));
    cut(&here("empty/prefill.bin"), Vec::clear);
    // For Snapdragon 8 Elite: another SoC and Hexagon version.
    let meta: Value = serde_json::from_slice(&fs::read(context.join("meta.json")).unwrap()).unwrap();
    let mut args = meta["args"].clone();
    assert_eq!((&args["soc_model"], &args["htp_arch"]), (&json!(57), &json!(75)));
    args["soc_model"] = json!(69);
    args["htp_arch"] = json!(79);
    fs::write(here("args.json"), args.to_string()).unwrap();
    let prepare = root().join("src/prepare");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    script(&[&text(&prepare.join("make.py")), "qnn-context", &text(&here("args.json")), &text(&here("hexagon-79"))]);
    let maker = text(&root().join("tests/standins/bad_op.py"));
    script(&[&maker, &text(&prepare), &text(&context), &text(&here("plain"))]);
    script(&[&maker, &text(&prepare), &text(&context), "--shrink", &text(&here("bad-op"))]);
    copy(&mnn, &here("mnn-same"));
    copy(&mnn, &here("mnn-truncated"));
    cut(&here("mnn-truncated/llm.mnn.weight"), |bytes| bytes.truncate(bytes.len() / 2));
    copy(&mnn, &here("mnn-corrupt"));
    cut(&here("mnn-corrupt/llm.mnn.weight"), |bytes| bytes.chunks_mut(4).step_by(3).for_each(|b| b.fill(0x3d)));

    let artifact = |backend: &str, quant: &str, variant: &str, folder: &str| {
        format!(
            "[[artifact]]\nmodel = \"tiny-llama\"\nquant = \"{quant}\"\nbackend = \"{backend}\"\nvariant = \"{variant}\"\nfiles = [\"{folder}/*\"]\n"
        )
    };
    let mut more = String::new();
    for variant in ["same", "truncated", "corrupt", "empty", "hexagon-79"] {
        more += &artifact("genie", "fp16", variant, variant);
        more += &artifact("ort-qnn", "fp16", variant, variant);
    }
    for variant in ["plain", "bad-op"] {
        more += &artifact("ort-qnn", "fp16", variant, variant);
    }
    for variant in ["same", "truncated", "corrupt"] {
        more += &artifact("mnn", "fp32", variant, &format!("mnn-{variant}"));
    }
    let matrix = "backend = [\"genie\", \"ort-qnn\", \"mnn\"]\nquant = [\"fp32\", \"fp16\"]\nprompt-tokens = 40\ngen-tokens = 8\n\
        variant = [\"same\", \"truncated\", \"corrupt\", \"empty\", \"hexagon-79\", \"plain\", \"bad-op\"]\n\
        exclude = [{ backend = \"mnn\", quant = \"fp16\" }, { backend = [\"genie\", \"ort-qnn\"], quant = \"fp32\" },\n\
            { backend = \"genie\", variant = [\"plain\", \"bad-op\"] },\n\
            { backend = \"mnn\", variant = [\"empty\", \"hexagon-79\", \"plain\", \"bad-op\"] }]";
    let path = scenario(dir.path(), "damaged", MODEL, matrix, "queries = 1", &more);
    run(real(dir.path()).arg("run").arg(&path).args(["--yes", "--no-report"])).expect(6);
    let run_dir = only_run(&dir.path().join("results"));
    let cells = table(&run_dir, "cells.csv");
    assert_eq!(cells.len(), 5 + 7 + 3);
    for cell in &cells {
        let name = format!("{} {}: {} {}", cell["backend"], cell["variant"], cell["failure_kind"], cell["reason"]);
        println!("{name} {}", cell["status"]);
        let good = ["same", "plain"].contains(&cell["variant"].as_str());
        if good {
            assert_eq!((cell["status"].as_str(), number(cell, "token_agreement")), ("ok", Some(1.0)), "{name}");
            continue;
        }
        assert!(["failed", "unverified"].contains(&cell["status"].as_str()), "{} passed as {}", name, cell["status"]);
        assert_eq!((number(cell, "ttft_ms"), number(cell, "decode_tok_s")), (None, None), "{name}");
        assert!(!cell["reason"].is_empty() && !["usage", "infra"].contains(&cell["failure_kind"].as_str()), "{name}");
    }
    let reason =
        |backend: &str, variant: &str| &cells.iter().find(|c| c["backend"] == backend && c["variant"] == variant).unwrap()["reason"];
    assert!(reason("ort-qnn", "bad-op").to_lowercase().contains("fallback"), "{}", reason("ort-qnn", "bad-op"));
    assert_eq!(processes_with(&dir.path().display().to_string()), [""; 0]);
    a_silent_fallback(&run_dir, &here("bad-op"));
}

/// Without the ban, ONNX Runtime gives an operator that the NPU lacks to the CPU without a word. The runner counts it, and the adapter
/// contradicts the launch, whose tokens are all right.
fn a_silent_fallback(run_dir: &Path, model: &Path) {
    let launch = glob::glob(&format!("{}/logs/*/*variant=bad-op-*/measure-000", run_dir.display())).unwrap().flatten().next().unwrap();
    let read = |name: &str| -> Value { serde_json::from_slice(&fs::read(launch.join(name)).unwrap()).unwrap() };
    let (mut job, spec) = (read("job.json"), read("spec.json"));
    job["options"]["fallback"] = json!("allow");
    fs::write(model.join("job.json"), job.to_string()).unwrap();
    let ran = run(Command::new(spec["argv"][0].as_str().unwrap())
        .arg("job.json")
        .current_dir(model)
        .env("LD_LIBRARY_PATH", spec["env"]["LD_LIBRARY_PATH"].as_str().unwrap())
        .env("BENCH_EVENTS", "events.jsonl"));
    assert_eq!(ran.code(), 0, "{ran:?}");
    let mut captured = Captured::default();
    captured.files.insert("events.jsonl".to_owned(), fs::read(model.join("events.jsonl")).unwrap());
    let parsed = OrtQnn.parse(&captured).unwrap();
    let plan: toml::Value = toml::from_str(&fs::read_to_string(run_dir.join("plan.toml")).unwrap()).unwrap();
    let planned = plan["cells"].as_array().unwrap().iter().find(|c| c["id"].as_str().unwrap().contains("variant=bad-op-")).unwrap();
    let cell: Cell = planned["cell"].clone().try_into().unwrap();
    let expected = Expected { prompt_tokens: 40, gen_tokens: 8, queries: 2, ..Expected::default() };
    let checks = OrtQnn.verify(&cell, &expected, &parsed, &captured);
    assert_eq!(
        (checks.count, checks.unit, checks.unit_found.as_deref()),
        (Check::Confirmed, Check::Contradicted, Some("hybrid")),
        "{checks:?}"
    );
    assert!(checks.reasons.iter().any(|r| r.contains("cpu_shrink")), "{checks:?}");
}

/// MNN replaces a backend that it lacks by the CPU in silence.
fn a_unit_that_mnn_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let matrix = "backend = \"mnn\"\nquant = \"fp32\"\nprompt-tokens = 40\ngen-tokens = 8\nunit = [\"cpu\", \"gpu\", \"npu\"]";
    let path = scenario(dir.path(), "units", MODEL, matrix, "queries = 1", "");
    run(real(dir.path()).arg("run").arg(&path).args(["--yes", "--no-report"])).expect(6);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    let units: Vec<(&str, &str)> = cells.iter().map(|c| (c["unit_requested"].as_str(), c["status"].as_str())).collect();
    println!("{cells:?}");
    assert_eq!(units, [("cpu", "ok"), ("gpu", "unverified"), ("npu", "unverified")]);
    for cell in &cells[1..] {
        assert_eq!(
            (cell["check_unit"].as_str(), cell["unit_found"].as_str(), number(cell, "decode_tok_s")),
            ("contradicted", "cpu", None),
            "{cell:?}"
        );
        // The tokens themselves are right: only the evidence for the unit gives it away.
        assert_eq!(cell["check_tokens"], "confirmed");
        assert!(cell["reason"].contains("asked, MNN used cpu"), "{}", cell["reason"]);
    }
}

/// The scenario says that the files were built for a context of 256, and they were for 128.
fn a_context_that_the_files_do_not_have(cells: &[Row]) {
    let dir = tempfile::tempdir().unwrap();
    copy(&made(cells, "ort-qnn"), &dir.path().join("short"));
    let matrix = "backend = [\"genie\", \"ort-qnn\"]\nquant = \"fp16\"\nprompt-tokens = 150\ngen-tokens = 8";
    let artifact = |b: &str| format!("[[artifact]]\nmodel = \"tiny-llama\"\nquant = \"fp16\"\nbackend = \"{b}\"\nfiles = [\"short/*\"]\n");
    let path =
        scenario(dir.path(), "short", "context = 256\nchunk = 32", matrix, "queries = 1", &(artifact("genie") + &artifact("ort-qnn")));
    run(real(dir.path()).arg("run").arg(&path).args(["--yes", "--no-report"])).expect(6);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    for cell in &cells {
        println!("{} {} {}", cell["backend"], cell["status"], cell["reason"]);
        assert!(["failed", "unverified"].contains(&cell["status"].as_str()), "{cell:?}");
        assert!(!cell["reason"].is_empty() && number(cell, "ttft_ms").is_none(), "{cell:?}");
    }
    assert!(cells[1]["reason"].contains("128"), "ort-qnn names the context of the files: {}", cells[1]["reason"]);
}

/// Its work folder links to the user's file: what it wrote there can't be undone, but it is said and no number is made of it.
#[test]
fn a_program_that_writes_into_its_model_is_told_on() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("weights.bin"), b"weights").unwrap();
    let more = format!(
        "[backends.standin]\ncommand = [\"python3\", {:?}]\n[[artifact]]\nmodel = \"tiny-llama\"\nquant = \"fp32\"\n\
        backend = \"standin\"\nfiles = [\"weights.bin\"]\n",
        support::runner()
    );
    let matrix = "backend = \"standin\"\nquant = \"fp32\"\nprompt-tokens = 40\ngen-tokens = 8\nvariant = [\"ok\", \"spoiler\"]";
    let path = scenario(dir.path(), "spoiler", MODEL, matrix, "queries = 1", &more);
    run(real(dir.path()).arg("run").arg(&path).args(["--yes", "--no-report"])).expect(6);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    let of = |variant: &str| cells.iter().find(|c| c["variant"] == variant).unwrap();
    // The stand-in's tokens are not those of the reference, which says that it was measured.
    assert_eq!(of("ok")["status"], "unverified");
    let spoiler = of("spoiler");
    assert_eq!((spoiler["status"].as_str(), spoiler["failure_kind"].as_str()), ("failed", "model"));
    assert!(spoiler["reason"].contains("weights.bin changed while the program ran"), "{spoiler:?}");
}

#[test]
fn killed_while_an_artifact_is_made_the_next_run_makes_it_whole() {
    let dir = tempfile::tempdir().unwrap();
    // A cache of its own with the installed environment in it: everything has to be made.
    let own = dir.path().join("cache");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::symlink(cache().join("runtimes"), own.join("runtimes")).unwrap();
    let matrix = "backend = \"mnn\"\nquant = \"fp32\"\nprompt-tokens = 40\ngen-tokens = 8";
    let path = scenario(dir.path(), "made", MODEL, matrix, "queries = 1", "");
    let begin = || {
        let mut command = bench(dir.path());
        command.arg("run").arg(&path).arg("--no-report").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let recipes = || processes_with(&own.display().to_string()).into_iter().filter(|p| p.contains("make.py")).count();
    let mut killed = begin().spawn().unwrap();
    wait_until("a recipe runs", || recipes() > 0);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(recipes(), 1, "the recipe goes on without us: the test has something to look for");
    let half = only_run(&dir.path().join("results"));
    let resumed = bench(dir.path())
        .arg("run")
        .arg("--resume")
        .arg(&half)
        .arg("--no-report")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Never two at once in one folder.
    let mut resumed = resumed;
    let mut most = 0;
    while resumed.try_wait().unwrap().is_none() {
        most = most.max(recipes());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    finish(resumed).expect(0);
    assert_eq!(most, 1, "two recipes worked at once");
    let cells = table(&half, "cells.csv");
    assert_eq!((cells[0]["status"].as_str(), number(&cells[0], "token_agreement")), ("ok", Some(1.0)));
    assert_eq!(glob::glob(&format!("{}/artifacts/*.part", own.display())).unwrap().count(), 0);

    // Ctrl-C in the middle of making: interrupted, not failed.
    fs::remove_dir_all(own.join("artifacts")).unwrap();
    fs::remove_dir_all(dir.path().join("results")).unwrap();
    let stopped = begin().spawn().unwrap();
    wait_until("a recipe runs", || recipes() > 0);
    assert!(Command::new("kill").args(["-INT", &stopped.id().to_string()]).status().unwrap().success());
    finish(stopped).expect(130).says(&["--resume"]);
    let half = only_run(&dir.path().join("results"));
    run(bench(dir.path()).arg("run").arg("--resume").arg(&half).arg("--no-report")).expect(0);
    assert_eq!(table(&half, "cells.csv")[0]["status"], "ok");
}

/// Folders as users have them, made of real artifacts: `bench import` turns each into a scenario that runs, with prompts of exactly the
/// asked number of tokens from the model's own tokenizer.
#[test]
fn what_a_user_has_is_imported_and_runs_with_its_own_tokenizer() {
    let dir = tempfile::tempdir().unwrap();
    let matrix = format!("backend = [\"genie\", \"mnn\"]\nquant = [\"fp32\", \"fp16\"]\nprompt-tokens = 32\ngen-tokens = 8\n{EXCLUDE}");
    let path = scenario(dir.path(), "made", MODEL, &matrix.replace("\"genie\", \"ort-qnn\"", "\"genie\""), "queries = 1", "");
    run(real(dir.path()).arg("run").arg(&path).args(["--yes", "--no-report"])).expect(0);
    let made = table(&only_run(&dir.path().join("results")), "cells.csv");
    fs::remove_dir_all(dir.path().join("results")).unwrap();
    let artifact = |backend: &str| cache().join("artifacts").join(&made.iter().find(|c| c["backend"] == backend).unwrap()["artifact"]);
    // The tokenizer of the same geometry, whose every token is ASCII.
    let ours = |meta: &Path| {
        fs::read_to_string(meta).is_ok_and(|text| text.contains("\"name\": \"tiny-llama\"") && text.contains("\"vocab\": 512"))
    };
    let metas = glob::glob(&format!("{}/artifacts/text-*/meta.json", cache().display())).unwrap();
    let tokenizer = metas.flatten().find(|meta| ours(meta)).expect("a tokenizer").with_file_name("tokenizer.json");

    let bundle = dir.path().join("my bundle");
    fs::create_dir(&bundle).unwrap();
    for (from, name) in [("prefill.bin", "tiny_fp16_prefill_ar32.bin"), ("decode.bin", "tiny_fp16_decode_ar1.bin")] {
        fs::copy(artifact("genie").join(from), bundle.join(name)).unwrap();
    }
    let engine = json!({"version": 1, "n-threads": 2, "backend": {"version": 1, "type": "QnnHtp", "QnnHtp": {"version": 1, "use-mmap": false,
        "spill-fill-bufsize": 0, "mmap-budget": 0, "poll": false, "cpu-mask": "0x3", "kv-dim": 32, "pos-id-dim": 16, "allow-async-init": false,
        "rope-theta": 10000}}, "model": {"version": 1, "type": "binary", "binary": {"version": 1, "ctx-bins": ["tiny_fp16_prefill_ar32.bin", "tiny_fp16_decode_ar1.bin"]}}});
    // As users' configurations are: one that samples and stops, which is not what a measurement wants (rule R4).
    let config = json!({"dialog": {"version": 1, "type": "basic", "stop-sequence": ["the"], "max-num-tokens": 3,
        "context": {"version": 1, "size": 128, "n-vocab": 512, "bos-token": 0, "eos-token": 1, "pad-token": 2},
        "sampler": {"version": 1, "seed": 42, "temp": 0.8, "top-k": 40, "top-p": 0.95},
        "tokenizer": {"version": 1, "path": "somewhere/tokenizer.json"}, "engine": engine}});
    fs::write(bundle.join("genie_config.json"), config.to_string()).unwrap();
    let mnn = dir.path().join("tiny-mnn");
    fs::create_dir(&mnn).unwrap();
    for entry in fs::read_dir(artifact("mnn")).unwrap().flatten() {
        fs::copy(entry.path(), mnn.join(entry.file_name())).unwrap();
    }
    for folder in [&bundle, &mnn] {
        fs::copy(&tokenizer, folder.join("tokenizer.json")).unwrap();
    }

    for (folder, name, found) in [
        (
            &bundle,
            "tiny-fp16-prefill-ar32",
            [
                "layers                             2  (the context binaries' text)",
                "made for                           SM8650 (Hexagon v75)",
            ],
        ),
        (
            &mnn,
            "tiny-mnn",
            ["layers                             2  (llm_config.json)", "vocabulary, tokens                 512  (tokenizer.txt)"],
        ),
    ] {
        let said = run(real(dir.path()).arg("import").arg(folder)).expect(0).stdout;
        for line in found.into_iter().chain([format!("bench run scenarios/{name}.toml").as_str()]) {
            assert!(said.contains(line), "{line} in {said}");
        }
        run(real(dir.path()).arg("import").arg(folder)).expect(2).says(&["is there already", "--force"]);
        let path = dir.path().join("scenarios").join(format!("{name}.toml"));
        run(real(dir.path()).arg("check").arg(&path)).expect(0);
        // No phone here: this computer measures it.
        let text = fs::read_to_string(&path)
            .unwrap()
            .replace("min = 5", "min = 1")
            .replace("all = true", "local = true")
            .replace("[device]\nsoc", "[device]\nlocal = true\nsoc");
        fs::write(&path, text).unwrap();
        run(real(dir.path()).arg("run").arg(&path).args(["--yes", "--no-report"])).expect(0);
        let run_dir = only_run(&dir.path().join("results"));
        let cells = table(&run_dir, "cells.csv");
        assert_eq!(cells.len(), 1);
        let cell = &cells[0];
        assert_eq!([&cell["status"], &cell["check_count"], &cell["check_tokens"]], ["ok", "confirmed", "not-checkable"], "{cell:?}");
        assert_eq!((cell["prompt_tokens"].as_str(), number(cell, "token_agreement")), ("32", None));
        assert!(number(cell, "ttft_ms").is_some() && number(cell, "decode_tok_s").is_some(), "{cell:?}");
        own_prompts(&run_dir, &tokenizer, name == "tiny-mnn");
        fs::remove_dir_all(dir.path().join("results")).unwrap();
    }
}

/// The prompts that a runner got, decoded and encoded again by the tokenizer's own library in Python.
fn own_prompts(run_dir: &Path, tokenizer: &Path, plain: bool) {
    let job = glob::glob(&format!("{}/logs/*/*/measure-*/job.json", run_dir.display())).unwrap().flatten().next().expect("a job");
    let job: Value = serde_json::from_slice(&fs::read(job).unwrap()).unwrap();
    let ids: Vec<Vec<u32>> = job["queries"].as_array().unwrap().iter().map(|q| serde_json::from_value(q["ids"].clone()).unwrap()).collect();
    assert!(ids.len() == 4 && ids.iter().all(|ids| ids.len() == 32), "{ids:?}");
    // The MNN model tells no BOS, Genie's configuration does.
    let bodies: Vec<&[u32]> = ids.iter().map(|ids| if plain { &ids[..] } else { &ids[1..] }).collect();
    assert!(plain || ids.iter().all(|ids| ids[0] == 0));
    assert!(bodies.iter().all(|body| !body.contains(&0)));
    let script = "import json, sys, tokenizers\nt = tokenizers.Tokenizer.from_file(sys.argv[1])\n\
        for body in json.loads(sys.argv[2]):\n    text = t.decode(body)\n    assert t.encode(text, add_special_tokens=False).ids == body, text\n    print(text)";
    let output = Command::new(python()).arg("-c").arg(script).arg(tokenizer).arg(serde_json::to_string(&bodies).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let texts = String::from_utf8(output.stdout).unwrap();
    let beginnings: std::collections::BTreeSet<String> = texts.lines().map(|l| l.chars().take(24).collect()).collect();
    assert_eq!(beginnings.len(), 4, "each query has its own text: {texts}");
    assert!(texts.lines().all(|l| l.is_ascii() && l.split(' ').count() > 5), "{texts}");
}

/// A minute of soaking, twenty seconds an engine: every answer in every window is the float32 computation's.
#[test]
fn a_minute_of_soaking_keeps_every_token_right() {
    let dir = tempfile::tempdir().unwrap();
    let matrix =
        format!("backend = [\"genie\", \"ort-qnn\", \"mnn\"]\nquant = [\"fp32\", \"fp16\"]\nprompt-tokens = 40\ngen-tokens = 8\n{EXCLUDE}");
    let soak = "[soak]\nduration = \"20s\"\nwindow = \"4s\"";
    let path = scenario(dir.path(), "soaked", MODEL, &matrix, "queries = 2", soak);
    run(real(dir.path()).arg("run").arg(&path).args(["--yes", "--no-report"])).expect(0);
    let folder = only_run(&dir.path().join("results"));
    let cells = table(&folder, "cells.csv");
    assert_eq!(cells.len(), 3);
    let windows = table(&folder, "soak.csv");
    for cell in &cells {
        let name = &cell["cell"];
        assert_eq!((cell["soak_ended"].as_str(), cell["soak_check_tokens"].as_str()), ("complete", "confirmed"), "{name}");
        // The discarded query is of the 20 s too, and a busy machine is slow at it.
        assert!((12.0..26.0).contains(&number(cell, "soak_s").unwrap()) && number(cell, "soak_tok_s").unwrap() > 0.0, "{name}");
        let own: Vec<&Row> = windows.iter().filter(|w| w["cell"] == *name).collect();
        assert!(own.len() >= 3, "{name}: {}", own.len());
        assert!(own.iter().all(|w| w["check_tokens"] == "confirmed" && w["answers_changed"] == "0"), "{name}");
        assert!(own.iter().all(|w| number(w, "itl_p50_ms").unwrap() <= number(w, "itl_max_ms").unwrap()), "{name}");
        assert!(cell["soak_minute_1_rank"].is_empty() && cell["soak_absent"].contains("minute_1_tok_s=not reached"), "{name}");
    }
}
