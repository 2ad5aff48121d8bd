//! A cell's row: medians over launches, with intervals. The unit of repetition is the launch: queries of one launch share its
//! process, its memory layout and its warm-up, and are no independent samples.

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::{Axis, Check, Parsed, Pass, Query, note};

use super::{
    launches::{Record, Recorded, Staged},
    manifest::{Manifest, NamedBy},
    power::{Regressed, RunPower},
    schema::{FORMAT_VERSION, METRICS},
    start::Settled,
    tables::{Measured, Row, SHELL},
};
use crate::{
    analysis::power::{BaselineState, LaunchPower},
    run::{LoadState, QueryMetrics, RUNTIME_REPORTED, events::Status, is_composed, launch_figures, query_metrics, scope, warmup, worst},
    scenario::{Plan, PlannedCell},
    stats::{self, Summary},
};

/// The method of figures that are composed from graph times.
pub const COMPOSED: &str = "composed";

/// The row of one cell.
pub fn row(
    planned: &PlannedCell,
    plan: &Plan,
    manifest: &Manifest,
    recorded: &Recorded,
    (measured, power): (&Measured, &RunPower),
) -> (Row, Status) {
    let mut row = Row::default();
    let cell = &planned.cell;
    row.set("format_version", FORMAT_VERSION).set("run", &manifest.run).set("device", &manifest.device.name);
    row.maybe("device_class", manifest.cells.get(&planned.id).map(|c| c.device_class))
        .set("cell", &planned.id)
        .set("backend", &cell.backend)
        .set("model", &cell.model.name);
    row.set("quant", cell.quant).set("prompt_tokens", cell.workload.prompt_tokens()).set("gen_tokens", cell.workload.gen_tokens());
    row.set("unit_requested", cell.unit).set("context", cell.model.context).set("launch_context", SHELL);
    for (axis, column) in [
        (Axis::Context, "context"),
        (Axis::Kv, "kv"),
        (Axis::Batch, "batch"),
        (Axis::Threads, "threads"),
        (Axis::PerfProfile, "perf_profile"),
        (Axis::Variant, "variant"),
    ] {
        row.maybe(column, cell.axes.get(&axis));
    }
    row.set("template", plan.template(&cell.model.name))
        .set("kv_depth", (cell.workload.prompt_tokens() + cell.workload.gen_tokens()).saturating_sub(1));
    facts(&mut row, planned, manifest);

    let all: Vec<&Record> = recorded.launches.iter().map(|(_, r)| r).filter(|r| r.cell == planned.id && r.pass == Pass::Measure).collect();
    let good: Vec<&Record> = all.iter().copied().filter(|r| r.status == Status::Ok).collect();
    // An infrastructure failure says nothing about the cell; any other failed launch makes the whole cell's numbers doubtful.
    let bad = all.iter().copied().find(|r| r.status != Status::Ok && r.failure.as_ref().is_none_or(|f| !f.kind.is_surroundings()));
    let skipped = recorded.skipped.iter().find(|(id, _)| *id == planned.id);
    let failed_to_prepare = recorded.failed.iter().find(|(id, _)| *id == planned.id);
    let blamed = bad.or_else(|| if good.is_empty() { all.first().copied() } else { None });
    let status = match (blamed, skipped, failed_to_prepare) {
        (Some(record), ..) => record.status,
        // What a later segment could not prepare does not undo what an earlier one measured.
        (None, ..) if !good.is_empty() => Status::Ok,
        (None, None, Some(_)) => Status::Failed,
        (None, ..) => Status::Skipped,
    };
    let shared = all.iter().filter_map(|r| r.shared.as_ref()).map(|shared| shared.cells).max();
    row.maybe("cells_a_launch", (!all.is_empty()).then(|| shared.unwrap_or(1)));
    row.set("status", status.as_str()).set("launches", good.len());
    // Which of the cells of a shared launch broke it, nobody knows: each has it as a launch that failed.
    let broke = all.iter().filter(|r| r.start.broke.is_some()).count();
    row.set("launches_failed", all.len() - good.len() + broke);
    if let Some(failure) = blamed.and_then(|r| r.failure.as_ref()).or(failed_to_prepare.map(|(_, f)| f)).filter(|_| status != Status::Ok) {
        let hint = failure.hint.as_ref().map(|h| format!(" ({h})")).unwrap_or_default();
        row.set("failure_kind", failure.kind).set("reason", format!("{}{hint}", failure.message));
    } else if status == Status::Skipped {
        row.set("reason", skipped.map_or("not measured before the run ended", |(_, why)| why.as_str()));
    }
    row.maybe("stop", recorded.stops.iter().find(|(id, _)| *id == planned.id).map(|(_, stop)| stop));
    surroundings(&mut row, plan, &good);
    checks(&mut row, &all);
    if let Some(record) = all.first() {
        told(&mut row, planned, &record.parsed.notes);
    }
    if all.iter().any(|r| is_composed(&r.parsed)) {
        row.set("template", NOT_APPLICABLE);
        row.set("ttft_scope", "ids").set("ttft_method", COMPOSED).set("prefill_method", COMPOSED).set("decode_method", COMPOSED);
    } else if let Some((record, query)) = all.iter().find_map(|r| Some((*r, r.parsed.queries.last()?))) {
        prompted(&mut row, &record.parsed, query);
        let metrics = query_metrics(&record.parsed, query);
        row.set("ttft_scope", all.first().map_or("ids", |r| scope(&r.parsed))).maybe("ttft_method", metrics.ttft_method);
        if metrics.aggregate_n.is_some() {
            row.set("prefill_method", RUNTIME_REPORTED).set("decode_method", RUNTIME_REPORTED);
        }
    }
    if let Some(record) = all.iter().find(|r| r.staged != Staged::default()) {
        let mb = |bytes: u64| (bytes > 0).then_some(bytes as f64 / 1e6);
        let Staged { runtime, model, tokenizer } = record.staged;
        row.number("runtime_mb", mb(runtime)).number("model_mb", mb(model)).number("tokenizer_mb", mb(tokenizer));
    }
    if status == Status::Ok {
        metrics(&mut row, &good, planned, plan, (measured, power));
        power_told(&mut row, &good, power);
    }
    (row, status)
}

