//! What a device did during one launch of each cell: telemetry, tokens and phases on one time axis.

use std::collections::BTreeMap;
use std::path::Path;

use polars::prelude::{col, lit};

use super::run::{keys, optional};
use super::types::{CellKey, Phase, Run, Series, Stretch, Timeline};
use crate::report::ReportError;
use crate::results::read::{Loaded, read};
use crate::results::schema::{SAMPLES, TELEMETRY, TOKENS};

/// Reads the first measured launch of every cell.
pub fn timelines(dir: &Path, run: &mut Run) -> Result<(), ReportError> {
    let first = || col("pass").eq(lit("measure")).and(col("launch").eq(lit("0")));
    let wanted = ["t_ms", "device", "cell", "source", "name", "value", "unit"];
    let table = read(dir, &TELEMETRY, &wanted, Some(first()))?;
    if let Some(mut table) = optional(&mut run.problems, "nothing over time: memory, temperatures, clocks", table, TELEMETRY.file) {
        telemetry(&mut table, &mut run.timelines);
        run.problems.extend(table.complaint());
    }
    // What is missing of these two has been said where the figures were read.
    let mut prefills = BTreeMap::new();
    if let Some(mut table) = read(dir, &SAMPLES, &["device", "cell", "query", "ttft_ms"], Some(first()))? {
        let (keys, query, ttft) = (keys(&table), table.int("query"), table.float("ttft_ms"));
        prefills = keys.into_iter().zip(query).zip(ttft).filter_map(|(key, ttft)| Some((key, ttft?))).collect();
    }
    if let Some(mut table) = read(dir, &TOKENS, &["device", "cell", "query", "t_ms"], Some(first()))? {
        tokens(&mut table, &prefills, &mut run.timelines);
    }
    Ok(())
}

fn telemetry(table: &mut Loaded, into: &mut BTreeMap<CellKey, Timeline>) {
    let (keys, t, value) = (keys(table), table.float("t_ms"), table.float("value"));
    let [source, name, unit] = ["source", "name", "unit"].map(|column| table.text(column));
    for (row, key) in keys.into_iter().enumerate() {
        let (Some(t), Some(value), Some(source), Some(name)) = (t[row], value[row], &source[row], &name[row]) else { continue };
        let timeline = into.entry(key).or_default();
        let place = (source.clone(), name.clone());
        let series =
            timeline.series.entry(place).or_insert_with(|| Series { unit: unit[row].clone().unwrap_or_default(), points: Vec::new() });
        series.points.push((t / 1000.0, value));
    }
    for series in into.values_mut().flat_map(|timeline| timeline.series.values_mut()) {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
}

fn tokens(table: &mut Loaded, prefills: &BTreeMap<(CellKey, Option<i64>), f64>, into: &mut BTreeMap<CellKey, Timeline>) {
    let (keys, query, t) = (keys(table), table.int("query"), table.float("t_ms"));
    let mut queries: BTreeMap<(CellKey, Option<i64>), Vec<f64>> = BTreeMap::new();
    for (row, key) in keys.into_iter().enumerate() {
        if let Some(t) = t[row] {
            queries.entry((key, query[row])).or_default().push(t / 1000.0);
        }
    }
    for (key, mut arrived) in queries {
        arrived.sort_by(f64::total_cmp);
        let (first, last) = (arrived[0], arrived[arrived.len() - 1]);
        let Some(timeline) = into.get_mut(&key.0) else { continue };
        if let Some(ttft) = prefills.get(&key) {
            timeline.phases.push(Stretch { phase: Phase::Prefill, from: first - ttft / 1000.0, to: first });
        }
        timeline.phases.push(Stretch { phase: Phase::Decode, from: first, to: last });
        timeline.tokens.extend(arrived);
    }
    for timeline in into.values_mut() {
        timeline.tokens.sort_by(f64::total_cmp);
        timeline.phases.sort_by(|a, b| a.from.total_cmp(&b.from));
        if let Some(begun) = timeline.phases.first().map(|phase| phase.from).filter(|begun| *begun > 0.0) {
            timeline.phases.insert(0, Stretch { phase: Phase::Load, from: 0.0, to: begun });
        }
    }
}
