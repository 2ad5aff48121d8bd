//! Models of the possible: what a decoder has to move and to compute, and how fast a SoC can do that at best. Pure; every figure is derived.
//!
//! ```text
//! geometry, quantisation -> demand (bytes, operations, memory) -\
//! catalogue, DDR node    -> peak (bandwidth)                   --> roof -> standing of a measured rate
//! ```
//!
//! A roof is a bound. Where something is not known, the least that it can be is taken, and the figure says so: a rate above it is then wrong
//! whatever the unknown is.

mod demand;
mod estimate;
mod peak;
mod precision;
mod standing;
#[cfg(test)]
mod tests;

pub use demand::{Demand, REST_MB, kv_bytes_per_token};
pub use estimate::{Asked, Figure, estimate};
pub use peak::{Peak, PeakSource, peak};
pub use precision::{Precision, Told};
pub use standing::{Conditions, Standing, applies};