/// What was around the device, and in which state the launches that count began.
fn surroundings(row: &mut Row, plan: &Plan, good: &[&Record]) {
    let unsettled = good.iter().filter(|r| r.start.settle == Settled::Marked).count();
    row.maybe("unsettled", plan.settle.as_ref().map(|_| unsettled));
    let stable = good.iter().filter_map(|r| warmup(&plan.measure, r.pass, &r.parsed).stable).collect::<Vec<_>>();
    row.maybe("not_warmed_up", (!stable.is_empty()).then(|| stable.iter().filter(|stable| !**stable).count()));
    let around = &plan.environment;
    row.number("ambient_c", around.ambient_c).maybe("supply", around.supply.as_ref()).maybe("case", around.case.as_ref());
}

fn facts(row: &mut Row, planned: &PlannedCell, manifest: &Manifest) {
    let Some(cell) = manifest.cells.get(&planned.id) else { return };
    row.maybe("artifact", cell.artifact.as_ref()).maybe("quant_native", cell.quant_native.as_ref());
    row.maybe("quant_native_from", cell.quant_native_from.map(NamedBy::word));
    let number = |key: &str| cell.facts.get(key).copied();
    for column in ["weight_bits", "act_bits", "kv_bits", "lm_head_bits", "embedding_bits", "bits_per_weight", "group"] {
        row.number(column, number(column));
    }
    if let Some(chunk) = number(note::CHUNK).filter(|c| *c >= 1.0) {
        padded(row, planned, chunk);
        // Only static graphs have a chunk; a dynamic engine's context is a limit, and its attention grows with the depth (rule R7).
        row.number("compiled_context", number(note::CONTEXT));
    }
}

/// What a column says that means nothing to a cell.
const NOT_APPLICABLE: &str = "n/a";

