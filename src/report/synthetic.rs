//! A run folder made up for the tests: two classes, five backends, and every way in which a cell can end. The figures are invented.

use std::{collections::BTreeMap, fmt::Write, fs, path::Path, sync::OnceLock};

use crate::results::schema::{CELLS, Column, LAYERS, METRICS, SAMPLES, TELEMETRY, TOKENS, Table};
use crate::stats::{Stability, Summary, stability};

/// Text that must never reach the page as markup.
pub const HOSTILE: &str = "<script>alert('x')</script>\"><img src=http://evil.example/x onerror=alert(1)>, and \u{202e}more";

type Row = BTreeMap<String, String>;

/// One cell to make.
struct Made {
    class: &'static str,
    backend: &'static str,
    quant: &'static str,
    prompt: u32,
    /// Typical TTFT in ms and gap in ms; 0 where nothing was measured.
    ttft: f64,
    gap: f64,
    status: &'static str,
    reason: &'static str,
}

/// A generator good enough for noise.
struct Noise(u64);

impl Noise {
    /// About normal, mean 0, deviation 1.
    fn next(&mut self) -> f64 {
        let mut sum = 0.0;
        for _ in 0..12 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (self.0 >> 40) as f64 / f64::from(1 << 24);
        }
        sum - 6.0
    }
}

fn cells() -> Vec<Made> {
    let mut all = Vec::new();
    for (prompt, step) in [(32, 1.0), (96, 2.7), (224, 6.1)] {
        let mut add = |class, backend, quant, ttft: f64, gap| {
            all.push(Made { class, backend, quant, prompt, ttft: ttft * step, gap, status: "ok", reason: "" });
        };
        add("emulator", "genie", "fp16", 148.0, 49.0);
        add("emulator", "ort-qnn", "fp16", 151.0, 61.0);
        add("emulator", "genie", "w8a16", 92.0, 33.0);
        add("emulator", "ort-qnn", "w8a16", 118.0, 41.0);
        add("pc", "llama-cpp", "q8_0", 9.8, 2.1);
        add("pc", "mnn", "w8", 7.4, 1.7);
        add("pc", "ort-genai", "fp32", 6.1, 2.6);
    }
    let out = |class, backend, quant, status, reason| Made { class, backend, quant, prompt: 96, ttft: 0.0, gap: 0.0, status, reason };
    all.push(out(
        "emulator",
        "genie",
        "w4a16",
        "failed",
        "the runner ended with signal 11 while loading: shared-weight binaries can't be loaded by the emulator",
    ));
    all.push(out("emulator", "ort-qnn", "w4a16", "unverified", "tokens differ from the fp32 reference at position 3 of 16"));
    all.push(out("pc", "executorch", "fp32", "skipped", "not installed: `bench runtimes install executorch`"));
    all.push(out("pc", "mnn", "w4", "failed", HOSTILE));
    all
}

