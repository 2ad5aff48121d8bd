//! onnxruntime-genai: its own benchmark on a device, and what its tools print.

mod adapter;
mod reader;

pub use adapter::OrtGenai;
pub use reader::OrtGenaiReader;

/// What no measurement says of this framework ([`bench_backend_api::Card`]).
pub const CARD: &str = include_str!("../card.toml");
