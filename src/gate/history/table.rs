//! Metrics of a run's `cells.csv`, streamed: a hundred megabytes of tables pass through here for each question.
//!
//! Not by polars, which reads these tables elsewhere: unoptimised, as README's build has it, it takes ten times as long as the csv crate
//! with optimisation, which costs no build time (tests/bench/README.md). Nor is a Parquet file beside each table worth its upkeep at that speed.

use std::{collections::BTreeSet, path::Path, str};

use crate::results::{
    folder::id_of,
    read::{remedy, visible},
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

/// A metric of a row.
#[derive(Debug)]
pub struct Had {
    /// How it was had, where there are several ways: figures of different methods are never compared. Empty = measured plainly.
    pub method: String,
    /// Its figure.
    pub figure: Figure,
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
    /// Its model.
    pub model: String,
    /// Its backend.
    pub backend: String,
    /// The metrics, as they were asked for.
    pub metrics: Vec<Had>,
}

/// The rows of a run's table and what is odd about it.
#[derive(Debug, Default)]
pub struct Found {
    /// Rows.
    pub rows: Vec<Row>,
    /// Numbers that are none.
    pub unreadable: usize,
    /// Metrics, by their places, for which the table has no column.
    pub without: BTreeSet<usize>,
    /// Its last line is half a line, which is not in it.
    pub cut: bool,
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

/// How a metric was had, where there are several ways, by what its cell's columns say. Empty = measured, or the only way.
pub fn method<'a>(metric: &Metric, column: impl FnMut(&'static str) -> &'a str) -> String {
    let words: Vec<&str> = method_columns(metric.name).iter().copied().map(column).filter(|word| !word.is_empty()).collect();
    words.join(", ")
}

/// Reads metrics from the table of a run folder. The error says what is wrong with it.
pub fn read(folder: &Path, metrics: &[&Metric]) -> Result<Found, String> {
    let of_metric = |metric: &&Metric| {
        let methods = method_columns(metric.name).iter().map(|name| (*name).to_owned());
        ["_centre", "", "_mad", "_n"].map(|end| format!("{}{end}", metric.name)).into_iter().chain(methods).collect::<Vec<_>>()
    };
    let columns: Vec<Vec<String>> = metrics.iter().map(of_metric).collect();
    let mut names = vec!["cell", "status", "format_version", "device", "device_class", "failure_kind", "model", "backend"];
    names.extend(columns.iter().flatten().map(String::as_str));
    let mut found = Found::default();
    found.cut = each(&folder.join(CELLS.file), &names, |values| {
        let &[cell, status, version, device, class, kind, model, backend, ref rest @ ..] = values else { return Ok(()) };
        let (Some(cell), Some(status)) = (cell, status) else { return Err("it has no columns `cell` and `status`".to_owned()) };
        if let Some(newer) = version.and_then(number).filter(|version| *version > f64::from(FORMAT_VERSION)) {
            return Err(format!("its format {newer} is newer than this bench knows ({FORMAT_VERSION}): update bench"));
        }
        let gap = match (status, kind) {
            (b"ok", _) => Gap::Absent,
            (b"skipped", _) => Gap::Skipped,
            (b"unverified", _) => Gap::Unverified,
            (_, Some(b"infra" | b"device" | b"thermal")) => Gap::Infra,
            _ => Gap::Failed,
        };
        let mut rest = rest.iter().copied();
        let mut metrics = Vec::with_capacity(columns.len());
        for (place, columns) in columns.iter().enumerate() {
            let mut next = || rest.next().flatten();
            let (centre, median, mad, n) = (next(), next(), next(), next());
            let method: Vec<String> = columns[4..].iter().map(|_| text(next())).filter(|word| !word.is_empty()).collect();
            if median.is_none() {
                found.without.insert(place);
            }
            let mut number = |text: Option<&[u8]>| {
                let value = text.and_then(number);
                found.unreadable += usize::from(value.is_none() && text.is_some_and(|text| !text.is_empty()));
                value
            };
            let (centre, median, mad, n) = (number(centre), number(median), number(mad), number(n));
            // A location of logs needs values above 0, and so do ratios.
            let figure = match centre.or(median).filter(|at| *at > 0.0 && gap == Gap::Absent) {
                Some(at) => Figure::Value { at, mad, n: n.map_or(0, |n| n as u32), median: centre.is_none() },
                None => Figure::None(gap),
            };
            metrics.push(Had { method: method.join(", "), figure });
        }
        found.rows.push(Row {
            device: text(device),
            class: text(class),
            cell: text(Some(cell)),
            model: text(model),
            backend: text(backend),
            metrics,
        });
        Ok(())
    })?;
    Ok(found)
}

/// Gives the values of the named columns, row by row; a column that the table lacks is `None`. Says whether the file ends within a line: as in
/// [`read`](crate::results::read::read) that one is not given, since its last number may be half a number.
pub(super) fn each(path: &Path, names: &[&str], mut row: impl FnMut(&[Option<&[u8]>]) -> Result<(), String>) -> Result<bool, String> {
    let file = id_of(path);
    let bytes = regular(path).map_err(|e| format!("{file} can't be read: {e}"))?;
    if !bytes.contains(&b'\n') {
        return Err(format!("{file} is cut off in its first line; {}", remedy(path)));
    }
    let cut = bytes.last() != Some(&b'\n');
    let wrong = |e: csv::Error| format!("{file} can't be read as a table: {e}; {}", remedy(path));
    // Flexible, for half a line has too few values.
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes.as_slice());
    let header = reader.byte_headers().map_err(wrong)?.clone();
    let places: Vec<Option<usize>> = names.iter().map(|name| header.iter().position(|column| column == name.as_bytes())).collect();
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(wrong)? {
        if cut && reader.position().byte() == bytes.len() as u64 {
            break;
        }
        if record.len() != header.len() {
            let line = record.position().map_or(0, csv::Position::line);
            let (found, columns) = (record.len(), header.len());
            return Err(format!("{file} can't be read as a table: line {line} has {found} values for {columns} columns; {}", remedy(path)));
        }
        let values: Vec<Option<&[u8]>> = places.iter().map(|place| place.and_then(|place| record.get(place))).collect();
        row(&values).map_err(|why| format!("{file} can't be used: {why}"))?;
    }
    Ok(cut)
}

/// A value as it may be shown.
pub(super) fn text(value: Option<&[u8]>) -> String {
    visible(&String::from_utf8_lossy(value.unwrap_or_default()))
}

fn number(text: &[u8]) -> Option<f64> {
    str::from_utf8(text).ok()?.trim().parse().ok().filter(|value: &f64| value.is_finite())
}
