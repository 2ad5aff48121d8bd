//! What a run found, in the forms that people pass on: Markdown for a pull request or a document, and a flat table for a spreadsheet.
//!
//! The Markdown says what the page says, of the same view: `templates/summary.md`. The table is made of the run itself, since a spreadsheet
//! wants the figures with all their digits.

mod table;
#[cfg(test)]
mod tests;

pub use table::table;

/// The Markdown, beside the page.
pub const MARKDOWN: &str = "summary.md";
/// The table, beside the page.
pub const TABLE: &str = "summary.csv";
