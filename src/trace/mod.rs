//! `bench trace`: a run as Chrome trace events, which ui.perfetto.dev and chrome://tracing open.
//!
//! Everything lies on the device's `CLOCK_MONOTONIC` (design 2b.4), and a length is one that was measured: what has no time of its own (cycles,
//! composed figures) is left out and said. A folder that has its logs no more is drawn from its tables, each launch from its own zero.

mod alignment;
mod choice;
mod counters;
mod frameworks;
mod harness;
mod launch;
mod layers;
mod recorded;
mod spans;
mod tables;
mod write;
mod writer;

pub use choice::Wanted;
pub use write::{Drawn, TraceError, write};
