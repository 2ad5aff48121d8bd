//! What a cell leaves in the tables.

use std::collections::BTreeMap;

use super::folder::{Made, Noise, Row, keys};
use crate::results::schema::METRICS;
use crate::stats::{Stability, Summary, stability};

#[expect(clippy::too_many_arguments, reason = "a test's helper")]
pub(super) fn measure(
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

pub(super) fn memory(made: &Made, id: &str, telemetry: &mut Vec<Row>) {
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

pub(super) fn operations(made: &Made, id: &str, layers: &mut Vec<Row>) {
    for phase in ["prefill", "decode"] {
        for (index, (name, op)) in [
            "lm_head/matmul:OpId_99",
            "layers.0.ffn_up:OpId_12",
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
            row.insert("count".into(), if phase == "prefill" { "12" } else { "60" }.into());
            row.insert("value".into(), format!("{:.0}", 90_000.0 / (index as f64 + 1.0)));
            layers.push(row);
        }
    }
}

pub(super) fn summarise(row: &mut Row, values: &BTreeMap<&str, Vec<f64>>, made: &Made, launches: i64) {
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
                for (suffix, value) in [
                    ("", summary.median),
                    ("_lo", summary.lo),
                    ("_hi", summary.hi),
                    ("_coverage", summary.coverage),
                    ("_mad", summary.mad),
                    ("_n", summary.n as f64),
                ] {
                    row.insert(format!("{}{suffix}", metric.name), value.to_string());
                }
                if let Some(centre) = summary.centre {
                    row.insert(format!("{}_centre", metric.name), centre.to_string());
                }
            }
        }
    }
    let verdict: Stability = stability(&values["decode_tok_s"]);
    let emulator = made.class == "emulator";
    let pairs = [
        ("launches", launches.to_string()),
        ("stop", "max".into()),
        ("n_small", "1".into()),
        ("stability", verdict.word().into()),
        ("stability_reason", verdict.reason()),
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
        ("check_prefix", "confirmed".into()),
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
        ("artifact", if emulator { format!("qnn-context-a1b2c3d4{}", made.quant) } else { format!("{}-{}", made.backend, made.quant) }),
        ("chunk", if emulator { "32".into() } else { String::new() }),
        ("compiled_context", if emulator { "256".into() } else { String::new() }),
        ("template", "raw".into()),
        ("sampling", "greedy".into()),
        ("decoding", "plain".into()),
        ("kv_depth", (made.prompt + 16).to_string()),
        ("quant_native", if made.quant.contains('8') { "int8 block 32".into() } else { String::new() }),
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
