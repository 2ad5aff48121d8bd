//! Runtimes: what backends need, where it is found for this machine and for a device, and how it is fetched or built into the
//! user's cache.

pub mod android;
mod archive;
pub mod build;
mod cache;
mod find;
mod for_device;
pub mod python;
pub mod qairt;

pub use cache::Cache;
pub use find::{find, find_in, on_path, own_program};
pub use for_device::{NoAgent, agent_for};
