//! The columns of every table, as data: the writers, the spec in `results/README.md` and its test all come from here.

mod launches;
mod layers;
mod metrics;
mod phases;
mod soak;

pub use launches::LAUNCHES;
pub use layers::{FALLBACKS, LAYERS, PLACEMENT, SUPPORT};
pub use metrics::{METRIC_ENDS, METRICS, Metric};
pub use phases::PHASES;
pub use soak::{SOAK, SOAK_EVENTS, TELEMETRY_WINDOWS};

/// Version of the run folder's formats, in every file from the first day.
pub const FORMAT_VERSION: u32 = 1;

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// Whole number.
    Int,
    /// Decimal number.
    Float,
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name, with the unit in it.
    pub name: &'static str,
    /// Type.
    pub ty: Type,
    /// May be empty.
    pub nullable: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// One table of a run folder.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// File name.
    pub file: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// The columns in order.
    pub columns: &'static [Column],
}

const fn c(name: &'static str, ty: Type, nullable: bool, meaning: &'static str) -> Column {
    Column { name, ty, nullable, meaning }
}
use Type::{Float, Int, Text};

/// `samples.csv`.
pub const SAMPLES: Table = Table {
    file: "samples.csv",
    row: "one query of one launch, raw; the first query of a launch is kept apart as `first_query`; a launch of a tool without queries is one composed row",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, false, "phone, board, pc or emulator: classes never mix"),
        c("cell", Text, false, "id of the cell"),
        c("backend", Text, false, "id of the backend"),
        c("model", Text, false, "model name of the scenario"),
        c("quant", Text, false, "class of the quantisation"),
        c("pass", Text, false, "measure, profile or soak; only measure feeds metrics"),
        c("launch", Int, false, "number of the launch within the cell and pass, from 0"),
        c("query", Int, false, "number of the query within the launch, from 0"),
        c(
            "query_kind",
            Text,
            false,
            "first_query (one of those that the launch discards, see discarded_queries in launches.csv), discarded_query (the same where the process had answered another cell's queries before) or warm_query; a composed row is a warm_query: its graphs are loaded, and the first of its executions is in their average",
        ),
        c("segment", Int, false, "0, plus one for every --resume"),
        c("status", Text, false, "ok, failed or unverified, as the launch"),
        c(
            "aggregate_n",
            Int,
            true,
            "executions behind the row where a tool gives an average only (of each graph, in a composed row): no interval is made from inside it; empty = one",
        ),
        c("prompt_tokens", Int, true, "tokens prefilled, BOS included, as submitted"),
        c("generated_tokens", Int, true, "tokens that arrived; empty where the tool gives no time for each token"),
        c("ttft_ms", Float, true, "see cells.csv"),
        c("prefill_tok_s", Float, true, "see cells.csv"),
        c("decode_tok_s", Float, true, "see cells.csv"),
        c("tpot_ms", Float, true, "see cells.csv"),
        c("itl_p50_ms", Float, true, "see cells.csv"),
        c("itl_p90_ms", Float, true, "see cells.csv"),
        c("itl_p99_ms", Float, true, "see cells.csv"),
        c("e2e_ms", Float, true, "see cells.csv"),
        c("ttft_scope", Text, false, "ids (token ids in) or text (tokenisation inside); never compared across"),
        c("ttft_method", Text, true, "of ttft_ms: token_event, runtime_reported, derived, or composed (see cells.csv)"),
        c("prefill_method", Text, true, "of prefill_tok_s: composed or runtime_reported (see cells.csv); empty = measured"),
        c("decode_method", Text, true, "of decode_tok_s and tpot_ms: composed or runtime_reported (see cells.csv); empty = measured"),
        c("reported_prompt_tokens", Int, true, "the runtime's own count"),
        c("reported_generated_tokens", Int, true, "the runtime's own count"),
        c("reported_ttft_ms", Float, true, "the runtime's own figure"),
        c("reported_prefill_tok_s", Float, true, "computed from the runtime's own count and duration"),
        c("reported_decode_tok_s", Float, true, "computed from the runtime's own count and duration: (n-1)/time for Genie"),
        c("tokens_per_step", Float, true, "tokens that one step of the model gave, as the runtime counts them: see decoding in cells.csv"),
        c("finish", Text, true, "length, eos, error or context"),
        c("absent", Text, true, "metric=reason;... for every empty metric"),
    ],
};

