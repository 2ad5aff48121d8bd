//! The columns of every table, as data: the writers, the spec in `results/README.md` and its test all come from here.

mod metrics;
mod soak;

pub use metrics::{METRIC_ENDS, METRICS, Metric};
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
            "first_query (discarded from the metrics) or warm_query; a composed row is a warm_query: its graphs are loaded, and the first of its executions is in their average",
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
        c("finish", Text, true, "length, eos, error or context"),
        c("absent", Text, true, "metric=reason;... for every empty metric"),
    ],
};

/// `launches.csv`.
pub const LAUNCHES: Table = Table {
    file: "launches.csv",
    row: "one launch: one process that loads the model and answers queries",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("cell", Text, false, "id of the cell"),
        c("pass", Text, false, "measure, profile or soak"),
        c("launch", Int, false, "number within the cell and pass, from 0"),
        c("block", Int, false, "interleaved block in which it ran, from 0"),
        c("segment", Int, false, "0, plus one for every --resume"),
        c("status", Text, false, "ok, failed, unverified, or skipped: not made, because the device was not as [settle] asks"),
        c("failure_kind", Text, true, "usage, infra, device, runtime, model, thermal or verify"),
        c("reason", Text, true, "why it is not ok"),
        c("load_ms", Float, true, "see cells.csv"),
        c("load_state", Text, false, "cold, warm or unknown; unknown until the page cache is looked at"),
        c("peak_mem_mb", Float, true, "see cells.csv"),
        c("peak_mem_method", Text, true, "see cells.csv"),
        c("vm_hwm_mb", Float, true, "see cells.csv"),
        c("cpu_s", Float, true, "see cells.csv"),
        // The NPU (npu.rs).
        c(
            "npu_duty_pct",
            Float,
            true,
            "time on the accelerator over wall time on the host (`QNN (execute)`) of the same executions, by the runtime's own profile, in percent (rule R23); near 100 in any decode; never of an emulator",
        ),
        c("npu_duty_method", Text, true, "derived:<profile>: of npu_duty_pct, rpc_share, vtcm_acquire_us, yields and hvx_threads"),
        c(
            "npu_util_pct",
            Float,
            true,
            "mean utilisation of the NPU's scalar processor (Q6) over the measured queries, by counters, in percent",
        ),
        c("hvx_util_pct", Float, true, "the same of its vector units"),
        c("hmx_util_pct", Float, true, "the same of its matrix units"),
        c("npu_util_method", Text, true, "which counters, as the agent's source says"),
        c(
            "rpc_share",
            Float,
            true,
            "share of wall time that FastRPC adds: (`RPC (execute)` - `QNN accelerator (execute)`) / `QNN (execute)`, 0 to 1",
        ),
        c("vtcm_acquire_us", Float, true, "wait for the NPU's own memory, mean of an execution, us"),
        c("yields", Float, true, "how often graphs gave way to another user of the NPU"),
        c("hvx_threads", Float, true, "HVX threads that the graphs used, the most of them"),
        c(
            "contended",
            Text,
            true,
            "what tells that somebody else used the NPU (rule R9), joined by `;`: yields = there were some; vtcm = the wait for VTCM stands out above the median of the cell's launches (modified z-score over 3.5; of at least 5 launches). Empty: nothing was seen, or nothing is known",
        ),
        // Memory.
        c("mem_load_mb", Float, true, "see cells.csv"),
        c("mem_prefill_mb", Float, true, "see cells.csv"),
        c("mem_end_mb", Float, true, "see cells.csv"),
        c("pss_load_mb", Float, true, "see cells.csv"),
        c("pss_end_mb", Float, true, "see cells.csv"),
        c("dmabuf_mb", Float, true, "see cells.csv"),
        c("mapped_file_mb", Float, true, "see cells.csv"),
        c("swap_mb", Float, true, "see cells.csv"),
        c("gpu_mem_mb", Float, true, "see cells.csv"),
        c("mem_available_min_mb", Float, true, "see cells.csv"),
        c("mem_growth_mb_per_h", Float, true, "see cells.csv"),
        c("mem_growth_mb_per_h_lo", Float, true, "lower end of its 95 % interval within the launch"),
        c("mem_growth_mb_per_h_hi", Float, true, "upper end"),
        c(
            "lmkd_kills",
            Int,
            true,
            "kills by Android's low memory killer during the launch, of whatever process, as logcat tells; empty where there is no logcat",
        ),
        // Power.
        c("power_avg_w", Float, true, "see cells.csv"),
        c("power_peak_w", Float, true, "see cells.csv"),
        c("prefill_power_w", Float, true, "see cells.csv"),
        c("prefill_power_peak_w", Float, true, "highest distinct sample within those prefills"),
        c("decode_power_w", Float, true, "see cells.csv"),
        c("decode_power_peak_w", Float, true, "highest distinct sample within those decodes"),
        c("energy_gross_j", Float, true, "see cells.csv"),
        c(
            "energy_error_j",
            Float,
            true,
            "bound of what energy_gross_j may be off by for the gauge's period, delay and resolution; its own accuracy is not in it",
        ),
        c("energy_net_j", Float, true, "see cells.csv"),
        c("baseline_w", Float, true, "mean power of the idle time that energy_net_j is less of; baseline_state says which that is"),
        c(
            "baseline_state",
            Text,
            true,
            "resident: idle with the cell's own model in memory, in the first launch of the cell in the segment (the one that has idle_ms); no-model: before the segment's first launch, where the program can't idle or those readings carried no figure",
        ),
        c("energy_j_per_prompt_tok", Float, true, "see cells.csv; here from loops of prefill only"),
        c("energy_j_per_tok", Float, true, "see cells.csv; here from loops of decode only"),
        c("tokens_per_battery_pct", Float, true, "see cells.csv"),
        c("battery_hours", Float, true, "see cells.csv"),
        c("battery_pct_method", Text, true, "see cells.csv"),
        c("power_method", Text, true, "see cells.csv"),
        c("power_update_hz", Float, true, "updates a second of what was read; repeats are not samples"),
        c("power_unit_inferred", Text, true, "see cells.csv"),
        c(
            "meter_offset_s",
            Float,
            true,
            "clock of an external meter minus the device's in the middle of the window, by the pulses of load before the first launch and after the last",
        ),
        c(
            "meter_error_s",
            Float,
            true,
            "by how much that may be off; energy_error_j holds it. Without the pulses after the last launch it has 0.1 % of the time since the first ones",
        ),
        c(
            "meter_drift_ppm",
            Float,
            true,
            "how much the meter's clock runs fast, by the pulses after the last launch; empty where they were not given (an interrupted run, a cable pulled by hand) or not found in its samples",
        ),
        c("charge_state", Text, true, "the battery's states in the window, in order, joined by `>`"),
        c("adb_round_trips", Int, true, "requests made to the device over ADB, staging and fetching included; empty on this machine"),
        c("wall_ms", Float, true, "from spawn to reaping, as the agent saw it; empty without its evidence"),
        c(
            "idle_ms",
            Float,
            true,
            "of it the time that the runner did nothing between load and first query, for the idle baseline; empty where it did not",
        ),
        c("exit_code", Int, true, "exit status of the runner"),
        c("signal", Int, true, "signal that ended the runner"),
        c("check_count", Text, true, "confirmed, contradicted or not-checkable"),
        c("check_tokens", Text, true, "confirmed, contradicted or not-checkable"),
        c("check_unit", Text, true, "confirmed, contradicted or not-checkable"),
        c("token_agreement", Float, true, "tokens before the first divergence over tokens asked, lowest query"),
        c("unit_found", Text, true, "the unit that worked, as far as there is evidence"),
        c("suspended", Int, true, "1 when the machine slept during the launch"),
        c("runtime_version", Text, true, "as the runtime itself says"),
        c(
            "settle",
            Text,
            false,
            "before its block: ready (as [settle] asks), marked (not so, made all the same), skipped (not so, not made) or off (nothing asked)",
        ),
        c("settle_s", Float, true, "seconds waited before its block; the launches of a block share them"),
        c("settle_lacks", Text, true, "what was missing when that wait ended, joined by `;`"),
        c("start_skin_c", Float, true, "hottest skin zone in the launch's own first two seconds, in degrees Celsius"),
        c("start_npu_c", Float, true, "hottest NPU zone, likewise"),
        c("start_cpu_c", Float, true, "hottest CPU zone, likewise"),
        c("start_battery_c", Float, true, "battery, likewise"),
        c("start_battery_pct", Float, true, "charge of the battery at its start"),
        c("start_charging", Int, true, "1 when the battery was being charged, 0 when not; empty where the device does not tell"),
        c("start_screen", Text, true, "on or off, as seen before its block; only with [settle]"),
        c(
            "pins",
            Text,
            true,
            "what [pin] set on the device, joined by `;`: name=value was read back, name=value? can not be read back, name! was refused",
        ),
        c(
            "contended_by",
            Text,
            true,
            "who else used camera or compute DSP before its block, joined by `;` (rule R9); `nobody`, or empty where that can't be seen or was not looked at",
        ),
        c("warnings", Text, true, "what was odd, joined by `;`"),
        c("absent", Text, true, "metric=reason;... for every empty figure of memory and power"),
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

/// `layers.csv`.
pub const LAYERS: Table = Table {
    file: "layers.csv",
    row: "one operation of one graph, from the profile pass",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, false, "phone, board, pc or emulator"),
        c("cell", Text, false, "id of the cell"),
        c("backend", Text, false, "id of the backend"),
        c("graph", Text, true, "name of the graph"),
        c("phase", Text, true, "prefill or decode"),
        c("index", Int, false, "place in the profile"),
        c("name", Text, false, "name of the operation as printed"),
        c("op_type", Text, true, "its type, when printed"),
        c("unit", Text, true, "processor, when known"),
        c("value", Float, true, "time or cycles; empty when the tool says it does not know"),
        c("value_unit", Text, false, "us or cycles; cycles are never turned into time, those of the emulator least of all"),
        c("share", Float, true, "of the sum of its graph, 0 to 1"),
        c("count", Int, true, "executions behind the value"),
        c("method", Text, false, "where the value comes from"),
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
        c("launches", Int, false, "launches that count"),
        c("launches_failed", Int, false, "launches that failed or were contradicted"),
        c("stop", Text, true, "what ended the repetitions: until-ci, max, budget (counted anew in every segment), failed, interrupted"),
        c(
            "n_small",
            Int,
            true,
            "1 when fewer than 10 launches stand behind the interval of a metric of queries (order statistics instead of bootstrap)",
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
        c(
            "drift_pct",
            Float,
            true,
            "decode rate of the last launch above that of the first, in percent, by the line of Theil and Sen through all blocks; of at least 5 launches",
        ),
        c("unit_requested", Text, false, "cpu, gpu, npu or hybrid"),
        c("unit_found", Text, true, "the unit that worked, as far as there is evidence"),
        c("context", Text, true, "axis as asked, fixed:<value> or n/a; the artifact's context length when not an axis"),
        c("kv", Text, true, "axis: precision of the KV cache"),
        c("batch", Text, true, "axis"),
        c("threads", Text, true, "axis"),
        c("perf_profile", Text, true, "axis"),
        c("variant", Text, true, "axis"),
        c("check_count", Text, true, "worst of the launches"),
        c("check_tokens", Text, true, "worst of the launches"),
        c("check_unit", Text, true, "worst of the launches"),
        c(
            "check_prefix",
            Text,
            true,
            "every prompt was prefilled whole (rule R3): contradicted when one query has its first token under 0.7 of the TTFT of the launch's first warm query, and under 0.7 of what that takes in the middle launch, in over three quarters of at least 3 launches; not-checkable with fewer of them or with one warm query a launch",
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
        c("engine", Text, true, "graph or genie: ONNX Runtime can run a model through Genie (rule R14)"),
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
        c("weight_bits", Float, true, "as the artifact says"),
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
        c("launch_context", Text, true, "shell or app"),
        c(
            "unsettled",
            Int,
            true,
            "launches that count and whose block began in another state than [settle] asks for; empty without [settle]",
        ),
        c("ambient_c", Float, true, "temperature of the air in degrees Celsius, as [environment] says; empty = unstated"),
        c("supply", Text, true, "where the current came from, as [environment] says; empty = unstated"),
        c("case", Text, true, "what the device was in, as [environment] says; empty = unstated"),
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
pub const TABLES: &[Table] = &[CELLS, SAMPLES, LAUNCHES, TOKENS, LAYERS, TELEMETRY, SOAK, SOAK_EVENTS, TELEMETRY_WINDOWS];
