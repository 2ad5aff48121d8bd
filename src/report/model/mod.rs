//! What the page says: plain values in, plain values for the templates out. No file, no clock, no markup but the drawings.

mod against;
mod cells;
mod charts;
mod colours;
mod costs;
mod decision;
mod details;
mod device;
mod failures;
mod figures;
pub(super) mod filters;
mod groups;
mod header;
mod headline;
mod layers;
mod lines;
mod machine;
mod matrix;
mod pairs;
mod panel;
mod parts;
mod places;
mod roof;
mod soak;
mod stages;
mod timeline;
pub mod view;
mod why;

pub use header::page;
