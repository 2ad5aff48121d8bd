//! A backend that runs nothing.

use std::collections::BTreeMap;

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure, Installed,
    Launch, Need, ParseError, Parsed, Paths, Quant, Recipe, StagedFile, Step, Unit,
};
use serde_json::{Value, json};

/// `alpha` sets most axes and makes fp16; `beta` sets few, has a fixed profile, and makes everything; `mixer` is like it, and its process answers queries
/// of several lengths.
pub struct Fake {
    pub id: &'static str,
}

pub fn device() -> DeviceFacts {
    DeviceFacts {
        name: "local".to_owned(),
        class: DeviceClass::Pc,
        os: "linux".to_owned(),
        arch: "x86_64".to_owned(),
        cpu: None,
        cores: None,
        memory_mb: None,
        kernel: None,
        soc_model: 57,
        htp_arch: 75,
        remote: false,
        soc: None,
        vtcm_mb: None,
        no_llm: None,
    }
}

impl Backend for Fake {
    fn id(&self) -> &str {
        self.id
    }
    fn describe(&self) -> Description {
        let alpha = self.id == "alpha";
        Description {
            name: "Fake",
            layers: alpha,
            default_unit: if alpha { Unit::Npu } else { Unit::Cpu },
            makes: if alpha { &[Quant::Fp16] } else { Quant::ALL },
        }
    }
    fn needs(&self, _: &DeviceFacts) -> Vec<Need> {
        Vec::new()
    }
    fn probe(&self, _: &DeviceFacts, _: &Installed) -> Availability {
        Availability::Ready { version: "1".to_owned() }
    }
    fn axis(&self, axis: Axis, value: &str) -> AxisFit {
        match (self.id, axis, value) {
            (_, Axis::Unit, "gpu") => AxisFit::Unsupported("no GPU".to_owned()),
            ("alpha", Axis::Unit, "npu")
            | (_, Axis::Unit, "cpu")
            | ("alpha", Axis::PerfProfile, _)
            | ("alpha", Axis::Variant, "program")
            | ("beta", Axis::Threads | Axis::Batch, _) => AxisFit::Settable,
            ("alpha", Axis::Context | Axis::Variant, _) | ("alpha", Axis::Kv, "8" | "16") => AxisFit::OfArtifact,
            (_, Axis::Unit, _) => AxisFit::Unsupported("the CPU only".to_owned()),
            ("beta", Axis::PerfProfile, _) => AxisFit::Fixed("burst"),
            _ => AxisFit::NotApplicable,
        }
    }
    fn device_class(&self, _: &Cell, _: &DeviceFacts) -> DeviceClass {
        DeviceClass::Pc
    }
    fn recipe(&self, cell: &Cell, _: &DeviceFacts) -> Option<Recipe> {
        let args = BTreeMap::from([
            ("quant".to_owned(), json!(cell.quant.as_str())),
            ("context".to_owned(), json!(cell.model.context)),
            ("group".to_owned(), Value::Null),
            ("options".to_owned(), json!({ "a": [1, null, 2.5], "b": null, "deep": { "c": true } })),
        ]);
        self.describe().makes.contains(&cell.quant).then(|| Recipe { kind: "text".to_owned(), args })
    }
    fn mixes_lengths(&self, cell: &Cell, _: &DeviceFacts) -> bool {
        self.id == "mixer" && cell.asked(Axis::Variant).is_none()
    }
    fn stage(&self, _: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        Ok(Vec::new())
    }
    fn steps(&self, _: &Launch<'_>, _: &Paths) -> Vec<Step> {
        Vec::new()
    }
    fn parse(&self, _: &Captured) -> Result<Parsed, ParseError> {
        Ok(Parsed::default())
    }
    fn verify(&self, _: &Cell, _: &Expected, _: &Parsed, _: &Captured) -> Checks {
        unreachable!("nothing is run")
    }
}
