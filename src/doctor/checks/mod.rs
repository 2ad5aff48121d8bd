//! The checks, each list in the order in which it is told.

pub mod artifact;
pub mod backend;
pub mod device;
pub mod genie;
pub mod host;
pub mod load;
pub mod sources;
