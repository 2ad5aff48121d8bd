//! The lab's site: an index of runs, devices and models, and pages of trends of each device and each model, beside the runs' own pages. Static files.

mod page;
mod view;

pub use page::{GATE, INDEX, href, is_fresh, keep, others, write};
pub use view::{DeviceRow, GateRow, LeftOut, Link, ModelRow, Never, RunRow, Site, Step, Trend, TrendPage, Trends, Worse};