/// How a launch was prompted, and how it chose its tokens (rules R4 and R5).
fn prompted(row: &mut Row, parsed: &Parsed, query: &Query) {
    if parsed.notes.contains_key(note::OWN_PROMPT) {
        row.set("template", NOT_APPLICABLE);
    }
    let unknown = Check::NotCheckable.as_str();
    row.set("sampling", parsed.notes.get(note::SAMPLING).map_or(unknown, String::as_str));
    // A runner says when it guesses ahead (protocol); of a tool that prints its own figures somebody has to know.
    let told = parsed.notes.contains_key(note::SPECULATIVE) || query.aggregate_n.is_none();
    let plain = if told { "plain" } else { unknown };
    row.set("decoding", parsed.speculative().map_or_else(|| plain.to_owned(), |kind| format!("speculative:{kind}")));
}

/// Notes that change times and differ between backends (rule R10), in the order in which a reader looks for them.
const VOTES: [&str; 8] = [
    "perf_profile",
    "rpc_control_latency_us",
    "rpc_polling_time_us",
    "shared_buffer",
    "backend_type",
    "threads",
    "precision",
    "executions",
];

/// What a launch says of itself.
fn told(row: &mut Row, planned: &PlannedCell, notes: &BTreeMap<String, String>) {
    row.maybe("runtime_version", notes.get("runtime_version")).maybe("engine", notes.get("engine")).maybe("tool", notes.get("tool"));
    let votes: Vec<String> = VOTES.iter().filter_map(|key| Some(format!("{key}={}", notes.get(*key)?))).collect();
    row.set("votes", votes.join(";"));
    let short = |key: &str| notes.get(key).map(|text| text.chars().take(500).collect::<String>());
    row.maybe("effective_options", short("effective_options")).maybe("graphs", short(note::GRAPHS));
    let number = |key: &str| notes.get(key).and_then(|n| n.parse::<f64>().ok()).filter(|n| *n >= 1.0);
    row.number("compiled_context", number(note::CONTEXT));
    // A user's own binaries have no description that tells their AR: the scenario does (rule R7).
    if let Some(chunk) = number(note::CHUNK) {
        padded(row, planned, chunk);
    }
}

fn padded(row: &mut Row, planned: &PlannedCell, chunk: f64) {
    let prompt = f64::from(planned.cell.workload.prompt_tokens());
    row.number("chunk", Some(chunk)).number("padded_prompt_tokens", Some((prompt / chunk).ceil() * chunk));
}

fn checks(row: &mut Row, all: &[&Record]) {
    let checks: Vec<_> = all.iter().filter_map(|r| r.checks.as_ref()).collect();
    row.maybe("check_count", worst(checks.iter().map(|c| c.count)));
    row.maybe("check_tokens", worst(checks.iter().map(|c| c.tokens)));
    row.maybe("check_unit", worst(checks.iter().map(|c| c.unit)));
    row.maybe("check_bos", worst(checks.iter().filter_map(|c| c.bos)));
    row.number("token_agreement", checks.iter().filter_map(|c| c.token_agreement).reduce(f64::min));
    row.maybe("unit_found", checks.iter().find_map(|c| c.unit_found.as_ref()));
}

/// The metrics of loading.
const LOADS: [&str; 2] = ["load_ms", "load_cold_ms"];

/// Picks one figure of a query.
type Pick = fn(&QueryMetrics) -> Option<f64>;

fn pick(metric: &str) -> Option<Pick> {
    Some(match metric {
        "ttft_ms" => |m| m.ttft_ms,
        "prefill_tok_s" => |m| m.prefill_tok_s,
        "decode_tok_s" => |m| m.decode_tok_s,
        "tpot_ms" => |m| m.tpot_ms,
        "itl_p50_ms" => |m| m.itl_ms.map(|q| q[0]),
        "itl_p90_ms" => |m| m.itl_ms.map(|q| q[1]),
        "itl_p99_ms" => |m| m.itl_ms.map(|q| q[2]),
        "e2e_ms" => |m| m.e2e_ms,
        _ => return None,
    })
}

