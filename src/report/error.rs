//! What can go wrong while making a report.

use std::{io, path::PathBuf};

use thiserror::Error;

use super::pictures::PngError;
use crate::results::read::TableError;

/// Why there is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// No folder was given.
    #[error("no run folder given: name one, as results/<run>")]
    NothingToReport,
    /// The folder has no `cells.csv`.
    #[error("{0} is not a finished run folder, it has no cells.csv: finish it with `bench run --resume`, or name another")]
    NotARun(PathBuf),
    /// A table can't be read as CSV.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something that is no page stands where one goes.
    #[error("{0} is in the way: a page or picture goes there, and it is {1}; move it away, or name another folder")]
    InTheWay(PathBuf, &'static str),
    /// The page or judgement of another run stands there, whose folder is called the same.
    #[error("{0} is of another run, {1}, whose folder has the same name: move it away, or name another folder with --out or --site")]
    Another(PathBuf, String),
    /// A drawing failed: a bug, since drawings go into memory.
    #[error("drawing failed: {0}")]
    Chart(String),
    /// A picture needs a font that is not here.
    #[error(transparent)]
    Png(#[from] PngError),
    /// The page's template failed: a bug.
    #[error("the page's template failed: {0}")]
    Template(#[from] minijinja::Error),
}

impl ReportError {
    /// An I/O error with its path.
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
