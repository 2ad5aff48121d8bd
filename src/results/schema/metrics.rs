//! The metrics: what `cells.csv` summarises of queries and launches.

/// A metric: its name, and what it means.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Column name, with the unit.
    pub name: &'static str,
    /// Definition.
    pub meaning: &'static str,
    /// Measured once a query (`samples.csv`) or once a launch (`launches.csv`).
    pub per_query: bool,
    /// A higher value is better.
    pub higher_is_better: bool,
}
const fn m(name: &'static str, per_query: bool, higher_is_better: bool, meaning: &'static str) -> Metric {
    Metric { name, meaning, per_query, higher_is_better }
}

/// Columns of a metric in `cells.csv`, after its name: median, ends of its interval and what that covers, spread, the location
/// that comparisons use ([`crate::stats::centre`]), launches.
pub const METRIC_ENDS: [&str; 7] = ["", "_lo", "_hi", "_coverage", "_mad", "_centre", "_n"];

/// Every metric that `cells.csv` summarises, in the columns of [`METRIC_ENDS`].
pub const METRICS: &[Metric] = &[
    m("ttft_ms", true, false, "time to first token: from submission to the arrival of the first token"),
    m(
        "prefill_tok_s",
        true,
        true,
        "prompt tokens per second of prefill, where prefill can be told apart (here: the runner's own loop, in which the first token follows the prefill directly)",
    ),
    m("decode_tok_s", true, true, "(N-1) / (time of last token - time of first token)"),
    m("tpot_ms", true, false, "time per output token: (last - first) / (N-1)"),
    m("itl_p50_ms", true, false, "median gap between tokens; only with one event a token"),
    m("itl_p90_ms", true, false, "90 % quantile of the gaps within a query (type 7)"),
    m("itl_p99_ms", true, false, "99 % quantile of the gaps within a query (type 7)"),
    m("e2e_ms", true, false, "from submission to the last token"),
    m(
        "load_ms",
        false,
        false,
        "from the begin to the end of loading, as the runner saw it, with the model's files in the page cache, wholly or in part, or without anybody knowing (load_state); the first launch of each segment is not in it, since it pays for power-up and set-up of graphs: see first_launch_load_ms",
    ),
    m(
        "load_cold_ms",
        false,
        false,
        "the same with under 2 % of the model's files in the page cache (rule R8): a cold page cache. A cold NPU, in the first session after a boot or a restart of its subsystem, is another condition: see boot_session in launches.csv",
    ),
    m(
        "peak_mem_mb",
        false,
        false,
        "highest sum of distinct dma-bufs, anonymous and shared memory of the process tree at one moment, in 10^6 bytes; without the pages of mapped files, which are mapped_file_mb, and without swap; a lower bound, sampled every 20 ms while the program loads (without events: for 2 s) and at the sampling rate from then on; dma-bufs are read once a second. What is in the sum: peak_mem_method",
    ),
    m("vm_hwm_mb", false, false, "the kernel's own high-water mark of the largest process (VmHWM), in 10^6 bytes"),
    m("cpu_s", false, false, "user and system CPU seconds of the whole process tree, loading and the discarded query included"),
    m("mem_load_mb", false, false, "memory when the program says that it has loaded, counted as in peak_mem_mb, in 10^6 bytes"),
    m("mem_prefill_mb", false, false, "the same at the first sample after the first token of a measured query, before its last one"),
    m("mem_end_mb", false, false, "the same at the last sample before the last token of the last query"),
    m(
        "pss_load_mb",
        false,
        false,
        "PSS of the process tree when the program says that it has loaded, mapped files included, in 10^6 bytes",
    ),
    m("pss_end_mb", false, false, "the same at the program's event end"),
    m(
        "dmabuf_mb",
        false,
        false,
        "most bytes of distinct dma-bufs that the process tree held open, in 10^6 bytes: weights, KV cache and I/O of the NPU, which no RSS shows",
    ),
    m(
        "mapped_file_mb",
        false,
        false,
        "most resident pages of mapped files (RssFile), in 10^6 bytes: a mapped model and libraries; clean ones can be dropped at any time, hence not in the peak",
    ),
    m("swap_mb", false, false, "most swap of the process tree (VmSwap; on a phone compressed in memory), in 10^6 bytes; not in the peak"),
    m(
        "gpu_mem_mb",
        false,
        false,
        "most memory that the GPU's driver (kgsl) held for the process tree, in 10^6 bytes; the part that surely stands nowhere else is in the peak",
    ),
    m("mem_available_min_mb", false, true, "least MemAvailable of the device during the launch, in 10^6 bytes"),
    m(
        "mem_growth_mb_per_h",
        false,
        false,
        "slope of that memory from the first measured query to the last token, in 10^6 bytes per hour; only over 60 s or more. In launches.csv with a 95 % interval of its own (least squares, autocorrelation taken into account: Santer et al. 2000); a leak is one whose interval is above 0",
    ),
    m(
        "power_avg_w",
        false,
        false,
        "mean power of the whole device (never the NPU alone) from the begin of the first measured query to the end of the last",
    ),
    m(
        "power_peak_w",
        false,
        false,
        "highest distinct sample of that power; a gauge's samples are means or values of its update period (power_update_hz)",
    ),
    m(
        "prefill_power_w",
        false,
        false,
        "mean power within the prefills that last three updates of the gauge or more, without the first of them",
    ),
    m("decode_power_w", false, false, "the same within the decodes"),
    m(
        "energy_gross_j",
        false,
        false,
        "joules of that window by trapezoids over the distinct samples; of a battery only while it discharges, and for max(120 s, 20 updates) or more (rule R15)",
    ),
    m(
        "energy_net_j",
        false,
        false,
        "energy_gross_j less baseline_w over the same time; absent where the baseline's spread is over 20 % of it. baseline_state says whether the device idled with the model in memory",
    ),
    m(
        "energy_j_per_prompt_tok",
        false,
        false,
        "net joules of a prompt token, from launches of which prefill is 95 % or more (energy_phase_method loop), else by regression over the cells that differ in lengths only (regression: _lo and _hi are its 95 % interval, _n its launches); never from a window that mixes phases",
    ),
    m("energy_j_per_tok", false, false, "net joules of a generated token, likewise"),
    m(
        "tokens_per_battery_pct",
        false,
        true,
        "generated tokens for one percent of the battery's charge, gross, in this mix of prompt and generated tokens; battery_pct_method says what a percent is",
    ),
    m("battery_hours", false, true, "projected hours from full to empty at power_avg_w; a projection, not a measurement"),
];
