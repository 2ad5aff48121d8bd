//! A run folder made up for the tests: two classes, five backends, and every way in which a cell can end. The figures are invented.

use std::{collections::BTreeMap, fmt::Write, fs, path::Path, sync::OnceLock};

use super::rows::{measure, memory, operations, summarise};
use crate::results::schema::{CELLS, Column, LAYERS, METRIC_ENDS, METRICS, SAMPLES, TELEMETRY, TOKENS, Table};

/// Text that must never reach the page as markup.
pub const HOSTILE: &str = "<script>alert('x')</script>\"><img src=http://evil.example/x onerror=alert(1)>, and \u{202e}more";

pub(super) type Row = BTreeMap<String, String>;

/// One cell to make.
pub(super) struct Made {
    pub(super) class: &'static str,
    pub(super) backend: &'static str,
    pub(super) quant: &'static str,
    pub(super) prompt: u32,
    /// Typical TTFT in ms and gap in ms; 0 where nothing was measured.
    pub(super) ttft: f64,
    pub(super) gap: f64,
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
}

/// A generator good enough for noise.
pub(super) struct Noise(u64);

impl Noise {
    /// About normal, mean 0, deviation 1.
    pub(super) fn next(&mut self) -> f64 {
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
            let launches = if made.backend == "ort-genai" { 2 } else { 6 };
            let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            for launch in 0..launches {
                let mut queries = BTreeMap::new();
                // Launches differ too, by as much as queries do.
                let at = Made { ttft: made.ttft * (1.0 + spread * noise.next()), gap: made.gap * (1.0 + spread * noise.next()), ..*made };
                for query in 0..4 {
                    measure(&at, &id, launch, query, spread, &mut noise, &mut queries, &mut samples, &mut tokens);
                }
                for (name, of) in queries {
                    values.entry(name).or_default().extend(crate::stats::median(&of));
                }
                let own = |noise: &mut Noise, typical: f64| typical * (1.0 + 0.02 * noise.next());
                values.entry("load_ms").or_default().push(own(&mut noise, if made.class == "emulator" { 900.0 } else { 60.0 }));
                values.entry("peak_mem_mb").or_default().push(own(&mut noise, if made.class == "emulator" { 282.0 } else { 96.0 }));
                values.entry("cpu_s").or_default().push(own(&mut noise, made.ttft / 40.0));
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

pub(super) fn keys(made: &Made, id: &str) -> Row {
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
    set("launches", if made.status == "ok" { "6" } else { "0" });
    set("launches_failed", if made.status == "failed" { "2" } else { "0" });
    set("unit_requested", if made.class == "emulator" { "npu" } else { "cpu" });
    row
}

fn table(table: &Table, rows: &[Row]) -> (&'static str, String) {
    let quoted = |text: &str| if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() };
    let mut names: Vec<String> = table.columns.iter().map(|column: &Column| column.name.to_owned()).collect();
    if table.file == CELLS.file {
        names.extend(METRICS.iter().flat_map(|metric| METRIC_ENDS.map(|suffix| format!("{}{suffix}", metric.name))));
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
            "genie": {"ready": {"version": "1.21.0 (QAIRT 2.51)"}}, "ort-qnn": {"ready": {"version": "onnxruntime 1.32.0, onnxruntime-qnn 2.7.0"}},
            "mnn": {"ready": {"version": "3.6.1"}}, "llama-cpp": {"ready": {"version": "b6200"}}, "ort-genai": {"ready": {"version": "0.9.2"}},
            "executorch": {"missing": {"what": "the package executorch", "remedy": "bench runtimes install executorch"}},
            "snpe": {"refused": {"reason": "no x86-64 build in the SDK"}}
        },
        "host": {"cpu_governor": null, "load": [0.42, 0.38, 0.30], "boot_id": "5e1f"},
        "settings": {"queries": 3, "order": "interleaved", "telemetry_rate": "10Hz", "htp": {"soc_model": 57, "htp_arch": "v75", "perf_profile": "burst"}},
        "seed": 7, "segments": ["2026-12-01T10:15:00Z"],
        "warnings": ["the CPU governor can't be read on this machine: frequency may have varied", HOSTILE]
    })
    .to_string()
}
