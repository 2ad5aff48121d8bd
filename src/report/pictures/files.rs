//! Writing pictures.

use std::{
    fmt,
    path::{Path, PathBuf},
    thread,
};

use super::collect::{Picture, pictures};
use super::png::{Fonts, PngError, pixels_of};
use super::sheet::sheet;
use crate::{
    lang::Voice,
    report::{ReportError, model::view::Page, page::put},
};

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// For documents and for drawing programs.
    Svg,
    /// For slides, two pixels for one.
    Png,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Svg => "SVG",
            Self::Png => "PNG",
        })
    }
}

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// Files.
    pub files: Vec<PathBuf>,
    /// Names of pictures that need a font that is not here, with the error that says which.
    pub refused: Vec<(String, PngError)>,
}

/// Writes a file for each chart of the page into `folder`, each whole or not at all. One that needs another font is left out and named; without
/// any font none is written.
pub fn write(page: &Page, folder: &Path, kind: Kind, fonts: &Fonts, voice: &Voice) -> Result<Written, ReportError> {
    let pictures: Vec<Picture> = pictures(page).into_iter().map(|picture| picture.said(voice)).collect();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = pictures.len().div_ceil(workers).max(1);
    let parts: Vec<Result<Written, ReportError>> = thread::scope(|scope| {
        let started: Vec<_> = pictures.chunks(share).map(|part| scope.spawn(move || all(part, folder, kind, fonts))).collect();
        started.into_iter().map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut written = Written::default();
    for part in parts {
        let part = part?;
        written.files.extend(part.files);
        written.refused.extend(part.refused);
    }
    Ok(written)
}

fn all(pictures: &[Picture], folder: &Path, kind: Kind, fonts: &Fonts) -> Result<Written, ReportError> {
    let mut written = Written::default();
    for picture in pictures {
        let svg = sheet(picture)?;
        let file = match kind {
            Kind::Svg => put(&svg, folder, &format!("{}.svg", picture.name))?,
            Kind::Png => match pixels_of(&svg, fonts) {
                Ok(bytes) => put(&bytes, folder, &format!("{}.png", picture.name))?,
                Err(error @ PngError::Missing(_)) => {
                    written.refused.push((picture.name.clone(), error));
                    continue;
                }
                Err(error) => return Err(error.into()),
            },
        };
        written.files.push(file);
    }
    Ok(written)
}