/// `tokens.csv`.
pub const TOKENS: Table = Table {
    file: "tokens.csv",
    row: "one generated token",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("cell", Text, false, "id of the cell"),
        c("pass", Text, false, "measure, profile or soak"),
        c("launch", Int, false, "number of the launch"),
        c("query", Int, false, "number of the query"),
        c("i", Int, false, "number of the token, 0 is the first"),
        c("id", Int, true, "token id, when the runtime gives it"),
        c("t_ms", Float, false, "since the agent's spawn of the launch"),
        c("itl_ms", Float, true, "since the token before; empty for the first"),
    ],
};

/// `telemetry.csv`.
pub const TELEMETRY: Table = Table {
    file: "telemetry.csv",
    row: "one sampled value, long format",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("t_ms", Float, false, "since the agent's spawn of the launch"),
        c("device", Text, false, "name of the device"),
        c("cell", Text, false, "id of the cell"),
        c("pass", Text, false, "measure, profile or soak"),
        c("launch", Int, false, "number of the launch"),
        c("source", Text, false, "source of the agent"),
        c("name", Text, false, "name within the source"),
        c("value", Float, false, "value"),
        c("unit", Text, false, "unit"),
    ],
};

/// The fixed columns of `cells.csv`; the columns of [`METRICS`] follow.
pub const CELLS: Table = Table {
    file: "cells.csv",
    row: "one cell: status, medians with intervals, what was asked and what was found",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, false, "phone, board, pc or emulator: classes never mix"),
        c("cell", Text, false, "id: <backend>.<model>.<quant>.p<prompt>.g<generated>[.<axis>=<value>]-<hash>"),
        c("backend", Text, false, "id of the backend"),
        c("model", Text, false, "model name of the scenario"),
        c("quant", Text, false, "class of the quantisation"),
        c("prompt_tokens", Int, false, "asked"),
        c("gen_tokens", Int, false, "asked"),
        c("status", Text, false, "ok, failed, skipped or unverified"),
        c("failure_kind", Text, true, "usage, infra, device, runtime, model, thermal or verify"),
        c("reason", Text, true, "why it is not ok"),
        c(
            "cells_a_launch",
            Int,
            true,
            "cells that shared a launch with this one, itself included, the most of its launches; 1: it had its own, as in older runs, where this is empty. Figures of a whole process are then absent as `shared launch`: load and memory are of the launches in which the cell's queries came first, CPU time and power of none. Launches of a cell are independent of each other; those of cells that shared them are not",
        ),
        c("launches", Int, false, "launches that count"),
        c(
            "launches_failed",
            Int,
            false,
            "launches that failed or were contradicted, and shared launches that failed as a whole before this cell was launched alone (launches.csv: broke)",
        ),
        c(
            "stop",
            Text,
            true,
            "what ended the repetitions: until-ci, max, max-time, budget (counted anew in every segment), failed, partner (the other side of an A/B run failed), interrupted",
        ),
        c(
            "n_small",
            Int,
            true,
            "1 when fewer than 10 launches stand behind the interval of a metric of queries (order statistics instead of bootstrap)",
        ),
        c(
            "drift_pct",
            Float,
            true,
            "change of the decode rate (without one, of the TTFT) from the first launch to the last, in the order in which they were made: Theil and Sen's line through the logarithms; empty under 5 launches",
        ),
        c(
            "drift",
            Text,
            true,
            "none, or which of decode_tok_s and ttft_ms drift, joined by `;`: p of Mann and Kendall at most 0.01 and a change of 1 % or more. A drifting cell has no one speed: its median is that of the middle of the run",
        ),
        c(
            "stability",
            Text,
            true,
            "stable, unstable or unknown: whether the launches' decode rates hold still, by their spread and by their order",
        ),
        c(
            "stability_reason",
            Text,
            true,
            "why: spread over 5 % (standard deviation over mean); a drift or a step (throttling) that is no chance (p <= 0.01) and over 1 % and 2 %; launches that repeat the one before",
        ),
        c("unit_requested", Text, false, "cpu, gpu, npu or hybrid"),
        c("unit_found", Text, true, "the unit that worked, as far as there is evidence"),
        // Placement (placement.rs).
        c(
            "ops_npu",
            Int,
            true,
            "operations on the NPU in the profile pass, over all phases; empty without a profile that says where they ran",
        ),
        c("ops_gpu", Int, true, "the same of the GPU"),
        c("ops_cpu", Int, true, "the same of the CPU"),
        c("ops_folded", Int, true, "operations of the profile that the compiler made part of others (0 cycles)"),
        c(
            "asked_unit_share",
            Float,
            true,
            "share of the profile's time or cycles that is on the unit asked for, 0 to 1, the lowest of the phases: see placement.csv",
        ),
        c("placement_method", Text, true, "the profile behind them: method of layers.csv"),
        c(
            "placement_alarm",
            Text,
            true,
            "operations ran on another unit than asked, which makes the cell unverified: the first of them (fallbacks.csv has all)",
        ),
        c("context", Text, true, "axis as asked, fixed:<value> or n/a; the artifact's context length when not an axis"),
        c("kv", Text, true, "axis: precision of the KV cache"),
        c("batch", Text, true, "axis"),
        c("threads", Text, true, "axis"),
        c("perf_profile", Text, true, "axis"),
        c("variant", Text, true, "axis"),
        c("check_count", Text, true, "worst of the launches"),
        c("check_tokens", Text, true, "worst of the launches"),
        c("check_unit", Text, true, "worst of the launches"),
        c("check_bos", Text, true, "worst of the launches: see launches.csv"),
        c(
            "check_prefix",
            Text,
            true,
            "every prompt was prefilled whole (rule R3): contradicted when one query has its first token under 0.7 of the TTFT of the launch's first warm query, and under 0.7 of what that takes in the middle launch, in over three quarters of at least 3 launches; not-checkable where fewer launches show such a query, or with one warm query a launch",
        ),
        c("token_agreement", Float, true, "lowest of the launches"),
        c("ttft_scope", Text, true, "ids or text"),
        c(
            "ttft_method",
            Text,
            true,
            "of ttft_ms: token_event, runtime_reported, derived, or composed: ceil(prompt / AR) x the time of all prefill graphs of a tool without a token loop; a bound that no engine reaches, since sampling, KV update and the switch of graphs are not in it, and never ranked beside measured figures (rule R11)",
        ),
        c(
            "prefill_method",
            Text,
            true,
            "of prefill_tok_s: composed = prompt tokens over that time; runtime_reported = the runtime's own figure; empty = measured",
        ),
        c(
            "decode_method",
            Text,
            true,
            "of decode_tok_s and tpot_ms: composed = one step takes the sum over all decode graphs; runtime_reported = the runtime's own count and duration; empty = measured",
        ),
        c(
            "template",
            Text,
            false,
            "what a prompt is (rule R4): raw (text, or token ids), chat (the same inside the model's own chat template, whose tokens count), or n/a (a tool without prompts, or with its own)",
        ),
        c(
            "sampling",
            Text,
            true,
            "how the next token is chosen: greedy, or the sampler in effect, as the runner or the configuration in the work folder says; not-checkable where the tool does not say. Empty without a token loop",
        ),
        c(
            "decoding",
            Text,
            true,
            "plain, or speculative:<kind> (rule R5), where tokens are guessed ahead: then there is no latency between tokens; not-checkable where neither the tool nor its configuration says. Empty without a token loop",
        ),
        c(
            "tokens_per_step",
            Float,
            true,
            "median: tokens that one step of the model gave, as the runtime counts them; empty where it does not",
        ),
        c("engine", Text, true, "graph, genie or llm (MNN): ONNX Runtime can run a model through Genie (rule R14)"),
        c("tool", Text, true, "the program that ran on a device that is another machine, where a backend has several"),
        c(
            "votes",
            Text,
            true,
            "what was asked of processors and runtime and changes times, as key=value;... (rule R10): perf_profile, rpc_control_latency_us, rpc_polling_time_us, shared_buffer, backend_type, threads, precision, executions",
        ),
        c(
            "effective_options",
            Text,
            true,
            "the options that took effect, as our runner passed them on or read them back from the runtime (rules R10, R14); the first 500 characters. Empty: the tool does not say what became of what was asked",
        ),
        c("runtime_version", Text, true, "as the runtime itself says"),
        c("artifact", Text, true, "cache key of a made artifact, or hash of the user's files"),
        c(
            "runtime_mb",
            Float,
            true,
            "libraries and programs put into the work folder, in 10^6 bytes; empty where they run from where they are installed",
        ),
        c("model_mb", Float, true, "weights, graphs and configurations put into the work folder, in 10^6 bytes"),
        c("tokenizer_mb", Float, true, "the tokenizer's file, in 10^6 bytes"),
        c("chunk", Int, true, "AR of the prefill graph; empty where prefill is one dynamic pass"),
        c("padded_prompt_tokens", Int, true, "prompt rounded up to whole chunks"),
        c("graphs", Text, true, "names of the graphs that ran, as runner or artifact say; the first 500 characters"),
        c(
            "compiled_context",
            Int,
            true,
            "tokens that static graphs attend over, whatever the depth (rule R7), as the artifact or its configuration says; empty where attention grows with the depth, or nobody tells",
        ),
        c(
            "kv_depth",
            Int,
            false,
            "tokens that the last decode step of a query attends over: the prompt and all generated ones but the last, which is never fed",
        ),
        c(
            "quant_native",
            Text,
            true,
            "the name that its own world has for the quantisation (rule R29), as the artifact's files tell it, else as `quant-native` of the scenario does: Q4_K_M, HQQ int4 block 64, MatMulNBits int4 block 32",
        ),
        c(
            "quant_native_from",
            Text,
            true,
            "who says so: files (of the artifact) or scenario (its `quant-native`, which nothing checks); empty without a name, and in runs of an older bench",
        ),
        c("weight_bits", Float, true, "as the artifact says; of a file of several types that of most weights, embedding and LM head apart"),
        c("act_bits", Float, true, "as the artifact says"),
        c("kv_bits", Float, true, "as the artifact says"),
        c("group", Int, true, "weights that share a scale, as the artifact says"),
        c("lm_head_bits", Float, true, "as the artifact says"),
        c("embedding_bits", Float, true, "as the artifact says"),
        c("bits_per_weight", Float, true, "measured: weight bytes x 8 over weights"),
        c("reported_ttft_ms", Float, true, "median of the runtime's own figure"),
        c("reported_prefill_tok_s", Float, true, "median, from the runtime's own counts and durations"),
        c("reported_decode_tok_s", Float, true, "median, from the runtime's own counts and durations"),
        c("first_query_ttft_ms", Float, true, "median TTFT of the first query after a load; another metric than ttft_ms"),
        c("first_launch_load_ms", Float, true, "load of the first launch that counts, which pays for staging and page cache, kept apart"),
        // The NPU (npu.rs).
        c("npu_duty_pct", Float, true, "median of the launches: see launches.csv; where only the profile pass has a profile, of that"),
        c("npu_duty_method", Text, true, "derived:<profile>, as in launches.csv, with `, profile pass` where it is of that"),
        c("npu_util_pct", Float, true, "median of the launches: see launches.csv"),
        c("hvx_util_pct", Float, true, "the same of its vector units"),
        c("hmx_util_pct", Float, true, "the same of its matrix units"),
        c("npu_util_method", Text, true, "which counters, as the agent's source says"),
        c("rpc_share", Float, true, "median of the launches: see launches.csv"),
        c("vtcm_acquire_us", Float, true, "median of the launches: see launches.csv"),
        c("yields", Float, true, "median of the launches: see launches.csv"),
        c("hvx_threads", Float, true, "HVX threads that the graphs used, the most of them"),
        c("contended", Text, true, "what was seen in any launch: see launches.csv"),
        c(
            "peak_mem_method",
            Text,
            true,
            "what is summed in peak_mem_mb: dmabuf+anon+shmem; anon+shmem where dma-bufs could not be read, as absent says; either with +kgsl; rss (mapped files included) from agents before 2026-12 and kernels that don't split RSS; mixed where launches differ",
        ),
        // Power.
        c(
            "power_method",
            Text,
            true,
            "battery (current x voltage of the whole device), hwmon:<chip> (rails of a board) or meter (external); `mixed` where launches differ",
        ),
        c("power_update_hz", Float, true, "median updates a second of what was read"),
        c(
            "power_unit_inferred",
            Text,
            true,
            "units of the battery's raw numbers and how they are known: by size, or by size and charge counter",
        ),
        c("baseline_w", Float, true, "median of the launches': what the idle device draws"),
        c("baseline_state", Text, true, "resident (the cell's own model in memory) or no-model; `mixed` where launches differ"),
        c("charge_state", Text, true, "the battery's states while measured; `mixed` where launches differ"),
        c("energy_phase_method", Text, true, "of energy_j_per_prompt_tok and energy_j_per_tok: loop or regression"),
        c(
            "battery_pct_method",
            Text,
            true,
            "what one percent of the battery is: charge_counter / capacity (charge left over percents left, at the window's voltage)",
        ),
        c(
            "load_state",
            Text,
            true,
            "of load_ms: warm; unknown, where nobody could look into the page cache; mixed, where some launches are the one and some the other. Cold ones are load_cold_ms",
        ),
        c("launch_context", Text, true, "shell or app"),
        c(
            "not_warmed_up",
            Int,
            true,
            "launches that count and were still warming up after the most queries that may be discarded (`warmed_up` 0 in launches.csv); empty with a fixed number",
        ),
        c(
            "unsettled",
            Int,
            true,
            "launches that count and whose block began in another state than [settle] asks for; empty without [settle]",
        ),
        c("ambient_c", Float, true, "temperature of the air in degrees Celsius, as [environment] says; empty = unstated"),
        c("supply", Text, true, "where the current came from, as [environment] says; empty = unstated"),
        c("case", Text, true, "what the device was in, as [environment] says; empty = unstated"),
        // The roof (roof.rs).
        c(
            "decode_mb_per_tok",
            Float,
            true,
            "derived: what a decode step moves at least, in 10^6 bytes: weights without their scales, one row of the embedding, KV cache at the mean depth (src/analysis/roof); empty where the roof does not apply",
        ),
        c("decode_gb_s", Float, true, "derived: that times decode_tok_s, in 10^9 bytes a second; a lower bound of the bandwidth in use"),
        c(
            "traced_gb_s",
            Float,
            true,
            "measured: reads and writes of the DRAM that a trace of the decode graph counted, over its own time (*_qnn_htp_analysis_summary.json among the artifact's files); roof_note names it",
        ),
        c("peak_gb_s", Float, true, "peak bandwidth of the memory in 10^9 bytes a second; roof_note says by what"),
        c("roof_tok_s", Float, true, "derived: peak_gb_s over the bytes of a step, which no engine can exceed"),
        c(
            "roof_share",
            Float,
            true,
            "median decode rate of the launches over roof_tok_s; over 1 the cell is unverified, since something is wrong",
        ),
        c(
            "roof_note",
            Text,
            true,
            "error: ..., warning: ... (under 0.15, or over 0.85) with likely causes, where the roof comes from, what is assumed; or not applicable: reason (rule R25: phones and boards, batch 1, dense, not speculative, weights over 8 x last cache and VTCM)",
        ),
        c("absent", Text, true, "metric=reason;... for every empty metric"),
        c("soak_ended", Text, true, "complete, early: why, failed: why (nothing of it counts), or not run: why; empty without [soak]"),
        c("soak_s", Float, true, "from the first measured query of the soak to its last token"),
        c("soak_windows", Int, true, "rows in soak.csv"),
        c(
            "soak_check_tokens",
            Text,
            true,
            "its answers: contradicted when they or those of any window are, else confirmed or not-checkable against the reference; a contradicted soak has no speeds here",
        ),
        c(
            "soak_tok_s",
            Float,
            true,
            "median throughput of the windows of the first soak_span_s, prefill and gaps between queries included",
        ),
        c("soak_span_s", Float, true, "length of the stretches at start and end that are compared: 60 s, or a third of a soak under 3 min"),
        c("sustained_ratio", Float, true, "median throughput of the last soak_span_s over that of the first"),
        c("time_to_throttle_s", Float, true, "start of the first of two windows in a row under 0.9 of soak_tok_s; exact to a window"),
        c("steady_state_s", Float, true, "from when on every window stays within 5 % of the median of them all"),
        c("throttled_fraction", Float, true, "share of the soak in which a cooling device worked or a CPU cluster was capped"),
        c("first_throttle", Text, true, "the first cooling device whose state rose, or the first cap that fell, and when"),
        c("peak_npu_c", Float, true, "highest temperature of any zone of the NPU in the soak"),
        c("peak_cpu_c", Float, true, "of the CPU"),
        c("peak_gpu_c", Float, true, "of the GPU"),
        c("peak_ddr_c", Float, true, "of the memory"),
        c("peak_skin_c", Float, true, "of case and glass"),
        c("peak_battery_c", Float, true, "of the battery"),
        c("rise_domain", Text, true, "the part of the device whose rise is told: the cell's own, or else the case"),
        c("rise_c_per_min_60s", Float, true, "temperature after 60 s less that at the first query (the discarded one), per minute"),
        c("rise_c_per_min_60s_lo", Float, true, "95 % interval by the noise and resolution of both readings"),
        c("rise_c_per_min_60s_hi", Float, true, "95 % interval"),
        c("rise_c_per_min_5min", Float, true, "the same over 5 min, per minute"),
        c("rise_c_per_min_5min_lo", Float, true, "95 % interval"),
        c("rise_c_per_min_5min_hi", Float, true, "95 % interval"),
        c(
            "latency_temp_rho",
            Float,
            true,
            "Spearman's rank correlation of the windows' itl_p50_ms and the mean temperature of rise_domain",
        ),
        c("latency_temp_ms_per_c", Float, true, "least-squares slope of the same"),
        c("soak_minute_1_tok_s", Float, true, "median throughput of the windows of the first minute"),
        c("soak_minute_30_tok_s", Float, true, "of the thirtieth minute; empty when it was not reached"),
        c("soak_minute_1_rank", Int, true, "place among the cells of this class that differ in the backend alone, by that throughput"),
        c("soak_minute_30_rank", Int, true, "the same in the thirtieth minute"),
        c("soak_absent", Text, true, "figure=reason;... for every empty one of the soak"),
    ],
};

/// All tables, in the order of the spec.
pub const TABLES: &[Table] =
    &[CELLS, SAMPLES, LAUNCHES, TOKENS, LAYERS, PLACEMENT, FALLBACKS, SUPPORT, PHASES, TELEMETRY, SOAK, SOAK_EVENTS, TELEMETRY_WINDOWS];
