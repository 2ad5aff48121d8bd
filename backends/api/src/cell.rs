//! What is measured: a [`Cell`] is one combination of backend, model, quantisation, workload and settings.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A closed list of words with a text form; used for every word that a scenario or a table may hold.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[doc = concat!("The word `", $text, "`.")] #[serde(rename = $text)] $variant),+ }
        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The word as scenarios and tables write it.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $text),+ } }
            /// The value that a word names, if it is one of the list.
            pub fn parse(word: &str) -> Option<Self> { Self::ALL.iter().copied().find(|v| v.as_str() == word) }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.as_str()) }
        }
    };
}
pub(crate) use words;

words! {
    /// The processor that is asked for, or that did the work.
    Unit { Cpu = "cpu", Gpu = "gpu", Npu = "npu", /// More than one processor by design.
        Hybrid = "hybrid" }
}
words! {
    /// Class of a quantisation. A class, not a format: two engines' `w4` differ in group size, scales and LM head, which
    /// stand in columns of their own (rule R29).
    Quant {
        Fp32 = "fp32", Fp16 = "fp16", Bf16 = "bf16",
        /// 8-bit weights, floating-point activations.
        W8 = "w8",
        /// 4-bit weights, floating-point activations.
        W4 = "w4",
        W8a16 = "w8a16", W4a16 = "w4a16", W8a8 = "w8a8", W4a8 = "w4a8",
        Q8_0 = "q8_0", Q4_0 = "q4_0", Q4KM = "q4_k_m",
    }
}
impl Quant {
    /// Whether weights and activations are floats, so that a model gives the tokens of its float32 reference.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Fp32 | Self::Fp16 | Self::Bf16)
    }
}
words! {
    /// What the numbers of a cell are about. Classes never share a chart, a rank or a ratio (design 2b.6).
    DeviceClass { Phone = "phone", Board = "board", Pc = "pc", /// A simulated NPU: its times are the simulator's.
        Emulator = "emulator" }
}
words! {
    /// A pass over the cells. Only `measure` feeds metrics; `profile` feeds layers and phases (design 2b.8), `soak` the soak's own columns.
    Pass { Measure = "measure", Profile = "profile", /// One launch that goes on for minutes to hours.
        Soak = "soak" }
}
words! {
    /// An optional axis of the matrix. Backend, model, quantisation and token counts are not in this list: every cell has them.
    Axis { Unit = "unit", Context = "context", Kv = "kv", Batch = "batch", Threads = "threads", PerfProfile = "perf-profile", Variant = "variant" }
}

/// The value of an optional axis in one cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Asked for by the scenario and settable by the backend.
    Asked(String),
    /// The backend knows this axis but has one value only (rule R10: `fixed:burst`).
    Fixed(String),
    /// The axis means nothing to this backend.
    NotApplicable,
}
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked(v) => f.pad(v),
            Self::Fixed(v) => f.pad(&format!("fixed:{v}")),
            Self::NotApplicable => f.pad("n/a"),
        }
    }
}

/// Shape of a decoder, from the scenario's geometry file. One with a `seed` is whole; of a real model the file tells what is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Geometry {
    /// Name of the geometry, for instance `tiny-llama`.
    pub name: String,
    /// Number of transformer blocks.
    pub layers: Option<u32>,
    /// Width of the residual stream.
    pub hidden: Option<u32>,
    /// Query heads.
    pub heads: Option<u32>,
    /// Key-value heads.
    pub kv_heads: Option<u32>,
    /// Width of a head.
    pub head_dim: Option<u32>,
    /// Width of the feed-forward layer.
    pub ffn: Option<u32>,
    /// Vocabulary size, in tokens.
    pub vocab: Option<u32>,
    /// Base of the rotary embedding.
    pub rope_theta: Option<f64>,
    /// Epsilon of RMSNorm.
    pub norm_eps: Option<f64>,
    /// The LM head is the embedding table.
    pub tied_embeddings: bool,
    /// Experts of a mixture, 0 for a dense model.
    pub experts: u32,
    /// Precision of the LM head, in bits.
    pub lm_head_bits: u32,
    /// Precision of the embedding table, in bits.
    pub embedding_bits: u32,
    /// Seed of the synthetic weights, if the model is made on the spot.
    pub seed: Option<u64>,
    /// Token that begins every text; `None` for a model without one.
    pub bos: Option<u32>,
    /// Token that ends a text.
    pub eos: Option<u32>,
    /// Token that fills a chunk.
    pub pad: Option<u32>,
}

/// The model of a cell: what the artifacts were built for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Name in the scenario.
    pub name: String,
    /// Context length of the artifacts, in tokens.
    pub context: u32,
    /// AR of the prefill graph in tokens, when the scenario tells it.
    pub chunk: Option<u32>,
    /// Shape, when the scenario tells it.
    pub geometry: Option<Geometry>,
}
impl Model {
    /// AR of a prefill graph that is made on the spot, and a guess about one that is not, on which no figure may rest: 128 tokens, as in Qualcomm's
    /// own export, or the context if that is shorter.
    pub fn usual_chunk(&self) -> u32 {
        self.chunk.unwrap_or(128.min(self.context))
    }
}

/// What one query does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Greedy generation of a fixed length.
    Generate {
        /// Tokens that are prefilled, BOS included (design 2b.7).
        prompt_tokens: u32,
        /// Tokens out, the first from the prefill's logits: one decode step fewer.
        gen_tokens: u32,
    },
}
impl Workload {
    /// Tokens that are prefilled, BOS included.
    pub const fn prompt_tokens(self) -> u32 {
        let Self::Generate { prompt_tokens, .. } = self;
        prompt_tokens
    }
    /// Tokens that come out.
    pub const fn gen_tokens(self) -> u32 {
        let Self::Generate { gen_tokens, .. } = self;
        gen_tokens
    }
}

/// One combination of the matrix: the unit of comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Id of the backend.
    pub backend: String,
    /// The model.
    pub model: Model,
    /// Class of the quantisation.
    pub quant: Quant,
    /// What a query does.
    pub workload: Workload,
    /// The processor asked for, or the backend's default.
    pub unit: Unit,
    /// The optional axes that the scenario names.
    pub axes: BTreeMap<Axis, Setting>,
}
impl Cell {
    /// The value asked for on an optional axis, if the backend can set it.
    pub fn asked(&self, axis: Axis) -> Option<&str> {
        match self.axes.get(&axis) {
            Some(Setting::Asked(v)) => Some(v),
            _ => None,
        }
    }

    /// `<backend>.<model>.<quant>.p512.g128[.<axis>=<value>...]-<8 hex>` (design 2b.2). The hash covers only what was asked
    /// for, in sorted order, so that an axis added later never renames old cells.
    pub fn id(&self) -> String {
        let mut id = format!(
            "{}.{}.{}.p{}.g{}",
            self.backend,
            self.model.name,
            self.quant,
            self.workload.prompt_tokens(),
            self.workload.gen_tokens()
        );
        for (axis, setting) in &self.axes {
            if let Setting::Asked(value) = setting {
                let _ = write!(id, ".{axis}={}", value.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)), "_"));
            }
        }
        let asked: Vec<String> =
            self.axes.iter().filter_map(|(a, s)| if let Setting::Asked(v) = s { Some(format!("{a}={v}")) } else { None }).collect();
        let text = format!(
            "{}|{}|{}|{:?}|{}",
            self.backend,
            self.model.name,
            self.quant,
            (self.workload.prompt_tokens(), self.workload.gen_tokens()),
            asked.join("|")
        );
        let hash = Sha256::digest(text.as_bytes());
        format!("{id}-{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3])
    }
}
