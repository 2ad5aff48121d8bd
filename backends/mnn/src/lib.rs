//! MNN: reading what `llm_bench`, `llm_demo` and the plain-network tools print.

mod adapter;
mod reader;

pub use adapter::Mnn;

pub use reader::MnnReader;
