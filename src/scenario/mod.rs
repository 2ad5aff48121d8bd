//! Scenarios: a TOML file (`wire`) becomes a checked [`Scenario`], and on a device a [`Plan`] of cells.
//!
//! ```text
//! text -> walk (keys, types, words) -> wire -> check (meaning, files, backends) -> Scenario -> expand -> Plan
//! ```
//!
//! Every problem of a file is reported at once ([`Problems`]); nothing here runs a program or talks to a device.

mod ab;
mod check;
mod checked;
mod command;
mod estimate;
mod expand;
mod filter;
mod geometry;
mod key;
mod limit;
mod load;
mod order;
mod parameters;
mod plan;
mod power;
mod prefer;
mod preset;
mod problem;
mod render;
mod require;
mod schema;
mod soak;
mod source;
mod state;
mod suggest;
mod value;
mod walk;
mod wire;

#[cfg(test)]
mod tests;

use crate::device::soc;

pub use ab::{Ab, AbError, Side, level, pair};
pub use checked::{
    ArtifactSource, ArtifactSpec, DeviceChoice, Load, Matrix, Measure, ModelSpec, Order, Profile, Reference, Roots, Scenario, Template,
    Verify,
};
pub use command::Command;
pub use estimate::{Assumptions, Estimate, bits, estimate};
pub use filter::{Filter, FilterError};
pub use geometry::read_alone as read_geometry;
pub use key::{Key, Selector};
pub use limit::Limit;
pub use load::{check_text, load};
pub use order::{Scheduled, schedule, turns};
pub use parameters::{Parameters, Unknown};
pub use plan::{FORMAT_VERSION, Plan, PlanError, PlannedCell};
pub use power::{MeterSource, Power, PowerMethod};
pub use prefer::Prefer;
pub use preset::{Preset, Proposal, Weighed, preset, presets};
pub use problem::{Problem, Problems, Severity};
pub use require::{Phase, Requirement, SUBJECTS, Source, Statistic, Subject};
pub use schema::schema;
pub use soak::{SOAK_EVENTS_LIMIT, Soak, SoakCells, TripLimit};
pub use soc::find as find_soc;
pub use state::{Band, Environment, Pin, Policy, Settle};
