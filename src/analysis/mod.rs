//! Figures that no tool measured, made of those that were. Pure.

mod compose;
pub mod soak;

pub use compose::{Composed, Refusal, compose};
