//! QNN itself: the QAIRT command-line tools.

mod adapter;
pub mod context;
mod graphs;
mod reader;

pub use adapter::Qnn;

pub use reader::{QnnReader, codes, csv, finish, first_line, is_binary, merge, ops, stem};

/// What to do about the error code in a failure's message, if it is a known one.
pub fn hint(message: &str) -> Option<String> {
    codes::explain(codes::code_in(message)?).map(|known| known.hint.to_owned())
}
