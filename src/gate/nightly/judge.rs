//! Series of nights in, rows out. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Kind, Row, Verdict,
    fate::{self, RECENT},
};
use crate::{
    gate::{
        history::{self, Figure, Gap, Point, Series, tonight},
        nights::Night,
        run::{Cell, Key, Run},
        unlike::{Difference, Weight},
    },
    results::schema::Metric,
    words::tenths,
};

/// The line of one metric of a cell and its place of tonight.
pub struct Line<'a> {
    /// The metric.
    pub metric: &'static Metric,
    /// All series of the metric.
    pub series: &'a [Series],
    /// The runs of the series.
    pub runs: &'a [history::Run],
    /// Place of tonight's run in the series.
    pub tonight: usize,
}

/// Where a change began: place of the row, of the run, and of the run before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dated {
    /// Place of the row.
    pub row: usize,
    /// Place of the run.
    pub at: usize,
    /// Place of the last run before it that has the cell.
    pub before: usize,
}

/// Figures of one metric. Rows of changes are dated in the second result.
pub fn figures(line: &Line<'_>, unlike: &[Difference], limit: f64, composed: bool) -> (Vec<Row>, Vec<Dated>) {
    let (mut rows, mut dated) = (Vec::new(), Vec::new());
    for series in line.series {
        let Some(point) = series.points.iter().find(|p| p.run == line.tonight) else { continue };
        let Figure::Value { at, .. } = point.figure else { continue };
        if series.key.method.contains("composed") && !composed {
            continue;
        }
        let key = Key { device: series.key.device.clone(), cell: series.key.cell.clone() };
        let mut row = Row { tonight: Some(at), ..blank(key, series.key.class.clone(), line.metric, Kind::Performance) };
        let bar = unlike
            .iter()
            .find(|d| d.weight == Weight::Bars && d.touches(line.metric.name) && (d.cells.is_empty() || d.cells.contains(&row.key)));
        if let Some(bar) = bar {
            row.reasons.push(format!("not compared: {}", bar.words()));
            rows.push(row);
            continue;
        }
        let Some((found, before)) = tonight(series, line.metric, line.runs, line.tonight, limit) else { continue };
        let history: Vec<Night> = before.iter().map(|(_, night)| *night).collect();
        if matches!(found.verdict, Verdict::Regressed | Verdict::Improved) {
            let place = found.since.unwrap_or_else(|| (history.len() + 1).saturating_sub(found.window));
            let run_of = |place: usize| before.get(place).map_or(line.tonight, |(run, _)| *run);
            if let Some(previous) = place.checked_sub(1) {
                dated.push(Dated { row: rows.len(), at: run_of(place), before: run_of(previous) });
            }
        }
        if history.is_empty()
            && line.series.iter().any(|s| s.key.method != series.key.method && s.key.cell == series.key.cell && !s.points.is_empty())
        {
            row.reasons.push("had in another way in the nights before: not compared".to_owned());
        }
        (row.verdict, row.effect, row.baseline, row.window) = (found.verdict, found.effect, found.baseline, found.window);
        (row.tolerance, row.mde, row.nights_needed) = (Some(found.tolerance), found.mde, found.nights_needed);
        row.reasons.extend(found.reasons);
        row.before = history;
        if let Some(mde) = found.mde.filter(|mde| *mde > limit * (1.0 + 1e-9)) {
            let excluded =
                if found.verdict == Verdict::Unchanged { "tonight excludes the limit, by the end of its interval; but " } else { "" };
            row.reasons.push(format!("{excluded}a regression under {} % may go unseen here", tenths(mde)));
        }
        rows.push(row);
    }
    (rows, dated)
}

