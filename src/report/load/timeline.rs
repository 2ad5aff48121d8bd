//! What a device did during one launch of each cell: telemetry, tokens and phases on one time axis.

use std::collections::BTreeMap;
use std::path::Path;

use bench_tables::Columns;
use polars::prelude::{col, lit};

use super::large::{by_cell, shown};
use super::run::keys;
use super::types::{CellKey, Phase, Series, Stretch, Timeline};
use crate::report::ReportError;
use crate::results::read::read;
use crate::results::schema::SAMPLES;

/// Times to first token in ms by cell and query.
type Prefills = BTreeMap<CellKey, BTreeMap<i64, f64>>;

/// The first measured launch of every cell. What is missing of samples and tokens is said where the figures are read.
pub fn timelines(dir: &Path, telemetry: Option<&Columns>, tokens: Option<&Columns>) -> Result<BTreeMap<CellKey, Timeline>, ReportError> {
    let mut found = telemetry.map(sampled).unwrap_or_default();
    if let Some(tokens) = tokens {
        arrived(tokens, &prefills(dir)?, &mut found);
    }
    Ok(found)
}

fn prefills(dir: &Path) -> Result<Prefills, ReportError> {
    let first = col("pass").eq(lit("measure")).and(col("launch").eq(lit("0")));
    let mut found = Prefills::new();
    if let Some(mut table) = read(dir, &SAMPLES, &["device", "cell", "query", "ttft_ms"], Some(first))? {
        let (keys, query, ttft) = (keys(&table), table.int("query"), table.float("ttft_ms"));
        for ((key, query), ttft) in keys.into_iter().zip(query).zip(ttft) {
            if let (Some(query), Some(ttft)) = (query, ttft) {
                found.entry(key).or_default().insert(query, ttft);
            }
        }
    }
    Ok(found)
}

fn sampled(table: &Columns) -> BTreeMap<CellKey, Timeline> {
    let (t, value) = (table.numbers("t_ms"), table.numbers("value"));
    let [sources, names, units] = ["source", "name", "unit"].map(|column| shown(table, column));
    let mut found: BTreeMap<CellKey, Timeline> = BTreeMap::new();
    for (key, rows) in by_cell(table) {
        let timeline = found.entry(key).or_default();
        for group in table.groups(&rows, &["source", "name"]) {
            let [source, name] = [&sources[group.codes[0] as usize], &names[group.codes[1] as usize]];
            let points: Vec<(f64, f64)> =
                group.rows.iter().filter_map(|row| t.at(*row).zip(value.at(*row))).map(|(t, value)| (t / 1000.0, value)).collect();
            if source.is_empty() || name.is_empty() || points.is_empty() {
                continue;
            }
            let unit = &units[table.words("unit").codes[group.rows[0] as usize] as usize];
            let series = timeline.series.entry((source.to_string(), name.to_string()));
            series.or_insert_with(|| Series { unit: unit.to_string(), points: Vec::new() }).points.extend(points);
        }
        for series in timeline.series.values_mut().filter(|series| !series.points.is_sorted_by(|a, b| a.0 <= b.0)) {
            series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    found
}

fn arrived(table: &Columns, prefills: &Prefills, into: &mut BTreeMap<CellKey, Timeline>) {
    let [launch, query, t] = ["launch", "query", "t_ms"].map(|name| table.numbers(name));
    for (key, rows) in by_cell(table) {
        let Some(timeline) = into.get_mut(&key) else { continue };
        let mut queries: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| launch.at(*row) == Some(0.0)) {
            if let Some(t) = t.at(row) {
                queries.entry(query.at(row).unwrap_or(0.0) as i64).or_default().push(t / 1000.0);
            }
        }
        for (query, mut arrived) in queries {
            arrived.sort_by(f64::total_cmp);
            let (first, last) = (arrived[0], arrived[arrived.len() - 1]);
            if let Some(ttft) = prefills.get(&key).and_then(|of| of.get(&query)) {
                timeline.phases.push(Stretch { phase: Phase::Prefill, from: first - ttft / 1000.0, to: first });
            }
            timeline.phases.push(Stretch { phase: Phase::Decode, from: first, to: last });
            timeline.tokens.extend(arrived);
        }
    }
    for timeline in into.values_mut() {
        timeline.tokens.sort_by(f64::total_cmp);
        timeline.phases.sort_by(|a, b| a.from.total_cmp(&b.from));
        if let Some(begun) = timeline.phases.first().map(|phase| phase.from).filter(|begun| *begun > 0.0) {
            timeline.phases.insert(0, Stretch { phase: Phase::Load, from: 0.0, to: begun });
        }
    }
}
