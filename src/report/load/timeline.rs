//! What a device did during one launch of each cell: telemetry, tokens and phases on one time axis.

use std::collections::BTreeMap;

use bench_tables::Columns;

use super::large::{by_cell, shown};
use super::types::{CellKey, Phase, Series, Stretch, Timeline};

/// Times to first token in ms by cell and query.
type Prefills = BTreeMap<CellKey, BTreeMap<i64, f64>>;

fn prefills(samples: &Columns) -> Prefills {
    let [launch, query, ttft] = ["launch", "query", "ttft_ms"].map(|name| samples.numbers(name));
    let mut found = Prefills::new();
    for (key, rows) in by_cell(samples) {
        let first = rows.into_iter().filter(|row| launch.at(*row) == Some(0.0));
        let of_query = first.filter_map(|row| Some((query.at(row)? as i64, ttft.at(row)?)));
        found.entry(key).or_default().extend(of_query);
    }
    found
}

/// What the samples of the first measured launches tell.
pub fn sampled(table: &Columns) -> BTreeMap<CellKey, Timeline> {
    let columns = ["device", "cell", "source", "name", "unit"];
    let shown = columns.map(|column| (&table.words(column).codes, shown(table, column)));
    let mut found: BTreeMap<CellKey, Timeline> = BTreeMap::new();
    for mut series in table.series(&columns[..4], "t_ms", "value") {
        let [device, cell, source, name, unit] =
            shown.each_ref().map(|(codes, words)| words[codes[series.row as usize] as usize].to_string());
        let timeline = found.entry(CellKey { device, cell }).or_default();
        if source.is_empty() || name.is_empty() || series.points.is_empty() {
            continue;
        }
        for (t, _) in &mut series.points {
            *t /= 1000.0;
        }
        timeline.add((source, name), Series { unit, points: series.points });
    }
    found
}

impl Timeline {
    /// Names that differ in what can't be shown are one series, and a part of a table may begin within one.
    fn add(&mut self, name: (String, String), mut series: Series) {
        let of_name = self.series.entry(name).or_insert_with(|| Series { unit: series.unit, points: Vec::new() });
        let ascends = of_name.points.last().zip(series.points.first()).is_none_or(|(last, next)| last.0 <= next.0);
        of_name.points.append(&mut series.points);
        if !ascends {
            of_name.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }

    /// Puts the samples of the same launch that a later part of the table has behind these.
    pub(super) fn join(&mut self, more: Self) {
        for (name, series) in more.series {
            self.add(name, series);
        }
    }
}

/// Puts the arrivals of tokens beside them, and the phases that these make together with the times to first token.
pub fn arrived(table: &Columns, samples: Option<&Columns>, into: &mut BTreeMap<CellKey, Timeline>) {
    let prefills = samples.map(prefills).unwrap_or_default();
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
