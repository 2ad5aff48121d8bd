//! QNN itself: the QAIRT command-line tools.

mod adapter;
pub mod context;
mod graphs;
mod reader;

pub use adapter::Qnn;

pub use reader::{QnnReader, codes, csv, finish, first_line, is_binary, merge, ops, stem};

/// What to do about a failure, by its message.
pub fn hint(message: &str) -> Option<String> {
    codes::explain(message).map(|found| found.hint())
}
