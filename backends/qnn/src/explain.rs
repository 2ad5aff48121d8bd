//! What to do about a failure of a backend over QNN, with what only the launch knows.

use bench_backend_api::{Backend, Failure, Hint, Launch, Need};
use serde_json::Value;

/// Entries of the table that are about a context binary which does not fit its chip or its libraries.
const MISFITS: [&str; 2] = ["qnn-binary-refused", "qnn-binary-version"];

/// What [`Backend::explain`] of a backend over QNN gives: where a context binary was refused, both sides of the misfit (rule R33).
pub fn explain(backend: &dyn Backend, failure: &Failure, launch: &Launch<'_>) -> Option<Hint> {
    let found = backend.knowledge().explain(failure);
    let misfit = found.as_ref().is_some_and(|found| MISFITS.contains(&found.entry.id.as_str()));
    let hint = failure.hint.clone().or_else(|| found.map(|found| found.hint()))?;
    Some(if misfit { format!("{hint} ({})", both_sides(launch)) } else { hint })
}

/// What the binary was made for, and what it met. What is not known is said.
fn both_sides(launch: &Launch<'_>) -> String {
    let meta = &launch.artifact.meta;
    let number = |key: &str| meta.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let tools = meta.get("tools").and_then(|tools| tools.get("onnxruntime-qnn"));
    let maker = meta.get("qairt").or(tools).and_then(Value::as_str);
    format!(
        "the binary was made for {} with {}; it met {} and {}",
        chip(number("soc_model"), number("htp_arch")),
        version(maker),
        chip(launch.device.soc_model, launch.device.htp_arch),
        version(runtime(launch)),
    )
}

fn chip(soc_model: u32, htp_arch: u32) -> String {
    let soc = if soc_model == 0 { "an unknown soc_model".to_owned() } else { format!("soc_model {soc_model}") };
    let arch = if htp_arch == 0 { "an unknown Hexagon version".to_owned() } else { format!("Hexagon v{htp_arch}") };
    format!("{soc}, {arch}")
}

fn version(version: Option<&str>) -> String {
    version.map_or_else(|| "QNN of an unknown version".to_owned(), |version| format!("QNN {version}"))
}

/// The version of the QNN libraries that the launch ran with.
fn runtime<'a>(launch: &Launch<'a>) -> Option<&'a str> {
    let qnn = |need: &Need| match need {
        Need::QairtFile { .. } | Need::DeviceLibrary { .. } => true,
        Need::PythonPackage { distribution, .. } => distribution == "onnxruntime-qnn",
        _ => false,
    };
    launch.installed.0.iter().filter(|(need, _)| qnn(need)).find_map(|(_, found)| found.version.as_deref())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bench_backend_api::{Artifact, Cell, DeviceClass, DeviceFacts, FailureKind, Found, Installed, Model, Pass, Quant, Unit, Workload};
    use serde_json::json;

    use super::*;

    fn hint(meta: Value, version: Option<&str>, failure: &Failure) -> Option<Hint> {
        let cell = Cell {
            backend: "qnn".to_owned(),
            model: Model { name: "m".to_owned(), context: 128, chunk: Some(32), geometry: None },
            quant: Quant::W4a16,
            workload: Workload::Generate { prompt_tokens: 32, gen_tokens: 8 },
            unit: Unit::Npu,
            axes: BTreeMap::new(),
        };
        let device = DeviceFacts {
            name: "d".to_owned(),
            class: DeviceClass::Phone,
            os: "android".to_owned(),
            arch: "aarch64".to_owned(),
            cpu: None,
            cores: None,
            memory_mb: None,
            kernel: None,
            soc_model: 57,
            htp_arch: 75,
            remote: true,
            soc: None,
            vtcm_mb: None,
            no_llm: None,
        };
        let library = Need::DeviceLibrary { set: "qairt".to_owned(), name: "libQnnHtp.so".to_owned() };
        let installed = Installed([(library, Found { path: "/x".to_owned(), version: version.map(str::to_owned) })].into());
        let artifact = Artifact { files: Vec::new(), meta };
        let launch = Launch {
            cell: &cell,
            pass: Pass::Measure,
            prompts: &[],
            texts: &[],
            artifact: &artifact,
            installed: &installed,
            device: &device,
        };
        explain(&crate::Qnn, failure, &launch)
    }

    #[test]
    fn a_refused_binary_names_both_sides() {
        let failure = |message: &str| Failure::new(FailureKind::Model, message);
        let meta = json!({"soc_model": 43, "htp_arch": 73, "qairt": "2.31.0"});
        let refused = failure("decode: Failed to create context from binary with err 5005");
        let told = hint(meta.clone(), Some("2.36.0"), &refused).unwrap();
        let sides = "made for soc_model 43, Hexagon v73 with QNN 2.31.0; it met soc_model 57, Hexagon v75 and QNN 2.36.0";
        assert!(told.contains(sides), "{told}");
        // A reader's own hint stays, and what is not known is said.
        let own = Failure { hint: Some("own words".to_owned()), ..failure("x; err 5004") };
        let told = hint(Value::Null, None, &own).unwrap();
        let sides =
            "own words (the binary was made for an unknown soc_model, an unknown Hexagon version with QNN of an unknown version; it met";
        assert!(told.starts_with(sides), "{told}");
        assert!(!hint(meta, None, &failure("Transport layer setup failed: 14001")).unwrap().contains("made for soc_model"));
        assert_eq!(hint(Value::Null, None, &failure("all is well")), None);
    }
}
