//! What an operation of a profile is in the model: its transformer block, its part, and whether it computes or moves data. The rules are data
//! (`parts.toml`), since every exporter has names of its own.

mod map;
mod rules;
mod words;

pub use map::{Mapped, map};
pub use rules::{By, Class};

#[cfg(test)]
mod tests;
