//! The operations of the profile pass.

use std::{collections::BTreeMap, sync::Arc};

use bench_tables::Columns;

use super::large::{by_cell, shown};
use super::types::{CellKey, Layer, Sort};
use crate::results::read::visible;

/// `layers.csv` by cell, in its order. A table has hundreds of thousands of rows, a few thousand names and some dozen sorts of operations.
pub fn layers(table: &Columns) -> BTreeMap<CellKey, Vec<Layer>> {
    const WORDS: [&str; 10] = ["graph", "phase", "op_type", "part", "op_kind", "op_class", "unit", "value_unit", "value_means", "method"];
    let names = shown(table, "name");
    let name = &table.words("name").codes;
    let [value, folded, count] = ["value", "folded", "count"].map(|column| table.numbers(column));
    let sorts = table.groups(&table.all(), &WORDS);
    let mut sort_of: Vec<Option<Arc<Sort>>> = vec![None; table.rows];
    for group in sorts {
        let sort = Arc::new(sort(WORDS.map(|column| visible(table.words(column).at(group.rows[0])))));
        for row in group.rows {
            sort_of[row as usize] = Some(sort.clone());
        }
    }
    let mut found: BTreeMap<CellKey, Vec<Layer>> = BTreeMap::new();
    for (key, rows) in by_cell(table) {
        let layers = found.entry(key).or_default();
        layers.extend(rows.into_iter().filter_map(|row| {
            Some(Layer {
                value: value.at(row).filter(|value| *value >= 0.0)?,
                name: names[name[row as usize] as usize].clone(),
                sort: sort_of[row as usize].take()?,
                folded: folded.at(row) == Some(1.0),
                count: count.at(row).map(|count| count as i64),
            })
        }));
    }
    found
}

fn sort([graph, phase, op_type, part, kind, class, unit, value_unit, means, method]: [String; 10]) -> Sort {
    let named = [phase.as_str(), graph.as_str()].into_iter().filter(|word| !word.is_empty());
    Sort { graph: named.collect::<Vec<_>>().join(" · "), phase, op_type, part, kind, class, unit, value_unit, means, method }
}
