//! Genie: Qualcomm's dialog runtime over QNN context binaries.

mod adapter;
mod reader;

pub use adapter::Genie;

pub use reader::GenieReader;
