//! MNN: reading what `llm_bench`, `llm_demo` and the plain-network tools print.

mod adapter;
mod reader;

pub use adapter::Mnn;

pub use reader::MnnReader;

/// How its programs and models for a phone are made, since it publishes none: `{soc}`, `{soc_model}` and `{htp_arch}` are the chip's.
pub const BUILD_GUIDE: &str = include_str!("../device/build.txt");
