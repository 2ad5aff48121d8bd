//! Run folders made up for tests of comparisons, gate and history: the values of each launch go in, the tables that `bench run` would have
//! written come out, with its column names but without its code. Figures of these folders are invented.
//!
//! Unit tests of the crate take it too: `#[cfg(test)] #[path = "../../tests/support/runs.rs"] mod runs;`.

#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

/// Metrics of queries, in samples.csv; all others are those of launches, in launches.csv.
const OF_QUERIES: [&str; 8] = ["ttft_ms", "prefill_tok_s", "decode_tok_s", "tpot_ms", "itl_p50_ms", "itl_p90_ms", "itl_p99_ms", "e2e_ms"];

/// A plan that requires nothing.
const PLAN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/results/example-pc/plan.toml"));

/// One row of a table by column.
pub type Row = BTreeMap<String, String>;

/// One cell: what its rows say, and one value a launch for each metric.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Columns of cells.csv beside those of the metrics; `device`, `cell`, `backend`, ... have defaults.
    pub fields: Row,
    /// Values by metric in the order of the launches; launch i runs in block i. The first `load_ms` stands in launches.csv alone.
    pub metrics: BTreeMap<&'static str, Vec<f64>>,
}
impl Cell {
    /// A good cell of a phone: its id begins with the backend, `mnn.tiny.w4.p32.g16-0a1b2c3d`.
    pub fn new(id: &str) -> Self {
        let mut fields = Row::new();
        let mut words = id.split('.');
        let mut next = || words.next().unwrap_or_default().to_owned();
        for (name, value) in [("backend", next()), ("model", next()), ("quant", next())] {
            fields.insert(name.to_owned(), value);
        }
        let cell = Self { fields, metrics: BTreeMap::new() };
        cell.with("cell", id)
            .with("device", "phone-1")
            .with("device_class", "phone")
            .with("status", "ok")
            .with("launches_failed", "0")
            .with("prompt_tokens", "32")
            .with("gen_tokens", "16")
            .with("unit_requested", "npu")
    }

    /// Sets a column.
    #[must_use]
    pub fn with(mut self, column: &str, value: &str) -> Self {
        self.fields.insert(column.to_owned(), value.to_owned());
        self
    }

    /// Sets the values of a metric.
    #[must_use]
    pub fn values(mut self, metric: &'static str, values: &[f64]) -> Self {
        self.metrics.insert(metric, values.to_vec());
        self
    }

    fn launches(&self) -> usize {
        self.metrics.values().map(Vec::len).max().unwrap_or(0)
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Name of the folder.
    pub id: String,
    /// `manifest.json`; change what a test is about.
    pub manifest: Value,
    /// Its cells.
    pub cells: Vec<Cell>,
    /// Its plan.
    pub plan: String,
}
impl Run {
    /// A run of the scenario `nightly` at 02:00 UTC of a day of 2026, counted from 1 January = 0.
    pub fn night(day: u32) -> Self {
        let (month, of_month) = date(day);
        let id = format!("2026{month:02}{of_month:02}T020000Z-nightly-{day:06x}");
        let manifest = json!({
            "format_version": 1, "run": id, "tool": {"version": "0.1.0"},
            "scenario": {"name": "nightly", "sha256": "aa".repeat(32)},
            "started_utc": format!("2026-{month:02}-{of_month:02}T02:00:00.000Z"),
            "finished_utc": format!("2026-{month:02}-{of_month:02}T02:40:00.000Z"),
            "device": {"name": "phone-1", "class": "phone", "os": "android", "arch": "aarch64", "cpu": "SM8650", "cores": 8, "memory_mb": 16000,
                "kernel": "6.1.57", "soc_model": 57, "htp_arch": 75},
            "runtimes": {"mnn": {"ready": {"version": "MNN 3.6.1"}}, "genie": {"ready": {"version": "QAIRT 2.51"}}},
            "cells": {}, "python_lock": "", "programs": {}, "environment": {}, "host": {}, "seed": 1, "segments": [], "warnings": []
        });
        Self { id, manifest, cells: Vec::new(), plan: PLAN.to_owned() }
    }

    /// Plans the cells that it has, so that a selection knows them: each is the example's first one with its names.
    #[must_use]
    pub fn planned(mut self) -> Self {
        let mut plan: toml::Table = PLAN.parse().expect("a plan");
        let mut pattern = plan["cells"][0].clone();
        pattern.as_table_mut().expect("a cell").remove("launch_group");
        let planned = |cell: &Cell| {
            let mut own = pattern.clone();
            let field = |name: &str| cell.fields.get(name).cloned().unwrap_or_default();
            own["id"] = field("cell").into();
            own["cell"]["backend"] = field("backend").into();
            own["cell"]["model"]["name"] = field("model").into();
            if ["w4", "w4a16", "w8a16", "fp16"].contains(&field("quant").as_str()) {
                own["cell"]["quant"] = field("quant").into();
            }
            for name in ["prompt_tokens", "gen_tokens"] {
                own["cell"]["workload"]["generate"][name] = field(name).parse::<i64>().unwrap_or(16).into();
            }
            own
        };
        let cells: Vec<toml::Value> = self.cells.iter().map(planned).collect();
        plan.insert("cells".to_owned(), cells.into());
        self.plan = plan.to_string();
        self
    }

    /// Adds a cell.
    #[must_use]
    pub fn cell(mut self, cell: Cell) -> Self {
        self.cells.push(cell);
        self
    }