fn metrics(row: &mut Row, good: &[&Record], planned: &PlannedCell, plan: &Plan, (measured, power): (&Measured, &RunPower)) {
    let workload = planned.cell.workload;
    let figures: Vec<QueryMetrics> =
        good.iter().map(|r| launch_figures(&r.parsed, workload, warmup(&plan.measure, r.pass, &r.parsed).discarded)).collect();
    let composed = figures.iter().any(|f| f.composed.is_some());
    // The first launch after staging pays page cache and graph set-up: its load is kept apart (design 2b.8). Every segment begins
    // with one, maybe after a reboot.
    let of = |r: &Record| measured.get(&(r.cell.clone(), r.pass, r.launch));
    let load = |r: &Record| of(r).and_then(|m| m.load_ms.or(m.load_cold_ms));
    let mut segments = BTreeSet::new();
    let later: Vec<&Record> = good.iter().copied().filter(|r| !segments.insert(r.segment)).collect();
    row.number("first_launch_load_ms", good.first().and_then(|r| load(r)));
    let mut absent = Vec::new();
    let mut small = false;
    for metric in METRICS {
        let values: Vec<f64> = match pick(metric.name) {
            Some(pick) => figures.iter().filter_map(pick).collect(),
            // Memory and CPU time of a process that holds one graph, and runs it many times over, are not those of a model.
            None if composed => Vec::new(),
            None => {
                let records = if LOADS.contains(&metric.name) { &later } else { good };
                records.iter().filter_map(|r| of(r).and_then(|m| m.get(metric.name)).or_else(|| power.of(r)?.get(metric.name))).collect()
            }
        };
        if let ("energy_j_per_prompt_tok" | "energy_j_per_tok", true) = (metric.name, values.is_empty() && !composed) {
            match power.regression(plan, &planned.cell) {
                Ok(both) => {
                    let Regressed { joules, interval, n } = both[usize::from(metric.name == "energy_j_per_tok")];
                    row.estimate(metric.name, joules, interval, n);
                    row.set("energy_phase_method", "regression");
                }
                Err(why) => {
                    let own = good.iter().find_map(|r| power.of(r)?.why(metric.name)).unwrap_or("not observed");
                    absent.push(format!("{}={own}; {why}", metric.name).replace(';', ","));
                }
            }
            continue;
        }
        let Some(summary) = Summary::of(&values) else {
            let is_load = LOADS.contains(&metric.name) && !composed;
            let only_first = is_load && later.is_empty() && good.iter().any(|r| load(r).is_some());
            let other_state = is_load && later.iter().any(|r| load(r).is_some());
            let memory = || good.iter().filter_map(|r| of(r)).flat_map(|m| &m.memory.absent).find(|(name, _)| *name == metric.name);
            let told = memory().map(|(_, why)| why.as_str()).or_else(|| good.iter().find_map(|r| power.of(r)?.why(metric.name)));
            let why = match told.filter(|_| !composed) {
                _ if only_first => "only the first launch after staging".to_owned(),
                _ if other_state && metric.name == "load_ms" => "every load was a cold one: see load_cold_ms".to_owned(),
                _ if other_state => "no load was a cold one (`load = \"cold\"` of [measure] asks for it)".to_owned(),
                Some(why) => why.to_owned(),
                None => why_absent(metric.name, &figures),
            };
            absent.push(format!("{}={why}", metric.name));
            continue;
        };
        small |= summary.n_small && metric.per_query;
        row.summary(metric.name, &summary);
        if metric.name == "decode_tok_s" {
            let stability = stats::stability(&values);
            row.set("stability", stability.word()).set("stability_reason", stability.reason());
        }
    }
    if !composed {
        let states: BTreeSet<LoadState> =
            later.iter().filter_map(|r| of(r)).filter(|m| m.load_ms.is_some()).map(|m| m.load_state).collect();
        row.maybe("load_state", if states.len() > 1 { Some("mixed") } else { states.first().map(|state| state.as_str()) });
        let methods: BTreeSet<&str> = good.iter().filter_map(|r| of(r)?.memory.method.as_deref()).collect();
        row.maybe("peak_mem_method", if methods.len() > 1 { Some("mixed") } else { methods.first().copied() });
    }
    drift(row, &figures);
    row.maybe("n_small", small.then_some(1)).set("absent", absent.join(";"));
    for (column, pick) in [
        ("reported_ttft_ms", (|m: &QueryMetrics| m.reported_ttft_ms) as Pick),
        ("reported_prefill_tok_s", |m| m.reported_prefill_tok_s),
        ("reported_decode_tok_s", |m| m.reported_decode_tok_s),
        ("tokens_per_step", |m| m.tokens_per_step),
    ] {
        let values: Vec<f64> = figures.iter().filter_map(pick).collect();
        row.number(column, stats::median(&values));
    }
    let fresh = good.iter().filter(|r| r.shared.as_ref().is_none_or(|shared| shared.place == 0));
    let firsts: Vec<f64> =
        fresh.filter_map(|r| query_metrics(&r.parsed, r.parsed.queries.iter().find(|q| q.query == 0)?).ttft_ms).collect();
    row.number("first_query_ttft_ms", stats::median(&firsts));
}

