//! Making, editing and reading run folders and pages.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::report::{render, synthetic};

pub(super) fn run() -> (TempDir, PathBuf) {
    let temporary = TempDir::new().expect("a folder");
    let dir = temporary.path().join("20261201T101500Z-pc-7f3a");
    synthetic::write(&dir);
    (temporary, dir)
}

pub(super) fn page_of(dir: &Path) -> String {
    render(&[dir.to_owned()], None).expect("a page")
}

/// Rewrites a table line by line; the closure gets the header's names and the fields of a line.
pub(super) fn edit(dir: &Path, file: &str, change: impl Fn(&dyn Fn(&str) -> usize, Vec<String>) -> Vec<Vec<String>>) {
    let text = fs::read_to_string(dir.join(file)).expect("a table");
    let header: Vec<&str> = text.lines().next().expect("a header").split(',').collect();
    // Good for tables without a quoted comma in the fields that are looked at.
    let at = |name: &str| header.iter().position(|known| *known == name).expect("a column");
    let mut lines = vec![header.join(",")];
    for line in text.lines().skip(1) {
        lines.extend(change(&at, line.split(',').map(str::to_owned).collect()).into_iter().map(|fields| fields.join(",")));
    }
    fs::write(dir.join(file), lines.join("\n") + "\n").expect("a table");
}

/// One column of `cells.csv` where `cell` begins the id, read without polars.
pub(super) fn csv(dir: &Path, cell: &str, column: &str) -> String {
    let text = fs::read_to_string(dir.join("cells.csv")).expect("cells");
    let at = text.lines().next().expect("a header").split(',').position(|name| name == column).expect("a column");
    let line = text.lines().find(|line| line.split(',').nth(4).is_some_and(|id| id.starts_with(cell))).expect("a row");
    line.split(',').nth(at).expect("a value").to_owned()
}

/// The text between two marks.
pub(super) fn part<'a>(page: &'a str, begin: &str, end: &str) -> &'a str {
    page.split(begin).nth(1).unwrap_or_else(|| panic!("no {begin}")).split(end).next().expect("text")
}

pub(super) fn drawings(page: &str) -> Vec<&str> {
    page.split("<svg class=\"chart\"").skip(1).filter_map(|part| part.split("</svg>").next()).collect()
}
