//! Figures that no tool measured, made of those that were. Pure.

mod compose;
pub mod layers;
mod leak;
pub mod phases;
pub mod placement;
pub mod power;
mod prefix;
pub mod roof;
pub mod series;
pub mod soak;

pub use compose::{Composed, Refusal, compose};
pub use leak::{Growth, NoGrowth, growth};
pub use prefix::{Early, LEAST_SHARE, Prefix, prefix};
