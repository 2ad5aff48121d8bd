//! What an A/B run says when it ends: what `bench compare A B` says of its two sides.

use std::path::Path;

use crate::{
    cli::{Format, compare, console::Console},
    gate::{
        compare::{Settings, compare},
        run::load,
    },
};

/// Prints it. The tables are on the disk: that they can't be compared is a warning.
pub fn print(format: Format, console: &Console, (a, b): (&Path, &Path)) {
    let read = |folder: &Path| load(folder).map_err(|e| e.to_string());
    let compared = read(a).and_then(|a| compare(&a, &read(b)?, &Settings::default()).map_err(|e| e.to_string()));
    match (compared, format) {
        (Err(e), _) => console.line(&format!("warning: the two sides can't be compared: {e}")),
        (Ok(comparison), Format::Json) => {
            let mut value = compare::json(&comparison);
            value["event"] = "ab".into();
            let _ = crate::cli::print(&format!("{value}\n"));
        }
        (Ok(comparison), Format::Human) => compare::table(&comparison).lines().for_each(|line| console.line(line)),
    }
}
