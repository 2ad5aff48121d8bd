//! The page: charts, render, write.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::view::{Comparison, Table};
use crate::{
    report::{
        ReportError,
        charts::{Point, Swatch, VERDICTS, ratios},
        page,
    },
    results::schema::METRICS,
};

#[derive(Serialize)]
struct Page<'a> {
    palette: Vec<Swatch>,
    view: &'a Comparison,
    tables: Vec<TableView<'a>>,
}

#[derive(Serialize)]
struct TableView<'a> {
    table: &'a Table,
    meaning: &'static str,
    rows: Vec<Texts>,
    overall: Option<Texts>,
    svg: String,
}

/// A change in words.
#[derive(Serialize)]
struct Texts {
    ratio: String,
    interval: String,
    verdict: String,
}

/// Renders and writes `out/index.html`, whole or not at all; gives its path.
pub fn write(view: &Comparison, out: &Path) -> Result<PathBuf, ReportError> {
    page::put(render(view)?.as_bytes(), out, page::INDEX)
}

pub(super) fn render(view: &Comparison) -> Result<String, ReportError> {
    let tables = view.tables.iter().map(table).collect::<Result<Vec<_>, _>>()?;
    let palette = VERDICTS.iter().map(|(_, swatch)| *swatch).collect();
    page::rendered("comparison.html", &Page { palette, view, tables })
}

fn table(table: &Table) -> Result<TableView<'_>, ReportError> {
    let texts = |change: &super::Change, verdict: String| Texts { ratio: change.figure(), interval: change.between(), verdict };
    let point = |label: String, change: &super::Change, whole: bool| Point {
        label,
        ratio: change.ratio,
        interval: change.interval,
        verdict: change.verdict,
        whole,
    };
    let cells = table.rows.iter().map(|row| point(row.cell.clone(), &row.change, false));
    let overall = table.overall.iter().map(|(cells, change)| point(format!("geometric mean of {cells}"), change, true));
    let name = format!("{} of B over A by cell, {}", table.metric, table.class);
    let title = format!("change of {} from A to B, % ({})", table.metric, table.better);
    let svg = ratios(&cells.chain(overall).collect::<Vec<_>>(), &title, &name)?;
    let meaning = METRICS.iter().find(|metric| metric.name == table.metric).map_or("", |metric| metric.meaning);
    let overall = table.overall.as_ref().map(|(_, change)| texts(change, change.verdict.to_owned()));
    Ok(TableView { table, meaning, rows: table.rows.iter().map(|row| texts(&row.change, row.verdict())).collect(), overall, svg })
}