/// Writes the folder. The files are made once: their intervals take a second.
pub fn write(dir: &Path) {
    static FILES: OnceLock<Vec<(&'static str, String)>> = OnceLock::new();
    fs::create_dir_all(dir).expect("a folder");
    for (name, text) in FILES.get_or_init(files) {
        fs::write(dir.join(name), text).expect("a file");
    }
}

fn files() -> Vec<(&'static str, String)> {
    let mut noise = Noise(42);
    let (mut rows, mut samples, mut tokens, mut telemetry, mut layers) = (vec![], vec![], vec![], vec![], vec![]);
    for (index, made) in cells().iter().enumerate() {
        let id = format!("{}.tiny.{}.p{}.g16-{index:08x}", made.backend, made.quant, made.prompt);
        let mut row = keys(made, &id);
        if made.status == "ok" {
            let spread = if made.backend == "mnn" { 0.08 } else { 0.012 };
            let launches = if made.backend == "ort-genai" { 2 } else { 5 };
            let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            for launch in 0..launches {
                for query in 0..4 {
                    measure(made, &id, launch, query, spread, &mut noise, &mut values, &mut samples, &mut tokens);
                }
                values
                    .entry("load_ms")
                    .or_default()
                    .push(if made.class == "emulator" { 900.0 } else { 60.0 } * (1.0 + 0.02 * noise.next()));
                values.entry("peak_mem_mb").or_default().push(if made.class == "emulator" { 282.0 } else { 96.0 } + noise.next());
                values.entry("cpu_s").or_default().push(made.ttft / 40.0 * (1.0 + 0.02 * noise.next()));
            }
            memory(made, &id, &mut telemetry);
            if made.class == "emulator" {
                operations(made, &id, &mut layers);
            }
            summarise(&mut row, &values, made, launches);
        }
        rows.push(row);
    }
    vec![
        table(&CELLS, &rows),
        table(&SAMPLES, &samples),
        table(&TOKENS, &tokens),
        table(&TELEMETRY, &telemetry),
        table(&LAYERS, &layers),
        ("manifest.json", manifest()),
    ]
}

fn keys(made: &Made, id: &str) -> Row {
    let mut row = Row::new();
    let mut set = |name: &str, value: &str| drop(row.insert(name.into(), value.into()));
    for (name, value) in [
        ("run", "20261201T101500Z-pc-7f3a"),
        ("device", "this-machine"),
        ("device_class", made.class),
        ("cell", id),
        ("backend", made.backend),
        ("model", "tiny"),
        ("quant", made.quant),
    ] {
        set(name, value);
    }
    set("prompt_tokens", &made.prompt.to_string());
    set("gen_tokens", "16");
    set("status", made.status);
    set("reason", made.reason);
    set(
        "failure_kind",
        match made.status {
            "failed" => "runtime",
            "unverified" => "verify",
            _ => "",
        },
    );
    set("launches", if made.status == "ok" { "5" } else { "0" });
    set("launches_failed", if made.status == "failed" { "2" } else { "0" });
    set("unit_requested", if made.class == "emulator" { "npu" } else { "cpu" });
    row
}

#[expect(clippy::too_many_arguments, reason = "a test's helper")]
fn measure(
    made: &Made,
    id: &str,
    launch: i64,
    query: i64,
    spread: f64,
    noise: &mut Noise,
    values: &mut BTreeMap<&str, Vec<f64>>,
    samples: &mut Vec<Row>,
    tokens: &mut Vec<Row>,
) {
    let ttft = made.ttft * (1.0 + spread * noise.next()) * if query == 0 { 1.4 } else { 1.0 };
    let mut at = ttft + 1000.0 * query as f64;
    let mut gaps = Vec::new();
    for i in 0..16 {
        let mut row = keys(made, id);
        let gap = made.gap * (1.0 + spread * noise.next().abs() * if i == 9 { 9.0 } else { 1.5 });
        if i > 0 {
            at += gap;
            gaps.push(gap);
            row.insert("itl_ms".into(), format!("{gap:.4}"));
        }
        for (name, value) in [
            ("pass", "measure".to_owned()),
            ("launch", launch.to_string()),
            ("query", query.to_string()),
            ("i", i.to_string()),
            ("t_ms", format!("{at:.3}")),
        ] {
            row.insert(name.into(), value);
        }
        tokens.push(row);
    }
    let total: f64 = gaps.iter().sum();
    let decode = 15_000.0 / total;
    let mut row = keys(made, id);
    for (name, value) in [
        ("pass", "measure".to_owned()),
        ("launch", launch.to_string()),
        ("query", query.to_string()),
        ("query_kind", if query == 0 { "first_query" } else { "warm_query" }.to_owned()),
        ("ttft_ms", ttft.to_string()),
        ("decode_tok_s", decode.to_string()),
    ] {
        row.insert(name.into(), value);
    }
    samples.push(row);
    if query > 0 {
        let quantile = |p| crate::stats::quantile(&gaps, p).expect("gaps");
        let found = [
            ("ttft_ms", ttft),
            ("decode_tok_s", decode),
            ("tpot_ms", total / 15.0),
            ("itl_p50_ms", quantile(0.5)),
            ("itl_p90_ms", quantile(0.9)),
            ("itl_p99_ms", quantile(0.99)),
            ("e2e_ms", ttft + total),
            ("prefill_tok_s", f64::from(made.prompt) / ttft * 1000.0),
        ];
        for (name, value) in found {
            values.entry(name).or_default().push(value);
        }
    }
}

fn memory(made: &Made, id: &str, telemetry: &mut Vec<Row>) {
    let size = if made.class == "emulator" { 275_000.0 } else { 95_000.0 } * if made.quant.starts_with('w') { 0.6 } else { 1.0 };
    for i in 0..120 {
        let mut row = keys(made, id);
        let level = size * (1.0 - (-f64::from(i) / 9.0).exp()) + f64::from(i / 30) * 700.0;
        for (name, value) in [
            ("pass", "measure".to_owned()),
            ("launch", "0".into()),
            ("source", "process".into()),
            ("name", "rss_kb".into()),
            ("unit", "kB".into()),
            ("t_ms", (i * 100).to_string()),
            ("value", format!("{level:.0}")),
        ] {
            row.insert(name.into(), value);
        }
        telemetry.push(row);
    }
}

fn operations(made: &Made, id: &str, layers: &mut Vec<Row>) {
    for phase in ["prefill", "decode"] {
        for (index, (name, op)) in [
            "lm_head",
            "l0_ffn_up",
            "l0_ffn_down",
            "l1_ffn_up",
            "l1_ffn_down",
            "l0_qkv",
            "l1_qkv",
            "l0_attn_softmax",
            "l1_attn_softmax",
            "norm_out",
            "rope",
        ]
        .into_iter()
        .zip(["MatMul", "MatMul", "MatMul", "MatMul", "MatMul", "Conv2d", "Conv2d", "Softmax", "Softmax", "RmsNorm", "ElementWiseMultiply"])
        .enumerate()
        {
            let mut row = keys(made, id);
            for (column, value) in [
                ("phase", phase),
                ("graph", "tiny"),
                ("name", name),
                ("op_type", op),
                ("value_unit", "cycles"),
                ("method", "profile of the runtime"),
            ] {
                row.insert(column.into(), value.into());
            }
            row.insert("index".into(), index.to_string());
            row.insert("value".into(), format!("{:.0}", 90_000.0 / (index as f64 + 1.0)));
            layers.push(row);
        }
    }
}

fn summarise(row: &mut Row, values: &BTreeMap<&str, Vec<f64>>, made: &Made, launches: i64) {
    let mut absent = Vec::new();
    for metric in METRICS {
        let merges = made.backend == "llama-cpp" && metric.name.starts_with("itl");
        match values.get(metric.name).filter(|_| !merges).and_then(|values| Summary::of(values)) {
            None => absent.push(format!(
                "{}={}",
                metric.name,
                if merges { "the text callback merges pieces, so there is no event a token" } else { "this runner does not report it" }
            )),
            Some(summary) => {
                for (suffix, value) in
                    [("", summary.median), ("_lo", summary.lo), ("_hi", summary.hi), ("_mad", summary.mad), ("_n", summary.n as f64)]
                {
                    row.insert(format!("{}{suffix}", metric.name), value.to_string());
                }
            }
        }
    }
    let verdict: Stability = stability(&values["decode_tok_s"]);
    let emulator = made.class == "emulator";
    let pairs = [
        ("launches", launches.to_string()),
        ("stop", "max".into()),
        ("n_small", u8::from(launches < 4).to_string()),
        ("stability", verdict.word().into()),
        (
            "unit_found",
            if made.backend == "mnn" {
                String::new()
            } else if emulator {
                "npu".into()
            } else {
                "cpu".into()
            },
        ),
        ("context", if emulator { "fixed:256".into() } else { "256".into() }),
        ("threads", if emulator { "n/a".into() } else { "1".into() }),
        ("perf_profile", if emulator { "burst".into() } else { "n/a".into() }),
        ("check_count", "confirmed".into()),
        ("check_tokens", if made.backend == "llama-cpp" { "not-checkable".into() } else { "confirmed".into() }),
        ("check_unit", if made.backend == "mnn" { "not-checkable".into() } else { "confirmed".into() }),
        ("token_agreement", if made.backend == "llama-cpp" { String::new() } else { "1".into() }),
        ("ttft_scope", if made.backend == "llama-cpp" { "text".into() } else { "ids".into() }),
        ("ttft_method", "token_event".into()),
        (
            "engine",
            if made.backend == "ort-qnn" {
                "graph".into()
            } else if made.backend == "genie" {
                "genie".into()
            } else {
                String::new()
            },
        ),
        ("runtime_version", if made.backend == "genie" { "1.21.0".into() } else { "2.7.0".into() }),
        ("artifact", if emulator { format!("a1b2c3d4e5f60718-{}", made.quant) } else { format!("{}-{}", made.backend, made.quant) }),
        ("chunk", if emulator { "32".into() } else { String::new() }),
        ("weight_bits", if made.quant.contains('8') { "8".into() } else { "16".into() }),
        ("kv_bits", if emulator { "8".into() } else { String::new() }),
        ("bits_per_weight", if made.quant.contains('8') { "8.53125".into() } else { String::new() }),
        ("reported_ttft_ms", (made.ttft * 0.97).to_string()),
        ("reported_decode_tok_s", (1000.0 / made.gap * 1.01).to_string()),
        ("first_query_ttft_ms", (made.ttft * 1.4).to_string()),
        ("first_launch_load_ms", "1240.5".into()),
        ("launch_context", "shell".into()),
        ("absent", absent.join(";")),
    ];
    row.extend(pairs.map(|(name, value)| (name.to_owned(), value)));
}

fn table(table: &Table, rows: &[Row]) -> (&'static str, String) {
    let quoted = |text: &str| if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() };
    let mut names: Vec<String> = table.columns.iter().map(|column: &Column| column.name.to_owned()).collect();
    if table.file == CELLS.file {
        names.extend(METRICS.iter().flat_map(|metric| ["", "_lo", "_hi", "_mad", "_n"].map(|suffix| format!("{}{suffix}", metric.name))));
    }
    let mut text = names.join(",") + "\n";
    for row in rows {
        let values = names.iter().map(|name| {
            if name == "format_version" { "1".to_owned() } else { row.get(name).map_or_else(String::new, |value| quoted(value)) }
        });
        writeln!(text, "{}", values.collect::<Vec<_>>().join(",")).expect("memory");
    }
    (table.file, text)
}

