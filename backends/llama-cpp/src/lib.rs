//! llama.cpp: reading what `llama-bench`, `llama-cli`, `llama-completion` and `llama-server` print.

mod reader;

pub use reader::LlamaCppReader;
