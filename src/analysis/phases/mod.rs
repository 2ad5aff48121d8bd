//! Where the time of a load, a prefill and a decode goes.

mod launch;
mod parts;
#[cfg(test)]
mod tests;

pub use launch::{Piece, REST, Stage, StageTimes, of_launch};
