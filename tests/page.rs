//! Pages of `bench report` in a real browser, which tests/page_check.py drives: what a person sees is what the tables say, filters and sorting
//! work, words of a device do nothing.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;
use support::{
    bench, root, run,
    runs::{Cell, Run, noisy},
};

/// What a device, a model or a runtime may call itself.
const ATTACKS: [&str; 6] = [
    "<script>window.hacked='script'</script>",
    "<img src=x onerror=\"window.hacked='img'\">",
    "\"'><svg/onload=window.hacked='svg'>",
    "</style></title></textarea><script>window.hacked='end'</script>",
    "javascript:window.hacked='url'//{{ page.title }}{% include 'x' %}",
    "a\u{2028}b\u{202e}c&lt;script&gt;\u{2067}d<!--",
];

/// Makes the page of a run folder.
fn page(dir: &Path, folder: &Path) -> PathBuf {
    let report = run(bench(dir).arg("report").arg(folder).args(["--out", "pages"])).expect(0);
    dir.join(report.stdout.trim())
}

/// Looks at it.
fn check(arguments: &[&str]) -> String {
    let python = run(&mut Command::new(root().join("tests/browser.sh"))).expect(0);
    let mut command = Command::new(python.stdout.trim());
    command.arg(root().join("tests/page_check.py")).args(arguments).env("CHROMIUM", support::chromium());
    run(&mut command).expect(0).stdout
}

#[test]
fn the_example_in_chromium() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let page = page(dir.path(), &example);
    check(&["example", page.to_str().unwrap(), example.to_str().unwrap()]);
}

#[test]
fn words_of_a_device_do_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = Run::night(7);
    for (at, attack) in ATTACKS.iter().enumerate() {
        for (backend, status) in [("genie", "ok"), (*attack, "ok"), ("mnn", "failed"), ("x", "skipped")] {
            let mut cell = Cell::new(&format!("b.m.q.p{at}"))
                .with("cell", &format!("{backend}.{attack}.{at}"))
                .with("backend", backend)
                .with("status", status)
                .with("prompt_tokens", if at % 2 == 0 { "32" } else { "512" });
            for column in ["model", "quant", "device"] {
                cell = cell.with(column, ATTACKS[at / 2 * 2]);
            }
            for column in [
                "reason",
                "failure_kind",
                "variant",
                "perf_profile",
                "artifact",
                "runtime_version",
                "engine",
                "tool",
                "votes",
                "ttft_method",
                "peak_mem_method",
                "power_method",
                "launch_context",
                "roof_note",
                "unit_found",
                "stability_reason",
                "soak_ended",
                "stop",
            ] {
                cell = cell.with(column, attack);
            }
            cell = cell.with("absent", &format!("itl_p50_ms={attack};mem_load_mb={attack}"));
            if status == "ok" {
                cell = cell.values("ttft_ms", &noisy(90.0 + at as f64, 0.02, 12, 3)).values("decode_tok_s", &noisy(20.0, 0.02, 12, 4));
            }
            made = made.cell(cell);
        }
    }
    for pointer in ["/run", "/scenario/name", "/device/name", "/device/cpu", "/device/kernel", "/tool/version"] {
        *made.manifest.pointer_mut(pointer).unwrap() = json!(ATTACKS[0]);
    }
    made.manifest["warnings"] = json!(ATTACKS);
    made.manifest["environment"] = json!({ATTACKS[1]: ATTACKS[3]});
    made.manifest["runtimes"][ATTACKS[2]] = json!({"missing": {"what": ATTACKS[1], "remedy": ATTACKS[4]}});
    let page = page(dir.path(), &made.planned().write(dir.path()));
    check(&["hostile", page.to_str().unwrap()]);
}