    /// Says another version of a runtime, in the manifest and in the cells that are there.
    #[must_use]
    pub fn runtime(mut self, backend: &str, version: &str) -> Self {
        self.manifest["runtimes"][backend] = json!({"ready": {"version": version}});
        for cell in self.cells.iter_mut().filter(|cell| cell.fields["backend"] == backend) {
            cell.fields.insert("runtime_version".to_owned(), version.to_owned());
        }
        self
    }

    /// Writes `out/<id>/` with manifest, tables and its plan.
    pub fn write(&self, out: &Path) -> PathBuf {
        let folder = out.join(&self.id);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("manifest.json"), serde_json::to_string_pretty(&self.manifest).expect("JSON")).expect("a file");
        fs::write(folder.join("plan.toml"), &self.plan).expect("a file");
        let (mut cells, mut samples, mut launches) = (Vec::new(), Vec::new(), Vec::new());
        for cell in &self.cells {
            cells.push(self.cell_row(cell));
            for launch in 0..cell.launches() {
                let number = launch.to_string();
                launches.push(self.row(cell, launch, &[("block", &number)], |metric| !OF_QUERIES.contains(&metric)));
                let mut own = vec![("query", "1"), ("query_kind", "warm_query")];
                own.extend(
                    ["device_class", "backend", "model", "quant"]
                        .into_iter()
                        .filter_map(|name| Some((name, cell.fields.get(name)?.as_str()))),
                );
                let sample = self.row(cell, launch, &own, |metric| OF_QUERIES.contains(&metric));
                samples.push(sample);
            }
        }
        for (name, rows) in [("cells.csv", cells), ("samples.csv", samples), ("launches.csv", launches)] {
            fs::write(folder.join(name), csv(&rows)).expect("a file");
        }
        folder
    }

    fn cell_row(&self, cell: &Cell) -> Row {
        let mut row = cell.fields.clone();
        row.extend([("format_version".to_owned(), "1".to_owned()), ("run".to_owned(), self.id.clone())]);
        row.insert("launches".to_owned(), cell.launches().to_string());
        for (metric, values) in &cell.metrics {
            let values = if *metric == "load_ms" { values.get(1..).unwrap_or_default() } else { values };
            if values.is_empty() {
                continue;
            }
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let deviations = values.iter().map(|value| (value - median(values)).abs()).collect::<Vec<_>>();
            for (end, value) in [
                ("", median(values)),
                ("_lo", sorted[0]),
                ("_hi", sorted[sorted.len() - 1]),
                ("_coverage", 1.0 - 0.5_f64.powf(sorted.len() as f64 - 1.0)),
                ("_mad", median(&deviations)),
                ("_n", values.len() as f64),
                ("_centre", centre(values)),
            ] {
                row.insert(format!("{metric}{end}"), value.to_string());
            }
        }
        row
    }

    fn row(&self, cell: &Cell, launch: usize, own: &[(&str, &str)], has: impl Fn(&str) -> bool) -> Row {
        let number = launch.to_string();
        let mut row: Row =
            ["device", "cell", "status"].into_iter().filter_map(|name| Some((name.to_owned(), cell.fields.get(name)?.clone()))).collect();
        let keys = [("format_version", "1"), ("run", self.id.as_str()), ("pass", "measure"), ("segment", "0"), ("launch", &number)];
        for (name, value) in keys.iter().chain(own) {
            row.insert((*name).to_owned(), (*value).to_owned());
        }
        for (metric, values) in cell.metrics.iter().filter(|(metric, _)| has(metric)) {
            row.extend(values.get(launch).map(|value| ((*metric).to_owned(), value.to_string())));
        }
        row
    }
}

/// A table: the columns of all its rows, in the order of their names.
pub fn csv(rows: &[Row]) -> String {
    let mut names: Vec<&String> = rows.iter().flat_map(Row::keys).collect();
    names.sort();
    names.dedup();
    let quoted = |text: &str| if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() };
    // A table without rows has its header all the same.
    let empty = ["device", "cell", "pass", "status", "query_kind", "launch"].map(str::to_owned);
    if rows.is_empty() {
        names.extend(&empty);
    }
    let mut text = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        let values = names.iter().map(|name| row.get(*name).map_or_else(String::new, |value| quoted(value)));
        writeln!(text, "{}", values.collect::<Vec<_>>().join(",")).expect("memory");
    }
    text
}

/// Values scattered lognormally around a level: `spread` is the standard deviation of their logs. The same seed gives the same values.
pub fn noisy(level: f64, spread: f64, n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    // About normal: the sum of twelve uniform numbers.
    let mut normal = || {
        let mut sum = -6.0;
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (state >> 40) as f64 / f64::from(1_u32 << 24);
        }
        sum
    };
    (0..n).map(|_| level * (spread * normal()).exp()).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// Hodges and Lehmann's: the median of all pairs' means (a value with itself too), here of logs.
fn centre(values: &[f64]) -> f64 {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mut means = Vec::new();
    for (i, a) in logs.iter().enumerate() {
        means.extend(logs[i..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    median(&means).exp()
}

/// Month and day of a day of a year of 365 days.
fn date(mut day: u32) -> (u32, u32) {
    for (month, days) in [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate() {
        if day < days {
            return (month as u32 + 1, day + 1);
        }
        day -= days;
    }
    panic!("a day past the year")
}
