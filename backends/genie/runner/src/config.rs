//! What the runner has to know from `genie_config.json`. Nothing in it is changed.

use std::{fs, path::Path};

use bench_runner_protocol::{Failure, Unit, mapped_library};
use serde_json::Value;

/// Genie's engines, the library that one of them needs, and the unit that this library drives.
const ENGINES: [(&str, &str, Unit); 3] = [
    ("QnnHtp", "libQnnHtp.so", Unit::Npu),
    ("QnnGpu", "libQnnGpu.so", Unit::Gpu),
    ("QnnGenAiTransformer", "libQnnGenAiTransformer.so", Unit::Cpu),
];

/// The configuration and what was read from it.
#[derive(Debug)]
pub struct Config {
    /// The file as it is.
    pub json: Vec<u8>,
    /// The engine's backend (`QnnHtp`), empty if it isn't named.
    pub engine: String,
    /// Files of the context binaries.
    pub binaries: Vec<String>,
    /// The token that Genie puts before the ids of a query.
    bos: Option<u32>,
}

impl Config {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let json = fs::read(path).map_err(|e| Failure::model(format!("{}: {e}", path.display())))?;
        Self::parse(json).map_err(|e| Failure::model(format!("{}: {e}", path.display())))
    }

    fn parse(json: Vec<u8>) -> Result<Self, serde_json::Error> {
        let root: Value = serde_json::from_slice(&json)?;
        let dialog = &root["dialog"];
        let engine = dialog["engine"]["backend"]["type"].as_str().unwrap_or_default().to_owned();
        let bos = dialog["context"]["bos-token"].as_u64().map(|id| id as u32);
        let binaries = dialog["engine"]["model"]["binary"]["ctx-bins"].as_array();
        let binaries = binaries.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        Ok(Self { json, engine, binaries, bos })
    }

    /// The prompt without the BOS that Genie adds itself.
    pub fn without_bos<'a>(&self, ids: &'a [u32]) -> &'a [u32] {
        match ids {
            [first, rest @ ..] if Some(*first) == self.bos => rest,
            _ => ids,
        }
    }

    /// Tokens of a prompt of these ids with the BOS that Genie adds.
    pub fn submitted(&self, ids: &[u32]) -> u32 {
        ids.len() as u32 + u32::from(self.bos.is_some())
    }

    /// The unit of the engine, if its library is loaded. A context binary runs nowhere else.
    pub fn proven_unit(&self) -> Option<Unit> {
        let (_, library, unit) = ENGINES.into_iter().find(|(engine, ..)| *engine == self.engine)?;
        mapped_library(library).then_some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genie_adds_the_bos() {
        let json = br#"{"dialog":{"context":{"bos-token":7},"engine":{"backend":{"type":"QnnHtp"},"model":{"binary":{"ctx-bins":["a.bin","b.bin"]}}}}}"#;
        let config = Config::parse(json.to_vec()).unwrap();
        assert_eq!(config.binaries, ["a.bin", "b.bin"]);
        assert_eq!((config.engine.as_str(), config.without_bos(&[7, 7, 3])), ("QnnHtp", &[7, 3][..]));
        assert_eq!((config.without_bos(&[3, 7]), config.submitted(&[7, 3])), (&[3, 7][..], 3));
        assert_eq!(config.proven_unit(), None);
        let none = Config::parse(b"{}".to_vec()).unwrap();
        assert_eq!((none.without_bos(&[0, 1]), none.submitted(&[0, 1])), (&[0, 1][..], 2));
        assert!(Config::parse(b"{".to_vec()).is_err());
    }
}
