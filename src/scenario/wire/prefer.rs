//! `[prefer]` as it is written.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::super::{preset::presets, value::At};

macro_rules! prefer {
    ($($(#[$doc:meta])* $field:ident = $word:literal,)+) => {
        /// What the selection prefers among the candidates that meet the requirements: weights by the words of `[[require]]`, of which only the
        /// proportions count (`ttft = 2` and `decode = 1` weigh as 4 and 2 do). Without it TTFT and decode count alike.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct Prefer {
            /// A use case: its preset adds limits where the scenario has none of that metric, and weights where `[prefer]` has none at all. A
            /// preset's values are proposals of `bench`, not measurements; each has its reason in `src/scenario/presets.toml`.
            #[schemars(with = "Option<UseWord>")]
            pub r#use: Option<At<String>>,
            $($(#[$doc])* #[schemars(range(min = 0.0))] pub $field: Option<At<f64>>,)+
        }
        impl Prefer {
            /// The weights that are given, by the word of what they weigh.
            pub fn weights(&self) -> Vec<(&'static str, &At<f64>)> {
                [$(($word, self.$field.as_ref()),)+].into_iter().filter_map(|(word, at)| Some((word, at?))).collect()
            }
            /// Every word that can have a weight: those of the subjects that are numbers.
            #[cfg(test)]
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }
    };
}
prefer! {
    /// Weight of the time to the first token.
    ttft = "ttft",
    /// Weight of the prefill rate.
    prefill = "prefill",
    /// Weight of the decode rate.
    decode = "decode",
    /// Weight of the time per output token.
    tpot = "tpot",
    /// Weight of the median gap between tokens.
    itl = "itl",
    /// Weight of the time from prompt to last token.
    e2e = "e2e",
    /// Weight of the load time.
    load = "load",
    /// Weight of the peak memory.
    memory = "memory",
    /// Weight of the watts of the whole device in decode, gross.
    power = "power",
    /// Weight of the net joules of a generated token.
    energy = "energy",
    /// Weight of the generated tokens for one percent of the battery.
    tokens_per_battery_percent = "tokens-per-battery-percent",
    /// Weight of the throughput at the end of the soak.
    sustained = "sustained",
    /// Weight of what is left of the soak's first throughput at its end.
    sustained_ratio = "sustained-ratio",
    /// Weight of the share of tokens before the first difference from the reference.
    agreement = "agreement",
    /// Weight of the size of the model's files.
    model_size = "model-size",
}

/// Schema of a use case: the names of the presets.
pub struct UseWord;
impl JsonSchema for UseWord {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UseWord".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = presets().iter().map(|preset| preset.name.as_str()).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}
