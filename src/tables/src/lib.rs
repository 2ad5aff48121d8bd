//! Large CSV tables as columns: a million rows of telemetry pass through here for each report.
//!
//! A crate of its own for its optimisation: the dev profile, which is what README builds, compiles these few hundred lines with `opt-level = 3` in
//! seconds. polars, which reads the small tables, is unoptimised there (tests/bench/README.md has both). Rows are streamed and never held: of each
//! there remain a number and the place of its words in lists of the different ones.

mod columns;
mod read;

#[cfg(test)]
mod tests;

pub use columns::{Columns, Group, Numbers, Series, Words};
pub use read::{MOST, Problem, Wanted, check, parts, read};
