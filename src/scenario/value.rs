//! Building blocks of the wire types: values that know where they stand in the file.

use std::{borrow::Cow, ops::Range};

use bench_backend_api::{Quant, Unit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_spanned::Spanned;

/// A value and its bytes in the file. [`Spanned`] itself has no schema, and this one's is the value's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands: bytes from the start of the file.
    pub span: (usize, usize),
}
impl<T> At<T> {
    /// Where the value stands, in bytes.
    pub const fn span(&self) -> Range<usize> {
        self.span.0..self.span.1
    }
    /// Another value at the same place.
    pub fn with<U>(&self, value: U) -> At<U> {
        At { value, span: self.span }
    }
}
impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Spanned::<T>::deserialize(d).map(|s| Self { span: (s.span().start, s.span().end), value: s.into_inner() })
    }
}
impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// One value or several: `unit = "npu"` means `unit = ["npu"]`. The walk makes a list of a single value before serde sees it,
/// so that no untagged enum, which would lose the place, is needed.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent, bound(deserialize = "T: Deserialize<'de>"))]
pub struct List<T>(pub Vec<At<T>>);
impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("List_of_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [item, { "type": "array", "items": item, "minItems": 1 }] })
    }
}

/// Reading the values of an optional key as text, whatever their type: for the keys that select cells.
pub trait Texts {
    /// The values in order.
    fn texts(&self) -> Vec<At<String>>;
}
impl<T: ToString> Texts for Option<List<T>> {
    fn texts(&self) -> Vec<At<String>> {
        self.iter().flat_map(|l| &l.0).map(|v| v.with(v.value.to_string())).collect()
    }
}
impl<T: ToString> Texts for Option<At<T>> {
    fn texts(&self) -> Vec<At<String>> {
        self.iter().map(|v| v.with(v.value.to_string())).collect()
    }
}

/// Keys of the file with other values. They are laid over the file, and the walk sees the result; a table with them in it never reaches serde.
#[derive(Debug, Clone, Deserialize)]
pub struct Overlay {}
impl JsonSchema for Overlay {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Overlay".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

macro_rules! closed_list {
    ($(#[$doc:meta])* $name:ident of $list:ident) => {
        $(#[$doc])*
        pub struct $name;
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let words: Vec<&str> = $list::ALL.iter().map(|w| w.as_str()).collect();
                json_schema!({ "type": "string", "enum": words })
            }
        }
    };
}
closed_list! { /// Schema of a quantisation: the contract's closed list.
QuantWord of Quant }
closed_list! { /// Schema of a processor: the contract's closed list.
UnitWord of Unit }
