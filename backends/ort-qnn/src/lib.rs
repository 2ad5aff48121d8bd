//! ONNX Runtime with the QNN execution provider.

mod adapter;
mod reader;

pub use adapter::OrtQnn;

pub use reader::{OrtQnnReader, log, trace};
