//! The charts of the page as files for slides and documents: each one with everything that keeps it honest away from the page.
//!
//! `collect` goes through the page and gives each chart its name and its words, in the language that is asked for, `sheet` sets them on a white ground as SVG, `png` makes pixels of
//! that very document, `files` writes them. A picture that needs another font than those that are here is refused by name: never boxes in place
//! of letters.

mod collect;
mod files;
mod names;
mod png;
mod sheet;
#[cfg(test)]
mod tests;
mod words;

pub use files::{Kind, Written, write};
pub use png::{Fonts, PngError};

/// The documents of all pictures of a page, as `voice` says them.
#[cfg(test)]
pub fn sheets(page: &super::model::view::Page, voice: &crate::lang::Voice) -> Vec<String> {
    collect::pictures(page).into_iter().filter_map(|picture| sheet::sheet(&picture.said(voice)).ok()).collect()
}
