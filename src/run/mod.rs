//! Carrying out a plan: stage, launch, observe, parse, verify, record.

mod artifacts;
mod capture;
mod evaluate;
pub mod events;
mod exact;
mod idle;
mod launch;
mod loading;
pub mod logs;
mod memory;
mod originals;
mod pins;
mod power;
mod prompts;
mod prose;
mod repetition;
mod session;
mod settle;
mod soak;
mod warmup;

pub use artifacts::needs_recipes;
pub use capture::{EVENTS, OUTPUT_LIMIT};
pub use evaluate::{LaunchMetrics, QueryMetrics, RUNTIME_REPORTED, is_composed, launch_figures, launch_metrics, query_metrics, scope};
pub use launch::worst;
pub use loading::{LoadState, load_state};
pub use memory::{FIGURES as MEMORY_FIGURES, SHARED, Trace};
pub use power::absence;
pub use session::{NO_PARTNER, Outcome, RunError, Setup, run};
pub use warmup::warmup;
