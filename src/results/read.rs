//! One CSV table through polars: every column as text, only the rows that are asked for, numbers parsed by the reader.
//!
//! Types are not left to inference: a column that happens to hold `128` everywhere in one run and `n/a` in another must not change its type
//! between two reports. The schema says what a column is.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use bench_tables::{Columns, MOST, Problem, Wanted};
use polars::prelude::{CsvReadOptions, DataFrame, Expr, IntoLazy, LazyCsvReader, LazyFileListReader, PlRefPath, SerReader, col};
use thiserror::Error;

use super::schema::{CELLS, FORMAT_VERSION, METRIC_ENDS, METRICS, TABLES, Table};
use crate::safe::printable;
pub use crate::safe::visible;

/// A table that can't be read as CSV.
#[derive(Debug, Error)]
#[error("{path} can't be read as a table: {message}; {remedy}")]
pub struct TableError {
    path: PathBuf,
    message: String,
    remedy: String,
}

impl TableError {
    /// Of this table of a run folder, with what is wrong with it.
    pub fn of(path: &Path, message: String) -> Self {
        Self { path: path.to_owned(), message, remedy: remedy(path) }
    }
}

/// What mends a damaged table of a run folder: to make it again, where there is something to make it from.
pub fn remedy(table: &Path) -> String {
    let run = table.parent().unwrap_or(table);
    let (shown, without) = (run.display(), if table.ends_with(CELLS.file) { "" } else { ", or remove it" });
    if has_sources(run) {
        format!("remove {}, and `bench report {shown}` makes all tables anew from the journal", run.join(CELLS.file).display())
    } else {
        format!("put the file back{without}: {shown} does not have plan.toml, journal.jsonl and logs/, of which tables are made")
    }
}

/// Whether a run folder has what its tables are made of; one that was handed on may have its tables alone.
pub fn has_sources(run: &Path) -> bool {
    run.join("journal.jsonl").is_file() && run.join("plan.toml").is_file() && run.join("logs").is_dir()
}

/// A table in memory.
pub struct Loaded {
    frame: DataFrame,
    file: &'static str,
    /// Numbers that were none, counted.
    unreadable: usize,
    /// The file ends within a line.
    cut: bool,
    unknown: Vec<String>,
}

/// Reads the table, or `None` when the folder has none.
///
/// Only the columns of `wanted` that exist are kept; `filter` sees all columns as text. Every line that bench writes has an end: a last one
/// without is half a line, whose last number may be half a number, and is not taken.
pub fn read(dir: &Path, table: &'static Table, wanted: &[&str], filter: Option<Expr>) -> Result<Option<Loaded>, TableError> {
    let Some(path) = regular(dir, table)? else { return Ok(None) };
    let fail = |error: polars::prelude::PolarsError| TableError::of(&path, brief(&error.to_string()));
    // polars takes lines of too few values, and its errors name no line, but options of its own.
    let half = bench_tables::check(&path).map_err(|problem| TableError::of(&path, brief(&problem.to_string())))?;
    let mut lazy = match half {
        None => {
            let source = PlRefPath::try_from_path(&path).map_err(fail)?;
            LazyCsvReader::new(source).with_glob(false).with_has_header(true).with_infer_schema_length(Some(0)).finish().map_err(fail)?
        }
        Some(end) => {
            let whole = fs::read(&path).map_err(|error| TableError::of(&path, error.to_string()))?;
            let whole = io::Cursor::new(whole.get(..usize::try_from(end).unwrap_or(0)).unwrap_or_default().to_vec());
            let options = CsvReadOptions::default().with_has_header(true).with_infer_schema_length(Some(0));
            options.into_reader_with_file_handle(whole).finish().map_err(fail)?.lazy()
        }
    };
    let schema = lazy.collect_schema().map_err(fail)?;
    let unknown = schema.iter_names().map(|name| visible(name)).filter(|name| !is_known(table, name)).collect();
    let present: Vec<Expr> = wanted.iter().filter(|name| schema.get(name).is_some()).map(|name| col(*name)).collect();
    if let Some(filter) = filter {
        lazy = lazy.filter(filter);
    }
    let frame = lazy.select(present).collect().map_err(fail)?;
    Ok(Some(Loaded { frame, file: table.file, unreadable: 0, cut: half.is_some(), unknown }))
}

