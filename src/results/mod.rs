//! The run folder: journal, launches, manifest, and the tables derived from them.

pub mod folder;
pub mod journal;
pub mod launches;
pub mod manifest;
pub mod npu;
pub mod portable;
pub mod schema;
pub mod soak;
#[cfg(test)]
mod spec;
mod summary;
pub mod tables;
