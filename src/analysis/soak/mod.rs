//! What a soak shows: windows of throughput, latency, heat and clocks, when and by what it was throttled, and whether its tokens stayed
//! right. Pure functions over the queries of one launch and what was sampled beside it; definitions in `facts/metrics.md` and rule R20.

mod answers;
mod figures;
mod heat;
mod outliers;
mod throttle;
mod trace;
mod windows;

#[cfg(test)]
mod tests;

pub use figures::{Association, Happening, Input, Rise, Soak, Throttle, Window, Worked, analyse};
pub use trace::{Series, Trace, peaks};

/// Parts of a device that have columns of their own, in their order.
pub const DOMAINS: [&str; 6] = ["npu", "cpu", "gpu", "ddr", "skin", "battery"];
