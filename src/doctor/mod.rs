//! `bench doctor`: everything that a run will need, looked at before it is needed.
//!
//! ```text
//! read, ask (facts of this machine, its files and the devices) -> checks (pure, explicit lists) -> findings
//! ```

pub mod ask;
pub mod build;
pub mod checks;
mod finding;
pub mod memory;
pub mod observer;
pub mod read;
pub mod unplug;

pub use finding::{Check, Finding, Said, Severity, examine};
