//! The tables of a soak.

use super::{
    Table,
    Type::{Float, Int, Text},
    c,
};

/// `soak.csv`.
pub const SOAK: Table = Table {
    file: "soak.csv",
    row: "one window of the soak of one cell; single queries and tokens of a soak are in events.jsonl of its logs alone",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, false, "phone, board, pc or emulator: classes never mix"),
        c("cell", Text, false, "id of the cell"),
        c("backend", Text, false, "id of the backend"),
        c("launch", Int, false, "number of the launch, always 0"),
        c("window", Int, false, "number of the window, from 0"),
        c("t_s", Float, false, "its start, since the first measured query was submitted"),
        c("length_s", Float, false, "its length; a last one of less than half a window is left out"),
        c("queries", Int, false, "queries that ended in it"),
        c("tokens", Int, false, "tokens that came out in it"),
        c("tok_s", Float, false, "tokens over its length: prefill and the time between queries included"),
        c("decode_tok_s", Float, true, "gaps between tokens of a query over their sum"),
        c("ttft_p50_ms", Float, true, "median of the queries whose first token came in it"),
        c("ttft_p90_ms", Float, true, "90 % quantile of the same"),
        c("itl_p50_ms", Float, true, "median gap between tokens; empty where several came in one event (rule R5)"),
        c("itl_p90_ms", Float, true, "90 % quantile of the gaps"),
        c("itl_p99_ms", Float, true, "99 % quantile of the gaps"),
        c("itl_max_ms", Float, true, "largest gap"),
        c("npu_c", Float, true, "mean temperature of the NPU's hottest zone over the window"),
        c("npu_max_c", Float, true, "highest temperature of any zone of the NPU in it"),
        c("cpu_c", Float, true, "the same of the CPU"),
        c("cpu_max_c", Float, true, "the same of the CPU"),
        c("gpu_c", Float, true, "the same of the GPU"),
        c("gpu_max_c", Float, true, "the same of the GPU"),
        c("ddr_c", Float, true, "the same of the memory"),
        c("ddr_max_c", Float, true, "the same of the memory"),
        c("skin_c", Float, true, "the same of case and glass"),
        c("skin_max_c", Float, true, "the same of case and glass"),
        c("battery_c", Float, true, "the same of the battery"),
        c("battery_max_c", Float, true, "the same of the battery"),
        c("cpu_mhz", Float, true, "mean clock of the fastest CPU cluster"),
        c("cpu_cap_pct", Float, true, "lowest cap of any CPU cluster (scaling_max_freq) over its maximum"),
        c("gpu_mhz", Float, true, "mean clock of the GPU"),
        c("ddr_mhz", Float, true, "mean clock of the memory"),
        c("npu_mhz", Float, true, "mean clock of the compute DSP"),
        c("cooling_state", Float, true, "highest state of any cooling device"),
        c("throttled_fraction", Float, true, "share of the window in which a cooling device worked or a cluster was capped"),
        c(
            "watts",
            Float,
            true,
            "mean power of the whole device (never the NPU alone), each reading for as long as it stands, by its battery or its rails; empty where an external meter is asked for",
        ),
        c(
            "check_tokens",
            Text,
            false,
            "confirmed, contradicted or not-checkable: the answers that ended in it against the reference and the first answer to the same prompt",
        ),
        c("answers_wrong", Int, false, "answers under the agreement with the reference that is asked for"),
        c("answers_changed", Int, false, "answers that differ from the first one to the same prompt"),
    ],
};

/// `soak_events.csv`.
pub const SOAK_EVENTS: Table = Table {
    file: "soak_events.csv",
    row: "something that happened in a soak",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, false, "phone, board, pc or emulator"),
        c("cell", Text, false, "id of the cell"),
        c("backend", Text, false, "id of the backend"),
        c("launch", Int, false, "number of the launch, always 0"),
        c("t_s", Float, false, "since the first measured query was submitted; negative before it"),
        c(
            "kind",
            Text,
            false,
            "throttle (the first), wrong-tokens and changed-tokens (the first each), slow-token (the 20 longest gaps over 5 medians of their query), end (before its time)",
        ),
        c("temp_c", Float, true, "temperature of the cell's own part of the device at that time"),
        c("what", Text, false, "in words, with what changed around it"),
    ],
};

/// `telemetry_windows.csv`.
pub const TELEMETRY_WINDOWS: Table = Table {
    file: "telemetry_windows.csv",
    row: "the smallest, largest and mean value of one name in one window of a soak, of all samples; telemetry.csv has changes of a soak alone, once a second at most",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("t_ms", Float, false, "start of the window, since the agent's spawn of the launch"),
        c("device", Text, false, "name of the device"),
        c("cell", Text, false, "id of the cell"),
        c("pass", Text, false, "soak"),
        c("launch", Int, false, "number of the launch"),
        c("source", Text, false, "source of the agent"),
        c("name", Text, false, "name within the source"),
        c("min", Float, false, "smallest sample"),
        c("max", Float, false, "largest sample"),
        c("mean", Float, false, "mean of the samples"),
        c("n", Int, false, "samples"),
        c("unit", Text, false, "unit"),
    ],
};
