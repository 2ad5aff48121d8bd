//! The first look at a file: keys, types and words against the JSON Schema of the wire types, with the place of every problem.
//!
//! serde stops at the first problem. The walk reports them all and takes the bad parts out, so that serde reads the rest and the
//! checks of its meaning can go on.

use std::{borrow::Cow, ops::Range};

use serde_json::{Map, Value};
use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    problem::Collector,
    suggest::{self, show},
};

/// Walks one document.
pub struct Walk<'a> {
    root: &'a Value,
    out: &'a mut Collector,
    damaged: Vec<String>,
}

type Node<'i> = Spanned<DeValue<'i>>;

impl<'a> Walk<'a> {
    /// Walks a document against a schema. The result is what is left of it, and the paths (`matrix.quant`) at which something
    /// was taken out: a check must not call those empty or missing.
    pub fn document<'i>(root: &'a Value, table: Spanned<DeTable<'i>>, out: &'a mut Collector) -> (Spanned<DeTable<'i>>, Vec<String>) {
        let mut walk = Self { root, out, damaged: Vec::new() };
        // The span of the whole file would underline all of it.
        let kept = walk.table(table.into_inner(), 0..0, root, "");
        (Spanned::new(0..0, kept), walk.damaged)
    }

    fn value<'i>(&mut self, node: Node<'i>, schema: &'a Value, path: &str) -> Option<Node<'i>> {
        let schema = self.resolve(schema);
        if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
            // One value or a list of them; a single one becomes a list.
            let is_list = node.get_ref().is_array();
            let branch = any.iter().find(|s| (self.resolve(s)["type"] == "array") == is_list)?;
            let span = node.span();
            let kept = self.value(node, branch, path)?;
            return Some(if is_list { kept } else { Spanned::new(span, DeValue::Array(std::iter::once(kept).collect())) });
        }
        if let Some(words) = words(schema) {
            return self.word(node, &words, path);
        }
        let span = node.span();
        let wanted = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let right = match node.get_ref() {
            DeValue::Table(_) => wanted == "object",
            DeValue::Array(_) => wanted == "array",
            DeValue::String(_) => wanted == "string",
            DeValue::Boolean(_) => wanted == "boolean",
            DeValue::Integer(_) => matches!(wanted, "integer" | "number"),
            DeValue::Float(_) => wanted == "number",
            DeValue::Datetime(_) => false,
        };
        if !right {
            let message = format!("{} must be {}, not {}", key_of(path), type_word(wanted), kind(node.get_ref()));
            return self.refuse(path, span, message, description(schema));
        }
        match node.into_inner() {
            DeValue::Table(table) => Some(Spanned::new(span.clone(), DeValue::Table(self.table(table, span, schema, path)))),
            DeValue::Array(array) => {
                // How many there have to be is the checks' business, which know what for.
                let short = schema.get("minItems").and_then(Value::as_u64).is_some_and(|n| n > 0) && array.is_empty();
                if short {
                    return self.refuse(path, span, format!("{} is empty", key_of(path)), "name at least one value".to_owned());
                }
                let item = schema.get("items").unwrap_or(&Value::Null);
                let kept = array.into_iter().enumerate().filter_map(|(i, v)| self.value(v, item, &format!("{path}[{i}]"))).collect();
                Some(Spanned::new(span, DeValue::Array(kept)))
            }
            number @ (DeValue::Integer(_) | DeValue::Float(_)) => self.number(Spanned::new(span, number), schema, path),
            other => Some(Spanned::new(span, other)),
        }
    }

    fn table<'i>(&mut self, table: DeTable<'i>, span: Range<usize>, schema: &'a Value, path: &str) -> DeTable<'i> {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|s| s.is_object());
        let known: Vec<&str> = properties.unwrap_or(&none).keys().map(String::as_str).collect();
        let unknown = |name: &str| others.is_none() && !known.contains(&name);
        // A misspelt key is one problem, not two: the key that it means is not missing as well.
        let meant: Vec<&str> =
            table.keys().filter(|k| unknown(k.get_ref())).filter_map(|k| suggest::nearest(k.get_ref(), known.iter().copied())).collect();
        for key in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !table.contains_key(key) {
                self.damaged.push(join(path, key));
                if meant.contains(&key) {
                    continue;
                }
                let about = properties.and_then(|p| p.get(key)).map(|s| self.describe(s)).unwrap_or_default();
                self.out.error(span.clone(), format!("{} needs the key `{key}`", section(path)), about);
            }
        }
        let mut kept = DeTable::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            let Some(schema) = properties.and_then(|p| p.get(name)).or(others) else {
                let message = format!("unknown key {} in {}", show(name), section(path));
                // A damaged section is not called incomplete: the key may be a misspelt one.
                self.refuse(path, key.span(), message, suggest::help(name, &known));
                continue;
            };
            if let Some(value) = self.value(value, schema, &join(path, name)) {
                kept.insert(key, value);
            }
        }
        kept
    }

    fn word<'i>(&mut self, node: Node<'i>, known: &[&str], path: &str) -> Option<Node<'i>> {
        let Some(word) = node.get_ref().as_str() else {
            let message = format!("{} must be a text in quotes, not {}", key_of(path), kind(node.get_ref()));
            return self.refuse(path, node.span(), message, format!("one of: {}", known.join(", ")));
        };
        if known.contains(&word) {
            return Some(node);
        }
        let message = format!("{} is not a value of {}", show(word), key_of(path));
        self.refuse(path, node.span(), message, suggest::help(word, known))
    }

    fn number<'i>(&mut self, node: Node<'i>, schema: &Value, path: &str) -> Option<Node<'i>> {
        let whole = schema["type"] == "integer";
        let value = match node.get_ref() {
            DeValue::Integer(i) => i64::from_str_radix(&i.as_str().replace('_', ""), i.radix()).ok().map(|n| n as f64),
            DeValue::Float(f) => f.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        let least = schema.get("minimum").and_then(Value::as_f64).unwrap_or(f64::MIN);
        let most = schema.get("maximum").and_then(Value::as_f64);
        let largest = most.unwrap_or(if schema["format"] == "uint32" { f64::from(u32::MAX) } else { f64::MAX });
        let wrong = match (value, most) {
            (Some(v), _) if v >= least && v <= largest => return Some(node),
            (Some(v), _) if v < least => format!("at least {least}"),
            (_, Some(most)) => format!("at most {most}"),
            // Too large for its type, or not a number at all.
            (_, None) if whole => "a whole number in range".to_owned(),
            (_, None) => "a finite number".to_owned(),
        };
        self.refuse(path, node.span(), format!("{} must be {wrong}", key_of(path)), description(schema))
    }

    fn refuse<'i>(&mut self, path: &str, span: Range<usize>, message: String, help: String) -> Option<Node<'i>> {
        self.damaged.push(path.to_owned());
        self.out.error(span, message, Some(help).filter(|h| !h.is_empty()));
        None
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/$defs/"));
        name.and_then(|n| self.root.get("$defs")?.get(n)).unwrap_or(schema)
    }

    fn describe(&self, schema: &'a Value) -> Option<String> {
        let text = description(schema);
        let text = if text.is_empty() { description(self.resolve(schema)) } else { text };
        (!text.is_empty()).then_some(text)
    }
}

