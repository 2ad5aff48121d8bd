//! Run folders into plain structs.

mod identity;
mod large;
mod layers;
mod phases;
mod places;
mod run;
mod soak;
mod timeline;
mod types;

pub use identity::{Ran, Sameness, is_self_made, sameness};
pub use phases::PhaseShare;
pub use places::{Fallback, Support};
pub use run::load;
pub use types::{Cell, Estimate, Launches, Layer, Phase, Run, Series, Soak, Sort, Status, Timeline, is_composed};
