//! The history of many runs: the trend of each cell, its steps dated to a run, and what changed with it.

mod scan;
mod series;
mod table;

pub use scan::{LeftOut, Run, Scan, ScanError, scan};
pub use series::{Key, Point, Series, Wanted, collect};
pub use table::{Figure, Gap};
