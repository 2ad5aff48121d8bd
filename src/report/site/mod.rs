//! The lab's site: an index of runs, devices and models, and a page of trends for each device, beside the runs' own pages. Static files.

mod page;
mod view;

pub use page::{GATE, INDEX, href, is_fresh, keep, others, write};
pub use view::{DevicePage, DeviceRow, GateRow, LeftOut, Link, ModelRow, RunRow, Site, Step, Trend, Trends, Worse};
