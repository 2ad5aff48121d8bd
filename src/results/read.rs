//! One CSV table through polars: every column as text, only the rows that are asked for, numbers parsed by the reader.
//!
//! Types are not left to inference: a column that happens to hold `128` everywhere in one run and `n/a` in another must not change its type
//! between two reports. The schema says what a column is.

use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, Expr, LazyCsvReader, LazyFileListReader, PlRefPath, col};

use thiserror::Error;

use super::schema::Table;

/// A table that can't be read as CSV.
#[derive(Debug, Error)]
#[error("{path} can't be read as a table: {message}; without its cells.csv a run folder's tables are made anew from its journal")]
pub struct TableError {
    /// The table.
    pub path: PathBuf,
    /// What polars said.
    pub message: String,
}

/// A table in memory.
pub struct Loaded {
    frame: DataFrame,
    file: &'static str,
    /// Numbers that were none, counted.
    unreadable: usize,
}

/// Reads the table, or `None` when the folder has none.
///
/// Only the columns of `wanted` that exist are kept; `filter` sees all columns as text.
pub fn read(dir: &Path, table: &'static Table, wanted: &[&str], filter: Option<Expr>) -> Result<Option<Loaded>, TableError> {
    let path = dir.join(table.file);
    if !path.is_file() {
        return Ok(None);
    }
    let fail = |error: polars::prelude::PolarsError| TableError { path: path.clone(), message: error.to_string() };
    let source = PlRefPath::try_from_path(&path).map_err(fail)?;
    let mut lazy = LazyCsvReader::new(source).with_has_header(true).with_infer_schema_length(Some(0)).finish().map_err(fail)?;
    let schema = lazy.collect_schema().map_err(fail)?;
    let present: Vec<Expr> = wanted.iter().filter(|name| schema.get(name).is_some()).map(|name| col(*name)).collect();
    if let Some(filter) = filter {
        lazy = lazy.filter(filter);
    }
    let frame = lazy.select(present).collect().map_err(fail)?;
    Ok(Some(Loaded { frame, file: table.file, unreadable: 0 }))
}

/// Text as a reader sees it: control characters, and those that turn the direction of writing and so can make a line read as another,
/// become the replacement character. Escaping does not touch them.
pub fn visible(text: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if hidden(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

impl Loaded {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.frame.height()
    }

    /// A column as text; empty values and a missing column are `None`.
    pub fn text(&self, name: &str) -> Vec<Option<String>> {
        let nothing = || vec![None; self.rows()];
        let Ok(column) = self.frame.column(name) else { return nothing() };
        let Ok(values) = column.str() else { return nothing() };
        values.iter().map(|value| value.filter(|text| !text.is_empty()).map(visible)).collect()
    }

    /// A column as numbers; what is no finite number is absent, and counted.
    pub fn float(&mut self, name: &str) -> Vec<Option<f64>> {
        let values = self.text(name);
        values
            .into_iter()
            .map(|text| {
                let text = text?;
                let number = text.trim().parse().ok().filter(|value: &f64| value.is_finite());
                self.unreadable += usize::from(number.is_none());
                number
            })
            .collect()
    }

    /// A column as whole numbers.
    pub fn int(&mut self, name: &str) -> Vec<Option<i64>> {
        self.float(name).into_iter().map(|value| value.map(|value| value as i64)).collect()
    }

    /// What to tell the reader about values that could not be read.
    pub fn complaint(&self) -> Option<String> {
        (self.unreadable > 0).then(|| format!("{}: {} values are not numbers and are shown as absent", self.file, self.unreadable))
    }
}
