//! One cell in two runs.

use std::collections::BTreeSet;

use super::{Difference, FAR_C, Weight};
use crate::{analysis::power, gate::run::Cell, stats};

/// A column of `cells.csv` whose value is compared as it stands.
struct Column {
    name: &'static str,
    words: &'static str,
    weight: Weight,
    /// Metrics that it touches; empty = all.
    metrics: &'static [&'static str],
    /// What an empty value means; "" = nobody knows.
    empty: &'static str,
}

const fn all(name: &'static str, words: &'static str, weight: Weight) -> Column {
    Column { name, words, weight, metrics: &[], empty: "" }
}

/// The way in which some metrics were got: those of two ways are two things.
const fn way(name: &'static str, words: &'static str, metrics: &'static [&'static str], empty: &'static str) -> Column {
    Column { name, words, weight: Weight::Bars, metrics, empty }
}

const MEMORY: &[&str] = &["peak_mem_mb", "mem_load_mb", "mem_prefill_mb", "mem_end_mb", "mem_growth_mb_per_h"];
const POWER: &[&str] = &power::METRICS;
const NET: &[&str] = &["energy_net_j", "energy_j_per_prompt_tok", "energy_j_per_tok"];

const COLUMNS: &[Column] = &[
    all("device_class", "device class", Weight::Bars),
    // Rule R6: shell and app differ by 2 to 4 times in users' reports.
    all("launch_context", "started from", Weight::Bars),
    way("ttft_scope", "where the first token's time begins", &["ttft_ms", "e2e_ms"], ""),
    way("ttft_method", "how the first token was timed", &["ttft_ms"], ""),
    way("prefill_method", "how prefill was timed", &["prefill_tok_s"], "measured"),
    way("decode_method", "how decode was timed", &["decode_tok_s", "tpot_ms"], "measured"),
    way("peak_mem_method", "what is summed as memory", MEMORY, ""),
    way("power_method", "what told the power", POWER, ""),
    way("baseline_state", "idle baseline", NET, ""),
    way("energy_phase_method", "how energy was split by phase", &["energy_j_per_prompt_tok", "energy_j_per_tok"], ""),
    way("battery_pct_method", "what a percent of the battery is", &["tokens_per_battery_pct"], ""),
    all("runtime_version", "runtime", Weight::Serious),
    // Cold loads are a metric of their own.
    Column { name: "load_state", words: "page cache at warm loads", weight: Weight::Serious, metrics: &["load_ms"], empty: "" },
    all("engine", "engine (rule R14)", Weight::Serious),
    all("tool", "program", Weight::Serious),
    all("unit_found", "unit that worked", Weight::Serious),
    all("artifact", "artifact", Weight::Serious),
    all("quant_native", "native name of the quantisation", Weight::Serious),
    all("weight_bits", "bits of the weights", Weight::Serious),
    all("act_bits", "bits of the activations", Weight::Serious),
    all("kv_bits", "bits of the KV cache", Weight::Serious),
    all("group", "weights that share a scale", Weight::Serious),
    all("lm_head_bits", "bits of the LM head", Weight::Serious),
    all("embedding_bits", "bits of the embedding", Weight::Serious),
    all("bits_per_weight", "measured bits a weight", Weight::Serious),
    all("context", "context length", Weight::Serious),
    all("chunk", "AR of the prefill graph", Weight::Serious),
    all("padded_prompt_tokens", "padded prompt", Weight::Serious),
    all("compiled_context", "context that static graphs attend over", Weight::Serious),
    all("graphs", "graphs that ran", Weight::Serious),
    // Runs of an older bench have raw prompts.
    Column { name: "template", words: "template of the prompts", weight: Weight::Serious, metrics: &[], empty: "raw" },
    all("sampling", "sampling", Weight::Serious),
    all("decoding", "decoding", Weight::Serious),
    all("perf_profile", "performance profile", Weight::Serious),
    all("votes", "votes", Weight::Serious),
    all("effective_options", "options in effect", Weight::Serious),
    all("threads", "threads", Weight::Serious),
    Column { name: "cells_a_launch", words: "cells that share a launch", weight: Weight::Serious, metrics: &[], empty: "1" },
    // A speed that was gained with other tokens is no gain.
    all("check_tokens", "check of the tokens", Weight::Serious),
    all("token_agreement", "token agreement", Weight::Serious),
    all("check_bos", "check of the one BOS", Weight::Serious),
    all("charge_state", "charge state while power was measured", Weight::Serious),
    Column { name: "contended", words: "other users of the NPU", weight: Weight::Serious, metrics: &[], empty: "none seen" },
];

