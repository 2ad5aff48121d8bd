//! Windows and events of soaks.

use std::collections::BTreeMap;
use std::path::Path;

use super::run::keys;
use super::types::{Run, SoakEvent};
use crate::report::ReportError;
use crate::results::read::read;
use crate::results::schema::{SOAK, SOAK_EVENTS, Type};

/// Reads both tables. A run without a soak, or of an older bench, has none, and nothing is said.
pub fn soaks(dir: &Path, run: &mut Run) -> Result<(), ReportError> {
    let columns: Vec<&'static str> = SOAK.columns.iter().filter(|c| c.ty == Type::Float || c.ty == Type::Int).map(|c| c.name).collect();
    let wanted: Vec<&str> = ["device", "cell"].into_iter().chain(columns.iter().copied()).collect();
    if let Some(mut table) = read(dir, &SOAK, &wanted, None)? {
        let keys = keys(&table);
        let mut values: BTreeMap<&'static str, Vec<Option<f64>>> = columns.iter().map(|name| (*name, table.float(name))).collect();
        let t = values.remove("t_s").unwrap_or_default();
        let length = values.remove("length_s").unwrap_or_default();
        for (row, key) in keys.into_iter().enumerate() {
            let (Some(t), Some(length)) = (t[row], length[row]) else { continue };
            let soak = run.soaks.entry(key).or_default();
            for (name, column) in &values {
                // A window's figures stand in its middle.
                soak.series.entry(name).or_default().extend(column[row].map(|value| (t + length / 2.0, value)));
            }
            soak.seconds = soak.seconds.max(t + length);
            soak.window_s = soak.window_s.max(length);
        }
        run.problems.extend(table.complaint());
    }
    if let Some(mut table) = read(dir, &SOAK_EVENTS, &["device", "cell", "t_s", "kind", "temp_c", "what"], None)? {
        let (keys, t, temp) = (keys(&table), table.float("t_s"), table.float("temp_c"));
        let (kind, what) = (table.text("kind"), table.text("what"));
        for (row, key) in keys.into_iter().enumerate() {
            let Some(t_s) = t[row] else { continue };
            let word = |column: &[Option<String>]| column[row].clone().unwrap_or_default();
            run.soaks.entry(key).or_default().events.push(SoakEvent { t_s, kind: word(&kind), temp_c: temp[row], what: word(&what) });
        }
        run.problems.extend(table.complaint());
    }
    Ok(())
}
