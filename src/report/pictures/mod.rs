//! The charts of the page as files for slides and documents: each one with everything that keeps it honest away from the page.
//!
//! `collect` goes through the page and gives each chart its name and its words, `sheet` sets them on a white ground as SVG, `png` makes pixels of
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
