//! onnxruntime-genai: only its outputs are read, nothing is run.

mod reader;

pub use reader::OrtGenaiReader;
