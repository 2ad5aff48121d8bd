//! The report of a made-up run, from end to end.

mod limits;
mod matrix;
mod page;
mod support;
mod why;
