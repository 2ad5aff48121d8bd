//! The operations of the profile pass.

use std::{collections::BTreeMap, rc::Rc};

use bench_tables::Columns;

use super::large::{by_cell, shown};
use super::types::{CellKey, Layer};

/// `layers.csv` by cell, in its order. Of equal words there is one copy: a table has hundreds of thousands of rows and a few thousand words.
pub fn layers(table: &Columns) -> BTreeMap<CellKey, Vec<Layer>> {
    const WORDS: [&str; 11] =
        ["graph", "phase", "name", "op_type", "part", "op_kind", "op_class", "unit", "value_unit", "value_means", "method"];
    let words = WORDS.map(|column| shown(table, column));
    let codes = WORDS.map(|column| &table.words(column).codes);
    let [value, folded, count] = ["value", "folded", "count"].map(|column| table.numbers(column));
    let mut graphs: BTreeMap<(u32, u32), Rc<str>> = BTreeMap::new();
    let mut found: BTreeMap<CellKey, Vec<Layer>> = BTreeMap::new();
    for (key, rows) in by_cell(table) {
        let layers = found.entry(key).or_default();
        for row in rows {
            let Some(value) = value.at(row).filter(|value| *value >= 0.0) else { continue };
            let at = |column: usize| codes[column][row as usize];
            let word = |column: usize| words[column][at(column) as usize].clone();
            let graph = graphs.entry((at(1), at(0))).or_insert_with(|| {
                let named = [word(1), word(0)].into_iter().filter(|word| !word.is_empty());
                named.collect::<Vec<_>>().join(" · ").into()
            });
            layers.push(Layer {
                graph: graph.clone(),
                phase: word(1),
                name: word(2),
                op_type: word(3),
                part: word(4),
                kind: word(5),
                class: word(6),
                unit: word(7),
                value_unit: word(8),
                means: word(9),
                method: word(10),
                folded: folded.at(row) == Some(1.0),
                value,
                count: count.at(row).map(|count| count as i64),
            });
        }
    }
    found
}
