//! The JSON Schema of the scenario file, for editors and for the walk: one source of truth, the wire types.

use std::sync::LazyLock;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use super::wire;

/// The JSON Schema (draft 2020-12) of the scenario file, pretty-printed, with a newline at the end: `scenarios/schema.json`.
pub fn schema() -> String {
    serde_json::to_string_pretty(&*SCHEMA).unwrap_or_default() + "\n"
}

/// Schema of the scenario file.
pub(super) static SCHEMA: LazyLock<Value> = LazyLock::new(schema_of::<wire::File>);

/// Schema of a wire type without `null`, which TOML does not have.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    drop_null(&mut schema);
    schema
}

fn drop_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(words)) = map.get_mut("enum") {
                words.retain(|w| !w.is_null());
            }
            if let Some(Value::Array(any)) = map.get_mut("anyOf") {
                any.retain(|s| s.get("type").is_none_or(|t| t != "null"));
                if let [Value::Object(only)] = any.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    for (key, value) in only {
                        map.entry(key).or_insert(value);
                    }
                }
            }
            map.values_mut().for_each(drop_null);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_null),
        _ => {}
    }
}
