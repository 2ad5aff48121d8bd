//! Judging runs: one against another, one night against those before, one against what the product needs.

pub mod run;
pub mod verdict;