/// Cells that work tonight and do not have the metric, or only as a composed figure that is not asked for, while a recent night has it. A figure
/// that is gone could hide a loss.
pub fn gone(line: &Line<'_>, run: &Run, composed: bool) -> Vec<Row> {
    let counts = |series: &&Series| composed || !series.key.method.contains("composed");
    let is_value = |point: &&Point| matches!(point.figure, Figure::Value { .. });
    let of = |series: &Series| Key { device: series.key.device.clone(), cell: series.key.cell.clone() };
    let tonight = |point: &&Point| point.run == line.tonight;
    let there: BTreeSet<Key> =
        line.series.iter().filter(counts).filter(|s| s.points.iter().filter(tonight).any(|p| is_value(&p))).map(of).collect();
    let mut missed: BTreeMap<Key, &str> = BTreeMap::new();
    for series in line.series.iter().filter(counts) {
        let recent = series.points.iter().filter(|p| p.run < line.tonight && p.run + RECENT >= line.tonight).any(|p| is_value(&p));
        if recent && !there.contains(&of(series)) {
            missed.insert(of(series), &series.key.class);
        }
    }
    let cells = missed.into_iter().filter_map(|(key, class)| Some((run.cells.get(&key).filter(|cell| cell.is_ok())?, key, class)));
    cells
        .map(|(cell, key, class)| {
            let told = cell.field("absent").split(';').find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == line.metric.name));
            let why = match told {
                Some((_, why)) => why,
                None if cell.values(line.metric.name).is_empty() => "the run does not say why",
                None => "tonight it is composed, which is not gated",
            };
            let reasons = vec![format!("had in the nights before, and not measured tonight: {why}")];
            Row { reasons, ..blank(key, class.to_owned(), line.metric, Kind::Missing) }
        })
        .collect()
}

/// What became of each cell of tonight's devices that has no figures, and notes on those that have and are flaky. `series` are all of one metric.
pub fn fates(line: &Line<'_>, run: &Run) -> (Vec<Row>, Vec<Dated>, BTreeMap<Key, String>) {
    let mut nights: BTreeMap<Key, BTreeMap<usize, (Figure, String)>> = BTreeMap::new();
    // One metric's series hold a point for each cell and run, in one of the ways in which it may be had.
    for series in line.series {
        let key = Key { device: series.key.device.clone(), cell: series.key.cell.clone() };
        let own = nights.entry(key).or_default();
        own.extend(series.points.iter().map(|p| (p.run, (p.figure, series.key.class.clone()))));
    }
    let newest = line.tonight.checked_sub(1);
    let devices: BTreeSet<&str> = run.cells.keys().map(|key| key.device.as_str()).collect();
    let (mut rows, mut dated, mut notes) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (key, own) in &nights {
        let before: Vec<(usize, Figure)> = own.range(..line.tonight).map(|(run, (figure, _))| (*run, *figure)).collect();
        let tonight = match own.get(&line.tonight) {
            Some((Figure::Value { .. } | Figure::None(Gap::Absent), _)) => {
                notes.extend(fate::flaky(&before).map(|note| (key.clone(), note)));
                continue;
            }
            Some((Figure::None(gap), _)) => {
                if let Some(note) = fate::never(&before).filter(|_| *gap == Gap::Skipped) {
                    notes.insert(key.clone(), note);
                    continue;
                }
                Some(*gap)
            }
            // A cell that the scenario has given up is missed by nobody after a night.
            None if before.last().map(|(run, _)| *run) != newest || !devices.contains(key.device.as_str()) => continue,
            None => None,
        };
        let found = fate::fate(&before, tonight);
        let class = own.values().next_back().map(|(_, class)| class.clone()).unwrap_or_default();
        if found.verdict == Verdict::Regressed {
            let first = found.since.unwrap_or(line.tonight);
            let previous = before.iter().map(|(run, _)| *run).rfind(|run| *run < first);
            dated.extend(previous.map(|before| Dated { row: rows.len(), at: first, before }));
        }
        let told = run.cells.get(key).map(reason).unwrap_or_default();
        let reasons = [found.why, told].into_iter().filter(|w| !w.is_empty()).collect();
        rows.push(Row {
            kind: found.kind,
            verdict: found.verdict,
            metric: "",
            reasons,
            ..blank(key.clone(), class, line.metric, found.kind)
        });
    }
    (rows, dated, notes)
}

/// A cell's own words for its failure.
fn reason(cell: &Cell) -> String {
    [cell.field("failure_kind"), cell.field("reason")].into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(": ")
}

fn blank(key: Key, class: String, metric: &'static Metric, kind: Kind) -> Row {
    Row {
        key,
        class,
        metric: metric.name,
        higher_is_better: metric.higher_is_better,
        kind,
        verdict: Verdict::Undecided,
        tonight: None,
        effect: None,
        tolerance: None,
        mde: None,
        nights_needed: None,
        baseline: 0,
        window: 1,
        since: None,
        confirmed: None,
        reasons: Vec::new(),
        before: Vec::new(),
    }
}