fn description(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ")
}

/// The words of a closed list, in either of the forms in which schemars writes one.
fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(list) = schema.get("enum").and_then(Value::as_array) {
        return Some(list.iter().filter_map(Value::as_str).collect());
    }
    let list = schema.get("oneOf").and_then(Value::as_array)?;
    Some(list.iter().filter_map(|s| s.get("const").and_then(Value::as_str)).collect())
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A path without the places in lists: `matrix.exclude[0].backend` is `matrix.exclude.backend`.
fn plain(path: &str) -> Cow<'_, str> {
    let Some((head, tail)) = path.split_once('[') else { return path.into() };
    let rest = tail.split_once(']').map_or("", |(_, rest)| rest);
    format!("{head}{}", plain(rest)).into()
}

fn section(path: &str) -> String {
    match plain(path) {
        p if p.is_empty() => "the file".to_owned(),
        p if path.ends_with(']') => format!("[[{p}]]"),
        p => format!("[{p}]"),
    }
}

fn key_of(path: &str) -> String {
    let plain = plain(path);
    show(plain.rsplit_once('.').map_or(&*plain, |(_, key)| key))
}

fn type_word(schema_type: &str) -> &'static str {
    match schema_type {
        "object" => "a table",
        "array" => "a list",
        "string" => "a text in quotes",
        "integer" => "a whole number",
        "number" => "a number",
        _ => "`true` or `false`",
    }
}

fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("the text {}", show(s)),
        DeValue::Integer(i) => format!("the number {}", show(i.as_str())),
        DeValue::Float(f) => format!("the number {}", show(f.as_str())),
        DeValue::Boolean(b) => format!("`{b}`"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