/// The lab's site: index, device and model, all called by attacks, with figures that stepped and a gate.
#[test]
fn names_on_the_site_do_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut last = PathBuf::new();
    for day in 0..16 {
        let mut made = Run::night(day);
        for (at, attack) in ATTACKS.iter().enumerate() {
            let level = if day < 9 { 20.0 } else { 15.0 };
            let mut cell = Cell::new(&format!("b.m.q.p{at}")).with("cell", &format!("{attack}.{at}"));
            for column in ["model", "device", "device_class"] {
                cell = cell.with(column, ATTACKS[1]);
            }
            for column in ["backend", "quant", "reason", "ttft_method", "decode_method"] {
                cell = cell.with(column, attack);
            }
            made = made.cell(cell.values("decode_tok_s", &noisy(level, 0.005, 10, u64::from(day) * 8 + at as u64)));
        }
        for pointer in ["/run", "/scenario/name", "/device/name", "/device/cpu", "/device/soc_model"] {
            *made.manifest.pointer_mut(pointer).unwrap() = json!(ATTACKS[1]);
        }
        made.manifest["run"] = json!(format!("{day}{}", ATTACKS[0]));
        made.manifest["runtimes"][ATTACKS[2]] = json!({"ready": {"version": format!("{}{}", ATTACKS[5], day < 9)}});
        if day % 4 == 3 {
            made.id = format!("{day:02}{}", ATTACKS[1]);
        }
        last = made.write(&dir.path().join("runs"));
    }
    fs::write(dir.path().join("runs").join("x<img src=x onerror=\"window.hacked='left'\">"), "").unwrap();
    run(bench(dir.path()).arg("report").arg("--site").arg("site").arg(&last)).expect(0);
    let page = dir.path().join("site").join(last.file_name().unwrap());
    let words: Vec<&str> = ATTACKS.to_vec();
    let record = json!({"format_version": 1, "run": format!("15{}", ATTACKS[0]), "verdict": ATTACKS[0], "words": words, "worse": words});
    fs::write(page.join("gate.json"), record.to_string()).unwrap();
    run(bench(dir.path()).args(["report", "--site", "site", "runs"])).expect(0);
    check(&["site", dir.path().join("site").to_str().unwrap()]);
    // What a site is asked for is nothing that a page could give.
    for more in
        [vec!["--metric", "ttft"], vec!["--tolerance", "3%", "--out", "x"], vec!["--metric", "all", "--site", "x", "--format", "json"]]
    {
        run(bench(dir.path()).args(["report", "runs"]).args(more)).expect(2);
    }
}

#[test]
fn a_comparison_is_filtered_and_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let mut ids = Vec::new();
    let mut folders = Vec::new();
    for day in 0..2 {
        let mut made = Run::night(day);
        ids.clear();
        for (at, prompt) in [32, 128, 512, 1024, 2048].into_iter().enumerate() {
            for (backend, level) in [("genie", 20.0), ("mnn", if day == 0 { 15.0 } else { 10.0 })] {
                let id = format!("{backend}.tiny.w4.p{prompt}.g16-0a1b2c{at:02x}");
                let cell = Cell::new(&id)
                    .with("prompt_tokens", &prompt.to_string())
                    .values("decode_tok_s", &noisy(level, 0.002, 10, at as u64))
                    .values("ttft_ms", &noisy(f64::from(prompt), 0.002, 10, at as u64));
                made = made.cell(cell);
                ids.push(id);
            }
        }
        folders.push(made.write(dir.path()));
    }
    let made =
        run(bench(dir.path()).arg("compare").args(&folders).args(["--page", "--out", "pages", "--session-spread", "0.5%"])).expect(0);
    let page = made.stderr.lines().find_map(|line| line.strip_prefix("page: ")).unwrap();
    check(&["compared", dir.path().join(page).to_str().unwrap(), &ids.join(",")]);
}

#[test]
fn two_thousand_cells_stay_usable() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = Run::night(9);
    let backends = ["executorch", "genie", "llama-cpp", "mnn", "ort-qnn"];
    for (at, model) in ["llama-3.2-1b", "llama-3.2-3b", "phi-3.5-mini", "qwen2.5-1.5b", "gemma-2-2b"].into_iter().enumerate() {
        for (b, backend) in backends.into_iter().enumerate() {
            for (q, quant) in ["w4", "w4a16", "w8a16", "fp16"].into_iter().enumerate() {
                for prompt in [32, 64, 128, 256, 384, 512, 768, 1024, 2048, 4096] {
                    for generate in [32, 128] {
                        made = made.cell(cell(model, backend, quant, prompt, generate, (at * 20 + b * 4 + q) as u64));
                    }
                }
            }
        }
    }
    assert_eq!(made.cells.len(), 2000);
    let folder = made.planned().write(dir.path());
    let page = page(dir.path(), &folder);
    println!("{}", check(&["big", page.to_str().unwrap(), folder.to_str().unwrap()]));
}

