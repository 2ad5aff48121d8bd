//! One metric of a run's `cells.csv`, streamed: a hundred megabytes of tables pass through here for each question.
//!
//! Not by polars, which reads these tables elsewhere: unoptimised, as README's build has it, it takes ten times as long as the csv crate
//! with optimisation, which costs no build time (tests/bench/README.md). Nor is a Parquet file beside each table worth its upkeep at that speed.

use std::{path::Path, str};

use crate::results::{
    read::visible,
    schema::{CELLS, FORMAT_VERSION, Metric},
};

use super::scan::regular;

/// What a cell gives one night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// A figure.
    Value {
        /// In the metric's unit: the location of the launches, or where `median` says so their median.
        at: f64,
        /// Their median absolute deviation.
        mad: Option<f64>,
        /// Launches behind it.
        n: u32,
        /// The table has no `_centre`.
        median: bool,
    },
    /// None, and why.
    None(Gap),
}

/// Why a cell has no figure in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gap {
    /// It is ok, but this metric is not measured there.
    Absent,
    /// It was skipped.
    Skipped,
    /// It failed for reasons that lie outside of it: connection, disk, device.
    Infra,
    /// It failed.
    Failed,
    /// A check contradicts it.
    Unverified,
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// Device.
    pub device: String,
    /// Class of the device.
    pub class: String,
    /// Id of the cell.
    pub cell: String,
    /// How the metric was had, where there are several ways: figures of different methods are never compared. Empty = measured plainly.
    pub method: String,
    /// Its figure.
    pub figure: Figure,
}

/// The rows of a run's table and what is odd about it.
#[derive(Debug, Default)]
pub struct Found {
    /// Rows.
    pub rows: Vec<Row>,
    /// Numbers that are none.
    pub unreadable: usize,
    /// The table has no column for the metric.
    pub without_metric: bool,
}

/// The columns that say how a metric was had.
fn method_columns(metric: &str) -> &'static [&'static str] {
    match metric {
        "ttft_ms" | "e2e_ms" => &["ttft_scope", "ttft_method"],
        "prefill_tok_s" => &["prefill_method"],
        "decode_tok_s" | "tpot_ms" => &["decode_method"],
        "peak_mem_mb" | "mem_load_mb" | "mem_prefill_mb" | "mem_end_mb" | "mem_growth_mb_per_h" => &["peak_mem_method"],
        "power_avg_w" | "power_peak_w" | "prefill_power_w" | "decode_power_w" | "energy_gross_j" | "battery_hours" => &["power_method"],
        "energy_net_j" => &["power_method", "baseline_state"],
        "energy_j_per_prompt_tok" | "energy_j_per_tok" => &["power_method", "energy_phase_method"],
        "tokens_per_battery_pct" => &["power_method", "battery_pct_method"],
        _ => &[],
    }
}

/// Reads the table of a run folder. The error says what is wrong with it.
pub fn read(folder: &Path, metric: &Metric) -> Result<Found, String> {
    let bytes = regular(&folder.join(CELLS.file)).map_err(|e| format!("{} can't be read: {e}", CELLS.file))?;
    if bytes.last() != Some(&b'\n') {
        return Err(format!("{} is cut off: `bench report` makes it anew if the journal is there", CELLS.file));
    }
    let wrong = |e: csv::Error| format!("{} can't be read as a table: {e}", CELLS.file);
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let header = reader.byte_headers().map_err(wrong)?.clone();
    let place = |name: &str| header.iter().position(|column| column == name.as_bytes());
    let needed = |name: &str| place(name).ok_or_else(|| format!("{} has no column `{name}`", CELLS.file));
    let (cell, status) = (needed("cell")?, needed("status")?);
    let [version, device, class, kind] = ["format_version", "device", "device_class", "failure_kind"].map(place);
    let [centre, median, mad, n] = ["_centre", "", "_mad", "_n"].map(|end| place(&format!("{}{end}", metric.name)));
    let methods: Vec<usize> = method_columns(metric.name).iter().filter_map(|name| place(name)).collect();

    let mut found = Found { without_metric: median.is_none(), ..Found::default() };
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(wrong)? {
        let raw = |column: Option<usize>| column.and_then(|column| record.get(column)).unwrap_or_default();
        let text = |column: Option<usize>| visible(&String::from_utf8_lossy(raw(column)));
        if let Some(newer) = number(raw(version)).filter(|version| *version > f64::from(FORMAT_VERSION)) {
            return Err(format!("{}: format {newer} is newer than this bench knows ({FORMAT_VERSION}): update bench", CELLS.file));
        }
        let mut figure = |column: Option<usize>| {
            let value = number(raw(column));
            found.unreadable += usize::from(value.is_none() && !raw(column).is_empty());
            value
        };
        let (location, fallback, mad, n) = (figure(centre), figure(median), figure(mad), figure(n));
        // A location of logs needs values above 0, and so do ratios.
        let at = location.or(fallback).filter(|at| *at > 0.0);
        let figure = match (raw(Some(status)), raw(kind), at) {
            (b"ok", _, Some(at)) => Figure::Value { at, mad, n: n.map_or(0, |n| n as u32), median: location.is_none() },
            (b"ok", ..) => Figure::None(Gap::Absent),
            (b"skipped", ..) => Figure::None(Gap::Skipped),
            (b"unverified", ..) => Figure::None(Gap::Unverified),
            (_, b"infra" | b"device" | b"thermal", _) => Figure::None(Gap::Infra),
            _ => Figure::None(Gap::Failed),
        };
        let method = methods.iter().map(|column| text(Some(*column))).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
        found.rows.push(Row { device: text(device), class: text(class), cell: text(Some(cell)), method, figure });
    }
    Ok(found)
}

fn number(text: &[u8]) -> Option<f64> {
    str::from_utf8(text).ok()?.trim().parse().ok().filter(|value: &f64| value.is_finite())
}
