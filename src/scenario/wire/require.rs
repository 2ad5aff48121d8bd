//! `[[require]]` as it is written.

use std::borrow::Cow;

use bench_backend_api::Axis;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::{
    super::{
        require::{Phase, SUBJECTS, Statistic},
        value::{At, List, QuantWord, Texts, UnitWord},
    },
    Count, axis_of,
};

/// What the product needs of the cells that `where` names. Each is a veto: `bench run` and `bench gate` end with exit code 10 when one is violated.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Require {
    /// What is limited.
    #[schemars(required, with = "MetricWord")]
    pub metric: Option<At<String>>,
    /// The limit with its unit, for instance `<= 380ms`, `>= 12tok/s`, `<= 4W`, `<= 1800MB`, `>= 80%`, or `== npu` for a word.
    #[schemars(required)]
    pub limit: Option<At<String>>,
    /// Which value: `median` (the default of times and rates), or what 90, 95 or 99 % of the queries keep to; `gross` or `net` of power and energy.
    #[schemars(with = "Option<StatisticWord>")]
    pub statistic: Option<At<String>>,
    /// The conditions: of which cells, phase or minute it is said.
    pub r#where: Option<At<Where>>,
}

/// The conditions of a requirement: it is about the cells that agree with all of these keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Where {
    /// Ids of backends.
    pub backend: Option<List<String>>,
    /// Names of models.
    pub model: Option<List<String>>,
    /// Classes of quantisation.
    #[schemars(with = "Option<List<QuantWord>>")]
    pub quant: Option<List<String>>,
    /// Tokens that are prefilled.
    pub prompt_tokens: Option<List<Count>>,
    /// Tokens that are generated.
    pub gen_tokens: Option<List<Count>>,
    /// Processors.
    #[schemars(with = "Option<List<UnitWord>>")]
    pub unit: Option<List<String>>,
    /// Context lengths, in tokens.
    pub context: Option<List<Count>>,
    /// Precisions of the KV cache.
    pub kv: Option<List<String>>,
    /// Batch sizes.
    pub batch: Option<List<Count>>,
    /// Numbers of CPU threads.
    pub threads: Option<List<Count>>,
    /// Performance profiles.
    pub perf_profile: Option<List<String>>,
    /// Variants.
    pub variant: Option<List<String>>,
    /// Part of the answer: of `power` and `energy`.
    #[schemars(with = "Option<PhaseWord>")]
    pub phase: Option<At<String>>,
    /// Minute of the soak, from 1: of `sustained` and `sustained-ratio`.
    #[schemars(range(min = 1))]
    pub minute: Option<At<u32>>,
}
axis_of!(Where);

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $words:expr) => {
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
                let words: Vec<&str> = $words.collect();
                json_schema!({ "type": "string", "enum": words })
            }
        }
    };
}
words! { /// Schema of what can be limited.
MetricWord, SUBJECTS.iter().map(|s| s.word) }
words! { /// Schema of a statistic.
StatisticWord, ["p50"].into_iter().chain(Statistic::ALL.iter().map(|s| s.as_str())) }
words! { /// Schema of a part of the answer.
PhaseWord, Phase::ALL.iter().map(|p| p.as_str()) }