/// What the launches, in the order in which they were made, tell of a device that gets slower or faster.
fn drift(row: &mut Row, figures: &[QueryMetrics]) {
    let series = |pick: Pick| stats::drift(&figures.iter().filter_map(pick).collect::<Vec<_>>());
    let found = [("decode_tok_s", series(|m| m.decode_tok_s)), ("ttft_ms", series(|m| m.ttft_ms))];
    let known: Vec<_> = found.into_iter().filter_map(|(metric, drift)| Some((metric, drift?))).collect();
    let Some((_, first)) = known.first() else { return };
    let marked: Vec<&str> = known.iter().filter(|(_, drift)| drift.is_marked()).map(|(metric, _)| *metric).collect();
    row.number("drift_pct", Some(100.0 * first.change));
    row.set("drift", if marked.is_empty() { "none".to_owned() } else { marked.join(";") });
}

/// How power was measured.
fn power_told(row: &mut Row, good: &[&Record], power: &RunPower) {
    let all: Vec<_> = good.iter().filter_map(|r| power.of(r)).collect();
    for (column, pick) in [
        ("power_method", (|p| p.method.as_deref()) as fn(&LaunchPower) -> Option<&str>),
        ("power_unit_inferred", |p| p.unit.as_deref()),
        ("charge_state", |p| p.charge_state.as_deref()),
        ("baseline_state", |p| p.baseline_state.map(BaselineState::as_str)),
        ("battery_pct_method", |p| p.percent_method),
    ] {
        let words: BTreeSet<&str> = all.iter().filter_map(|p| pick(p)).collect();
        row.maybe(column, if words.len() > 1 { Some("mixed") } else { words.first().copied() });
    }
    for (column, pick) in [("power_update_hz", (|p| p.update_hz) as fn(&LaunchPower) -> Option<f64>), ("baseline_w", |p| p.baseline_w)] {
        row.number(column, stats::median(&all.iter().filter_map(|p| pick(p)).collect::<Vec<_>>()));
    }
    if all.iter().any(|p| p.j_per_tok.is_some() || p.j_per_prompt_tok.is_some()) {
        row.set("energy_phase_method", "loop");
    }
}

fn why_absent(metric: &str, figures: &[QueryMetrics]) -> String {
    if figures.is_empty() {
        return "no launch that counts".to_owned();
    }
    if pick(metric).is_none() && figures.iter().any(|f| f.composed.is_some()) {
        return "each graph ran in a process of its own, none of which holds the model (launches.csv has them)".to_owned();
    }
    let reasons = figures.iter().flat_map(|f| &f.absent);
    reasons.filter(|(m, _)| *m == metric).map(|(_, why)| why.to_string()).next().unwrap_or_else(|| "not observed".to_owned())
}