/// A cell with figures of the usual size; every seventeenth failed.
fn cell(model: &str, backend: &str, quant: &str, prompt: u32, generate: u32, seed: u64) -> Cell {
    let cell = Cell::new(&format!("{backend}.{model}.{quant}.p{prompt}.g{generate}-{seed:08x}"))
        .with("model", model)
        .with("quant", quant)
        .with("prompt_tokens", &prompt.to_string())
        .with("gen_tokens", &generate.to_string());
    if (seed + u64::from(prompt)).is_multiple_of(17) {
        return cell.with("status", "failed").with("reason", "the runner ended with signal 11 while loading");
    }
    let cell = [("ttft_scope", "ids"), ("ttft_method", "token_event"), ("launch_context", "shell"), ("unit_found", "npu")]
        .into_iter()
        .fold(cell, |cell, (column, value)| cell.with(column, value))
        // Two frameworks share their binaries.
        .with(
            "artifact",
            &if matches!(backend, "genie" | "ort-qnn") { format!("ctx-{model}-{quant}") } else { format!("{backend}-{model}-{quant}") },
        );
    let near = |level: f64, salt: u64| noisy(level, 0.01, 3, seed * 31 + u64::from(prompt) + salt);
    let rate = 30.0 - seed as f64 / 8.0;
    cell.values("ttft_ms", &near(f64::from(prompt) * 1.1 + seed as f64, 1))
        .values("decode_tok_s", &near(rate, 2))
        .values("prefill_tok_s", &near(900.0, 3))
        .values("itl_p50_ms", &near(1000.0 / rate, 4))
        .values("itl_p99_ms", &near(1100.0 / rate, 5))
        .values("load_ms", &near(2500.0, 6))
        .values("peak_mem_mb", &near(2100.0, 7))
        .values("mem_load_mb", &near(1900.0, 8))
}

#[test]
fn what_to_ship_is_on_the_page_on_the_terminal_and_as_data() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let report = |more: &[&str]| run(bench(dir.path()).arg("report").arg(&example).args(["--out", "pages"]).args(more));
    let human = report(&[]).expect(0);
    let page = fs::read_to_string(dir.path().join(human.stdout.trim())).unwrap();
    let emulator = "tiny-llama on local (emulator): no recommendation, since emulator time is not device time: nothing is ranked and nothing is selected from it.";
    assert!(human.stderr.contains(emulator), "{}", human.stderr);
    assert!(page.contains(emulator) && page.contains("What to ship"), "the same words on the page");
    assert!(page.contains("github.com&#x2f;alibaba&#x2f;MNN") && page.contains("From public documents"), "what no measurement says, apart");

    let machine = report(&["--format", "json", "--use", "chat-assistant"]).expect(0);
    assert_eq!(machine.stderr, "");
    let told: serde_json::Value = serde_json::from_str(&machine.stdout).unwrap();
    let selection = &told["selections"][0];
    assert_eq!(selection["use_case"]["name"], "chat-assistant");
    // No cell of the example has a prompt of 512 tokens.
    let pc = selection["groups"].as_array().unwrap().iter().find(|group| group["class"] == "pc").unwrap();
    assert_eq!(pc["verdict"]["kind"], "no-recommendation");
    assert!(pc["unpromised"][0].as_str().unwrap().ends_with("(prompt-tokens 512), preset: no cell has these conditions"), "{pc}");
    assert!(fs::read_to_string(dir.path().join(told["page"].as_str().unwrap())).unwrap().contains("preset"), "the page is judged for it");

    let wrong = report(&["--use", "glases"]).expect(2);
    assert!(wrong.stderr.contains("no such use case, there are: chat-assistant, glasses"), "{}", wrong.stderr);
}
