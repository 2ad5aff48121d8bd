//! The tables of what a device did beside giving tokens: memory by phase, power, the NPU, its state. A table that no cell fills is left out.

use super::details::{field, merged, name};
use super::figures::{DASH, whole};
use super::groups::Group;
use super::view::Grid;
use crate::report::load::Cell;

/// A column of `cells.csv` and its heading; metrics come with their intervals.
type Columns<'a> = &'a [(&'a str, &'a str)];

const MEMORY: Columns = &[
    ("mem_load_mb", "after load"),
    ("mem_prefill_mb", "after prefill"),
    ("mem_end_mb", "at the end"),
    ("peak_mem_mb", "peak"),
    ("peak_mem_method", "what is in it"),
    ("dmabuf_mb", "dma-buf"),
    ("mapped_file_mb", "mapped files, apart"),
    ("pss_end_mb", "PSS at the end"),
    ("swap_mb", "swap"),
    ("gpu_mem_mb", "GPU driver"),
    ("mem_available_min_mb", "least free on the device"),
    ("mem_growth_mb_per_h", "growth, MB per hour"),
];

const POWER: Columns = &[
    ("power_avg_w", "mean, W"),
    ("power_peak_w", "peak, W"),
    ("prefill_power_w", "prefill, W"),
    ("decode_power_w", "decode, W"),
    ("energy_gross_j", "gross, J"),
    ("energy_net_j", "net, J"),
    ("baseline_w", "idle, W"),
    ("baseline_state", "model while idle"),
    ("energy_j_per_prompt_tok", "net J per prompt token"),
    ("energy_j_per_tok", "net J per generated token"),
    ("energy_phase_method", "how told apart"),
    ("tokens_per_battery_pct", "tokens per 1 % of battery"),
    ("battery_hours", "hours, projected"),
    ("power_method", "method"),
    ("power_update_hz", "updates per second"),
    ("charge_state", "battery"),
];

const NPU: Columns = &[
    ("npu_duty_pct", "duty, % (derived)"),
    ("npu_duty_method", "from"),
    ("npu_util_pct", "utilisation, %"),
    ("hvx_util_pct", "HVX, %"),
    ("hmx_util_pct", "HMX, %"),
    ("npu_util_method", "by"),
    ("rpc_share", "FastRPC's share"),
    ("vtcm_acquire_us", "VTCM wait, µs"),
    ("yields", "yields"),
    ("hvx_threads", "HVX threads"),
    ("contended", "contended"),
];

const STATE: Columns = &[
    ("unsettled", "launches begun in another state than [settle] asks for"),
    ("ambient_c", "ambient, °C"),
    ("supply", "supply"),
    ("case", "case"),
];

/// The tables that have something to show. Of power that was asked for, and that no cell has, the reasons are shown.
pub fn tables(group: &Group, cells: &[&Cell], power_asked: bool) -> Vec<Grid> {
    let table = |title, columns, needed| table(group, cells, title, columns, needed);
    let power = table(POWER_TITLE, POWER, "power_avg_w").or_else(|| power_asked.then(|| powerless(group, cells)));
    let all = [
        table("Memory by phase, MB (10⁶ bytes)", MEMORY, "mem_load_mb"),
        power,
        table("The NPU: what the runtime's profile and the device's counters say", NPU, ""),
        table("State of the device", STATE, ""),
    ];
    all.into_iter().flatten().collect()
}

const POWER_TITLE: &str = "Power and energy of the whole device, never of the NPU alone";

/// Why there is no power: the scenario asked for it, and a page that is silent looks as if nobody had.
fn powerless(group: &Group, cells: &[&Cell]) -> Grid {
    let why = |cell: &Cell| cell.absent.get("power_avg_w").map_or("the table gives no reason", String::as_str).to_owned();
    let rows = cells.iter().map(|cell| (name(group, cell), vec![why(cell)])).collect();
    let columns = ["Cell", "no figure of power, because"].map(str::to_owned).to_vec();
    Grid { title: POWER_TITLE.to_owned(), columns, rows: merged(rows), text: true, open: true }
}

fn has(cell: &Cell, column: &str) -> bool {
    cell.metrics.contains_key(column) || cell.text(column).is_some()
}

fn table(group: &Group, cells: &[&Cell], title: &str, columns: Columns, needed: &str) -> Option<Grid> {
    let used: Vec<&(&str, &str)> = columns.iter().filter(|(column, _)| cells.iter().any(|cell| has(cell, column))).collect();
    if used.is_empty() || (!needed.is_empty() && !used.iter().any(|(column, _)| *column == needed)) {
        return None;
    }
    let value = |cell: &Cell, column: &str| match cell.metrics.get(column) {
        Some(estimate) => whole(estimate),
        None if has(cell, column) => field(cell, column),
        None => DASH.to_owned(),
    };
    let rows = cells.iter().map(|cell| (name(group, cell), used.iter().map(|(column, _)| value(cell, column)).collect())).collect();
    let names = std::iter::once("Cell").chain(used.iter().map(|(_, word)| *word)).map(str::to_owned);
    Some(Grid { title: title.to_owned(), columns: names.collect(), rows: merged(rows), text: true, open: false })
}
