//! The small part of YAML that AI Hub's `metadata.yaml` uses: keys by indentation, plain values, and lists in brackets. Everything else is
//! left out. What comes out is as `metadata.json` would hold it.

use serde_json::{Map, Value};

/// Deeper nesting than the format has.
const DEEPEST: usize = 16;

/// Reads it.
pub fn read(text: &str) -> Value {
    let mut root = Map::new();
    // Indentation and key of each open level.
    let mut open: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let Some((key, rest)) = line.trim().split_once(':').filter(|(key, _)| !key.starts_with(['#', '-'])) else { continue };
        while open.last().is_some_and(|(depth, _)| *depth >= indent) {
            open.pop();
        }
        let key = key.trim().trim_matches(['"', '\'']).to_owned();
        let rest = rest.split(" #").next().unwrap_or_default().trim();
        if rest.is_empty() {
            if open.len() < DEEPEST {
                open.push((indent, key));
            }
        } else if let Some(table) = open
            .iter()
            .try_fold(&mut root, |table, (_, key)| table.entry(key.clone()).or_insert_with(|| Value::Object(Map::new())).as_object_mut())
        {
            table.insert(key, value(rest));
        }
    }
    Value::Object(root)
}

fn value(text: &str) -> Value {
    if let Some(list) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(value_of_one).collect();
    }
    value_of_one(text)
}

fn value_of_one(text: &str) -> Value {
    let plain = text.trim_matches(['"', '\'']);
    plain.parse::<u64>().map_or_else(|_| Value::from(plain), Value::from)
}
