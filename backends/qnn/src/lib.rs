//! QNN itself: the QAIRT command-line tools.

mod adapter;
pub mod context;
mod explain;
mod graphs;
pub mod htp;
mod reader;

pub use adapter::Qnn;
pub use explain::explain;
pub use graphs::FILE as GRAPHS_FILE;

pub use reader::{QnnReader, codes, csv, finish, first_line, is_binary, merge, ops, stem, streamed};

/// What no measurement says of this framework ([`bench_backend_api::Card`]).
pub const CARD: &str = include_str!("../card.toml");
