//! onnxruntime-genai: its own benchmark on a device, and what its tools print.

mod adapter;
mod reader;

pub use adapter::OrtGenai;
pub use reader::OrtGenaiReader;
