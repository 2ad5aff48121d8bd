//! The history of many runs: the trend of each cell, its steps dated to a run, and what changed with it.

mod attribute;
mod scan;
mod series;
mod table;
mod trend;

pub use attribute::changes;
pub use scan::{LeftOut, Run, Scan, ScanError, chip, look, scan};
pub use series::{Key, Point, Series, Wanted, collect};
pub use table::{Figure, Gap, method};
pub use trend::{NoFigure, Step, StepNight, Trend, between, near, nights, old, step_nights, tonight, trend};
