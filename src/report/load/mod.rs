//! Run folders into plain structs.

mod run;
mod table;
mod types;

pub use run::load;
pub use table::visible;
pub use types::{Cell, Estimate, Launches, Layer, Run, Status};
