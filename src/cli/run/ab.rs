//! What an A/B run says.

use std::path::Path;

use crate::cli::{Format, console::Console};

pub fn print(_format: Format, _console: &Console, (_a, _b): (&Path, &Path)) {}
