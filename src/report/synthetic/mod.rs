//! A run folder made up for the tests.

mod folder;
mod rows;

pub use folder::write;
