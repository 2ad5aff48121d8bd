//! What the soaks of a comparison came to: a row a cell. Ranks are those of the table, within a class and between backends alone.

use super::details::name;
use super::figures::{DASH, number};
use super::groups::Group;
use super::view::Grid;
use crate::report::load::Cell;

/// Columns of cells.csv with a number, and their words.
const NUMBERS: [(&str, &str); 12] = [
    ("soak_minute_1_tok_s", "first minute, tok/s"),
    ("soak_minute_1_rank", "rank then"),
    ("soak_minute_30_tok_s", "30th minute, tok/s"),
    ("soak_minute_30_rank", "rank then"),
    ("sustained_ratio", "end over start"),
    ("time_to_throttle_s", "slower from, s"),
    ("steady_state_s", "steady from, s"),
    ("throttled_fraction", "throttled, share of time"),
    ("rise_c_per_min_60s", "rise in 60 s, C/min"),
    ("rise_c_per_min_5min", "rise in 5 min, C/min"),
    ("peak_npu_c", "peak NPU, C"),
    ("peak_skin_c", "peak skin, C"),
];

/// The table, if there was a soak. Numbers that no cell has are left out.
pub fn table(group: &Group, cells: &[&Cell]) -> Option<Grid> {
    let soaked: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.text("soak_ended").is_some()).collect();
    if soaked.is_empty() {
        return None;
    }
    let used: Vec<(&str, &str)> = NUMBERS.into_iter().filter(|(column, _)| soaked.iter().any(|c| c.number(column).is_some())).collect();
    let mut columns = vec!["Cell".to_owned(), "ended".to_owned(), "minutes".to_owned()];
    columns.extend(used.iter().map(|(_, word)| (*word).to_owned()));
    columns.extend(["throttled first".to_owned(), "tokens".to_owned()]);
    let row = |cell: &&Cell| {
        let text = |column: &str| cell.text(column).unwrap_or(DASH).to_owned();
        let figure = |column: &str| cell.number(column).map_or_else(|| DASH.to_owned(), number);
        let minutes = cell.number("soak_s").map_or_else(|| DASH.to_owned(), |s| number(s / 60.0));
        let mut values = vec![name(group, cell), text("soak_ended"), minutes];
        values.extend(used.iter().map(|(column, _)| figure(column)));
        values.extend([text("first_throttle"), text("soak_check_tokens")]);
        values
    };
    let rows = soaked.iter().map(row).collect();
    Some(Grid {
        title: "Soak: one long launch a cell, in no other figure (soak.csv has its windows, soak_events.csv what happened)".into(),
        rows,
        columns,
        text: true,
        open: true,
    })
}
