//! Figures that no tool measured, made of those that were. Pure.

mod compose;
pub mod soak;
pub mod power;

pub use compose::{Composed, Refusal, compose};