fn manifest() -> String {
    serde_json::json!({
        "format_version": 1, "run": "20261201T101500Z-pc-7f3a",
        "tool": {"version": "0.1.0", "commit": "0123456789abcdef"},
        "scenario": {"name": "pc", "sha256": "9f2c51d0aa34be7788", "path": "scenarios/pc.toml"},
        "started_utc": "2026-12-01T10:15:00Z", "finished_utc": "2026-12-01T10:41:12Z",
        "device": {"name": "this-machine", "class": "pc", "os": "Linux", "arch": "x86_64", "cpu": "AMD EPYC 9B14", "cores": 2, "memory_mb": 24_576, "kernel": "6.8.0-52-generic", "soc_model": null, "htp_arch": null},
        "runtimes": {
            "genie": {"version": "1.21.0 (QAIRT 2.51)"}, "ort-qnn": {"version": "onnxruntime 1.32.0, onnxruntime-qnn 2.7.0"}, "mnn": {"version": "3.6.1"},
            "llama-cpp": {"version": "b6200"}, "ort-genai": {"version": "0.9.2"},
            "executorch": {"missing": "executorch", "remedy": "bench runtimes install executorch"}, "snpe": {"refused": "no x86-64 build in the SDK"}
        },
        "host": {"cpu_governor": null, "load": [0.42, 0.38, 0.30], "boot_id": "5e1f"},
        "settings": {"queries": 3, "order": "interleaved", "telemetry_rate": "10Hz", "htp": {"soc_model": 57, "htp_arch": "v75", "perf_profile": "burst"}},
        "seed": 7, "segments": [{"started_utc": "2026-12-01T10:15:00Z", "launches": 97}],
        "warnings": ["the CPU governor can't be read on this machine: frequency may have varied", HOSTILE]
    })
    .to_string()
}
