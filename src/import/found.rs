//! What was found in a folder or file.

use std::path::PathBuf;

use bench_backend_api::{Geometry, Quant};
use serde::Serialize;

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is.
    pub what: &'static str,
    /// Its value, for people.
    pub value: String,
    /// The file that tells it.
    pub from: String,
}

/// The SoC that context binaries were made for, as far as the files tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Chip {
    /// Part number.
    pub soc: Option<String>,
    /// QNN's `soc_model`.
    pub soc_model: Option<u32>,
    /// Hexagon architecture (75 = v75).
    pub htp_arch: Option<u32>,
}

/// A model in a folder of its own, as far as its files tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// What it is, for people: `a Genie bundle`.
    pub kind: &'static str,
    /// Id of the backend that runs it.
    pub backend: &'static str,
    /// Folder of the files.
    pub root: PathBuf,
    /// The framework's configuration, relative to the folder.
    pub config: Option<String>,
    /// The artifact's files, relative to the folder.
    pub files: Vec<String>,
    /// The model's `tokenizer.json`, relative to the folder.
    pub tokenizer: Option<String>,
    /// Name of the model.
    pub name: String,
    /// Class of the quantisation.
    pub quant: Option<Quant>,
    /// Context length, in tokens.
    pub context: Option<u32>,
    /// AR of the prefill graph, in tokens.
    pub chunk: Option<u32>,
    /// What the context binaries were made for.
    pub chip: Chip,
    /// The model's shape: what is not known is `None`.
    pub shape: Geometry,
    /// Everything that was found, in the order of looking.
    pub facts: Vec<Fact>,
    /// What is odd, or lies at hand and is not used.
    pub notes: Vec<String>,
}

impl Found {
    /// Keeps a fact for the listing.
    pub(super) fn fact(&mut self, what: &'static str, value: &(impl ToString + ?Sized), from: &str) {
        self.facts.push(Fact { what, value: value.to_string(), from: from.to_owned() });
    }

    /// Takes a value over if there is one, and keeps it for the listing.
    pub(super) fn take<T: ToString + Copy>(&mut self, what: &'static str, value: Option<T>, from: &str) -> Option<T> {
        if let Some(value) = value {
            self.fact(what, &value, from);
        }
        value
    }

    /// What a geometry could tell and this one does not.
    pub fn unknown(&self) -> Vec<&'static str> {
        let g = &self.shape;
        let keys = [
            ("layers", g.layers.is_some()),
            ("hidden", g.hidden.is_some()),
            ("heads", g.heads.is_some()),
            ("kv-heads", g.kv_heads.is_some()),
            ("head-dim", g.head_dim.is_some()),
            ("ffn", g.ffn.is_some()),
            ("vocab", g.vocab.is_some()),
            ("rope-theta", g.rope_theta.is_some()),
            ("norm-eps", g.norm_eps.is_some()),
            ("bos", g.bos.is_some()),
            ("eos", g.eos.is_some()),
            ("pad", g.pad.is_some()),
        ];
        keys.into_iter().filter(|(_, known)| !known).map(|(key, _)| key).collect()
    }
}
