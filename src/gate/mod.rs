//! Judging runs: one against another, one night against those before, one against what the product needs.

pub mod ab;
pub mod busy;
pub mod compare;
pub mod history;
pub mod nightly;
pub mod nights;
pub mod profiles;
pub mod require;
pub mod run;
pub mod unlike;
pub mod verdict;
