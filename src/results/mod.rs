//! The run folder: journal, launches, manifest, and the tables derived from them.

pub mod boot;
pub mod folder;
pub mod journal;
pub mod launches;
mod layers;
pub mod manifest;
pub mod npu;
pub mod others;
mod phases;
pub mod pinned;
mod placement;
pub mod portable;
pub mod power;
mod prefix;
pub mod read;
mod roof;
pub mod schema;
pub mod soak;
#[cfg(test)]
mod spec;
pub mod start;
mod summary;
mod support;
pub mod tables;
