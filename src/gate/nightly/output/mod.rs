//! A judgement for eyes and for CI systems. Names of cells, devices and runtimes come from elsewhere: each form escapes them in its own way.

mod annotations;
mod human;
mod junit;
mod markdown;
mod record;
mod words;

#[cfg(test)]
mod tests;

pub use annotations::annotations;
pub use human::human;
pub use junit::junit;
pub use markdown::markdown;
pub use record::{Record, word};
pub use words::requirement;