/// Reads columns of a table that may have millions of rows, or `None` when the folder has none.
pub fn columns(dir: &Path, table: &'static Table, wanted: &Wanted<'_>) -> Result<Option<Columns>, TableError> {
    of_large(dir, table, |path| bench_tables::read(path, wanted))
}

/// The same, as what is made of each of its parts, in their order.
pub fn parts<T: Send>(
    dir: &Path,
    table: &'static Table,
    wanted: &Wanted<'_>,
    made: impl Fn(Columns) -> T + Sync,
) -> Result<Option<Vec<T>>, TableError> {
    of_large(dir, table, |path| bench_tables::parts(path, wanted, made))
}

fn of_large<T>(dir: &Path, table: &'static Table, read: impl FnOnce(&Path) -> Result<T, Problem>) -> Result<Option<T>, TableError> {
    let Some(path) = regular(dir, table)? else { return Ok(None) };
    read(&path).map(Some).map_err(|problem| TableError::of(&path, brief(&problem.to_string())))
}

/// What an error says first, without what its maker would try next.
fn brief(error: &str) -> String {
    printable(error.split(['\n', ';']).next().unwrap_or_default()).chars().take(200).collect()
}

/// The path of a table, or `None` when the folder has none. A pipe would be waited for, a device read for ever: neither is a table.
fn regular(dir: &Path, table: &Table) -> Result<Option<PathBuf>, TableError> {
    let path = dir.join(table.file);
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(Some(path)),
        Ok(_) => Err(TableError::of(&path, "it is no regular file".to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TableError::of(&path, error.to_string())),
    }
}

/// What to tell the reader about what could not be read of a table.
pub fn complaint(file: &str, cut: bool, not_numbers: usize) -> Option<String> {
    let cut = cut.then(|| format!("{file} ends within a line, which is not counted: it was cut off"));
    let unreadable = (not_numbers > 0)
        .then(|| format!("{file}: {not_numbers} values are not numbers, or larger than any measurement, and are shown as absent"));
    let all: Vec<String> = cut.into_iter().chain(unreadable).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn is_known(table: &Table, name: &str) -> bool {
    let metric =
        || METRIC_ENDS.iter().filter_map(|end| name.strip_suffix(end)).any(|stem| METRICS.iter().any(|metric| metric.name == stem));
    // Of any table: one may tell more than it must.
    TABLES.iter().chain([table]).flat_map(|table| table.columns).any(|column| column.name == name) || metric()
}

/// Whether a file ends within a line.
pub fn cut(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.abs() < MOST)
}

impl Loaded {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.frame.height()
    }

    /// Whether the file has a column that was asked for.
    pub fn has(&self, name: &str) -> bool {
        self.frame.column(name).is_ok()
    }

    /// A column as text; empty values and a missing column are `None`.
    pub fn text(&self, name: &str) -> Vec<Option<String>> {
        let nothing = || vec![None; self.rows()];
        let Ok(column) = self.frame.column(name) else { return nothing() };
        let Ok(values) = column.str() else { return nothing() };
        values.iter().map(|value| value.filter(|text| !text.is_empty()).map(visible)).collect()
    }

    /// A column as numbers; what is no number, or none that can have been measured ([`MOST`]), is absent, and counted.
    pub fn float(&mut self, name: &str) -> Vec<Option<f64>> {
        let values = self.text(name);
        values
            .into_iter()
            .map(|text| {
                let text = text?;
                let number = number(&text);
                self.unreadable += usize::from(number.is_none());
                number
            })
            .collect()
    }

    /// Rows in which something stands that is no finite number.
    pub fn not_numbers(&self, name: &str) -> Vec<usize> {
        let odd = |(row, text): (usize, Option<String>)| text.filter(|text| number(text).is_none()).map(|_| row);
        self.text(name).into_iter().enumerate().filter_map(odd).collect()
    }

    /// The first version of the format in the rows that is newer than this bench knows; `format_version` has to be wanted.
    pub fn newer(&mut self) -> Option<i64> {
        self.int("format_version").into_iter().flatten().find(|found| *found > i64::from(FORMAT_VERSION))
    }

    /// A column as whole numbers.
    pub fn int(&mut self, name: &str) -> Vec<Option<i64>> {
        self.float(name).into_iter().map(|value| value.map(|value| value as i64)).collect()
    }

    /// Columns of the file that this bench does not know: of another version, or in another unit, which is part of a name.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// What to tell the reader about what could not be read.
    pub fn complaint(&self) -> Option<String> {
        complaint(self.file, self.cut, self.unreadable)
    }
}
