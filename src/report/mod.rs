//! The report: tables of run folders in, one self-contained HTML page with inline SVG out; beside it its summaries and, when asked for, its
//! charts as files.
//!
//! `load` reads the tables (the large ones as columns, the others with polars) into plain structs, `model` decides what the page says (pure, and
//! the only place that does), `charts` draws, `templates/` lays out, `pictures` and `summary` pass it on. Nothing is measured or thrown away here: a figure that the tables don't hold
//! is a dash with its reason, a cell that is not `ok` is in no chart and no ratio, and device classes have a panel each. Ranking is `selection`'s
//! alone.
//!
//! The page needs no network and is whole without its script, which filters and sorts rows. Everything that a device, a runtime or a user
//! wrote is escaped: by minijinja in the page and by plotters in the drawings; what got through all the same is not run (`policy`).

mod charts;
pub mod comparison;
mod error;
pub mod load;
mod model;
mod origin;
mod page;
mod pictures;
mod policy;
pub mod selection;
pub mod site;
mod summary;
#[cfg(test)]
pub(crate) mod synthetic;
#[cfg(test)]
mod tests;
mod timing;

pub use error::ReportError;
pub use page::Report;
#[cfg(test)]
pub(crate) use page::{render, sheets};
pub use pictures::{Fonts, Kind, PngError, Written};