/// What differs between a cell in A and the same in B.
pub fn of_cells(a: &Cell, b: &Cell) -> Vec<Difference> {
    let known = |cell: &Cell, column: &Column| {
        let value = cell.field(column.name);
        let value = if value.is_empty() { column.empty } else { value };
        (!value.is_empty()).then(|| value.to_owned())
    };
    let columns = COLUMNS.iter().filter_map(|column| {
        let found = Difference::of(column.words, known(a, column), known(b, column), column.weight)?;
        // Who names it is no difference, and stands beside one.
        let stated = |cell: &Cell| column.name == "quant_native" && cell.field("quant_native_from") == "scenario";
        let said = |cell: &Cell, value: String| if stated(cell) { format!("{value}, as its scenario states") } else { value };
        Some(Difference { a: said(a, found.a), b: said(b, found.b), metrics: column.metrics, ..found })
    });
    columns.chain(depth(a, b)).chain(unsettled(a, b)).chain(state(a, b)).collect()
}

/// Rule R7: what was in the KV cache at the end of a query. Partners of an A/B run may have prompts of two lengths.
fn depth(a: &Cell, b: &Cell) -> Option<Difference> {
    let depth = |cell: &Cell| {
        let count = |name: &str| cell.field(name).parse::<u64>().ok();
        Some(format!("{} tokens", count("prompt_tokens")?.checked_add(count("gen_tokens")?)?))
    };
    let (a, b) = depth(a).zip(depth(b))?;
    Difference::of("depth of the KV cache at the end of a query", Some(a), Some(b), Weight::Serious)
}

/// Launches whose device was not as `[settle]` asks.
fn unsettled(a: &Cell, b: &Cell) -> Option<Difference> {
    let count = |cell: &Cell| cell.field("unsettled").parse::<f64>().unwrap_or(0.0);
    let words = |cell: &Cell| match cell.field("unsettled") {
        "" => "nothing was waited for".to_owned(),
        count => format!("{count} of {}", cell.field("launches")),
    };
    let waited = |cell: &Cell| !cell.field("unsettled").is_empty();
    let differs = waited(a) != waited(b) || count(a) > 0.0 || count(b) > 0.0;
    differs.then(|| Difference::new("launches of an unsettled device", words(a), words(b), Weight::Serious))
}

/// The state in which the launches began.
fn state(a: &Cell, b: &Cell) -> Vec<Difference> {
    let median = |cell: &Cell, column: &str| {
        let values: Vec<f64> = cell.state.get(column)?.iter().filter_map(|value| value.parse().ok()).collect();
        stats::median(&values)
    };
    let apart = |column: &str, words: &str, far: f64, unit: &str| {
        let (a, b) = median(a, column).zip(median(b, column))?;
        let say = |value: f64| format!("{value:.1} {unit}");
        ((a - b).abs() > far).then(|| Difference::new(words, say(a), say(b), Weight::Serious))
    };
    let kinds = |cell: &Cell, column: &str, name: fn(&str) -> String| {
        let kinds: BTreeSet<String> = cell.state.get(column)?.iter().map(|value| name(value)).collect();
        Some(kinds.into_iter().collect::<Vec<_>>().join(" and "))
    };
    let of_kind = |column: &str, words: &str, weight: Weight, name: fn(&str) -> String| {
        Difference::of(words, kinds(a, column, name), kinds(b, column, name), weight)
    };
    // What an older bench did not write is no difference that anybody knows of.
    let inherited = |column: &str, words: &str, weight: Weight, name: fn(&str) -> String| {
        let (a, b) = kinds(a, column, name).zip(kinds(b, column, name))?;
        Difference::of(words, Some(a), Some(b), weight)
    };
    let charging = |value: &str| if value == "1" { "charging" } else { "not charging" }.to_owned();
    let found = [
        apart("start_skin_c", "case at the start of launches", FAR_C, "°C"),
        apart("start_npu_c", "NPU at the start of launches", FAR_C, "°C"),
        apart("start_cpu_c", "CPU at the start of launches", FAR_C, "°C"),
        apart("start_battery_c", "battery at the start of launches", FAR_C, "°C"),
        // The gauge of a phone is good to a few percent, and only a low battery is known to slow a phone down.
        apart("start_battery_pct", "charge at the start of launches", 20.0, "%"),
        of_kind("start_charging", "battery at the start", Weight::Serious, charging),
        of_kind("start_screen", "screen at the start", Weight::Serious, str::to_owned),
        // Rule R6.
        inherited("cpuset", "cpuset of programs", Weight::Serious, str::to_owned),
        inherited("affinity", "processors that programs may use", Weight::Serious, str::to_owned),
        inherited("nice", "nice value of programs", Weight::Serious, str::to_owned),
        inherited("selinux_domain", "SELinux domain of programs", Weight::Serious, str::to_owned),
        inherited("oom_score_adj", "oom_score_adj of programs", Weight::Minor, str::to_owned),
        // Android has one for each process (`pid_4711`), systemd one for each login.
        inherited("cgroup", "control groups of programs", Weight::Minor, |value| value.replace(|c: char| c.is_ascii_digit(), "#")),
    ];
    found.into_iter().flatten().collect()
}
