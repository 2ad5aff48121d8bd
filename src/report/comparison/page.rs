//! The page: charts, render, write.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::view::{Comparison, Table};
use crate::{
    report::{
        ReportError,
        charts::{Point, Swatch, VERDICTS, ratios},
        model::{
            filters::{Placed, choices},
            view::{Choice, Keys, Pick},
        },
        page,
    },
    results::schema::METRICS,
};

#[derive(Serialize)]
struct Page<'a> {
    palette: Vec<Swatch>,
    view: &'a Comparison,
    tables: Vec<TableView<'a>>,
    /// What rows can be filtered by; nothing where there are few.
    filters: Vec<Choice>,
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
    page::rendered("comparison.html", &Page { palette, view, tables, filters: filters(view) })
}

fn filters(view: &Comparison) -> Vec<Choice> {
    let rows: Vec<&Keys> = view.tables.iter().flat_map(|table| table.rows.iter().map(|row| &row.keys)).collect();
    let pick = |key: &str, ours| Pick { key: key.to_owned(), text: key.to_owned(), ours };
    let tokens = |text: &str| text.split(" → ").map(|tokens| tokens.parse().unwrap_or(0)).collect::<Vec<i64>>();
    let by_tokens = |text: &str| (tokens(text).first().copied().unwrap_or(0), tokens(text).last().copied().unwrap_or(0));
    let named = |of: fn(&Keys) -> &str| move |keys: &&Keys| -> Placed { ((0, 0), pick(of(keys), false)) };
    choices(
        &rows,
        &[
            ("class", "Class", &|keys| ((0, 0), pick(&keys.class, true))),
            ("model", "Model", &named(|keys| &keys.model)),
            ("backend", "Backend", &named(|keys| &keys.backend)),
            ("quant", "Quant", &named(|keys| &keys.quant)),
            ("workload", "Workload", &|keys| (by_tokens(&keys.workload), pick(&keys.workload, false))),
            ("status", "Verdict", &|keys| ((0, 0), pick(&keys.status, true))),
        ],
    )
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
