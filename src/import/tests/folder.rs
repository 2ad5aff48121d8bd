//! Folders for the tests, and reading back what was written.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use super::super::{Found, Written, look, write};
use crate::{
    device, registry,
    scenario::{Plan, Scenario, load},
};

/// A folder of a name in a fresh one.
pub struct Folder {
    pub base: TempDir,
    pub path: std::path::PathBuf,
}

impl Folder {
    pub fn new(name: &str) -> Self {
        let base = tempfile::tempdir().expect("a folder");
        let path = base.path().join(name);
        fs::create_dir(&path).expect("a folder");
        Self { base, path }
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path.join(name), content).expect("written");
        self
    }

    pub fn json(&self, name: &str, content: &Value) -> &Self {
        self.file(name, content.to_string())
    }

    pub fn found(&self) -> Found {
        look(&self.path).unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn refused(&self) -> String {
        look(&self.path).expect_err("nothing to import").to_string()
    }

    /// Writes what was found beside the folder and reads it back as `bench check` does.
    pub fn written(&self, found: &Found) -> (Written, Scenario) {
        let written = write(found, &self.base.path().join("out"), true, false).unwrap_or_else(|e| panic!("{e}"));
        let scenario = read(written.scenario.as_deref().expect("a scenario"));
        (written, scenario)
    }
}

pub fn read(path: &Path) -> Scenario {
    load(path, registry::BACKENDS, &registry::reader_ids())
        .unwrap_or_else(|p| panic!("{}\n{}", p.render(false), fs::read_to_string(path).unwrap()))
}

/// The plan on a phone of the SoC that the scenario names.
pub fn plan(scenario: &Scenario) -> Plan {
    let facts = device::phone_facts(scenario.device.soc_model, scenario.device.htp_arch);
    scenario.plan(registry::BACKENDS, &facts)
}

pub fn fact<'f>(found: &'f Found, what: &str) -> Option<&'f str> {
    found.facts.iter().find(|f| f.what == what).map(|f| f.value.as_str())
}
