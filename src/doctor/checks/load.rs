//! What the scenario's models ask of a device's memory and storage.

use bench_backend_api::Geometry;

use crate::doctor::{Check, Said, memory};

/// A model of the scenario.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Its shape, as far as it is known.
    pub geometry: Option<Geometry>,
    /// Parameters, where the shape tells them.
    pub parameters: Option<f64>,
    /// Tokens of its context.
    pub context: u32,
    /// Bytes of its largest artifact, or of its parameters; `None` when neither is known.
    pub weights: Option<u64>,
    /// Bits of an element of the KV cache, where the scenario tells them.
    pub kv_bits: Option<u32>,
}

/// What a scenario asks of a device.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// Its models.
    pub models: Vec<Model>,
    /// MemTotal of the device in MB (10^6 bytes).
    pub memory_mb: Option<u64>,
    /// MemAvailable in MB.
    pub available_mb: Option<u64>,
    /// Bytes of all files that have to be on the device: artifacts and libraries.
    pub send_bytes: u64,
    /// Free storage in MB.
    pub storage_mb: Option<u64>,
    /// Bytes that are staged already, whatever they are.
    pub staged_bytes: Option<u64>,
    /// The device.
    pub serial: String,
}

/// The list.
pub static CHECKS: &[Check<Load>] = &[
    Check { id: "memory-size", why: "models of this size end in a hang or a reboot on phones with less memory (rule R32)", of: size },
    Check { id: "memory-free", why: "a model that does not fit beside what runs is swapped, killed, or ends the phone", of: free },
    Check { id: "storage", why: "all files of a cell are on the device before it is measured", of: storage },
];

/// Gates of rule R32: from so many parameters on, a phone of so many GB.
const GATES: [(f64, u64); 2] = [(6.5e9, 16), (2.9e9, 12)];
/// Of the memory that a phone is sold with the firmware keeps up to this share.
const KEPT: f64 = 0.12;

fn size(load: &Load) -> Vec<Said> {
    let Some(memory) = load.memory_mb else { return Vec::new() };
    let mut said = Vec::new();
    for model in &load.models {
        let gate = model.parameters.and_then(|n| GATES.iter().find(|(from, _)| n >= *from).map(|(_, gb)| (n, *gb)));
        let Some((parameters, gb)) = gate else { continue };
        let words = format!(
            "{}: {:.1} billion parameters want a phone of {gb} GB, this one has {:.1} GB",
            model.name,
            parameters / 1e9,
            memory as f64 / 1e3
        );
        said.push(if (memory as f64) < gb as f64 * 1e3 * (1.0 - KEPT) {
            Said::warning(words, "take a smaller model, or a phone with more memory")
        } else {
            Said::ok(words)
        });
    }
    said
}

fn free(load: &Load) -> Vec<Said> {
    let Some(available) = load.available_mb else { return Vec::new() };
    let mut said = Vec::new();
    for model in &load.models {
        let Some(weights) = model.weights else { continue };
        let bits = model.kv_bits.unwrap_or(16);
        let need = memory::need_bytes(weights, model.geometry.as_ref(), model.context, bits) / 1_000_000;
        let kv = model.geometry.as_ref().and_then(|g| memory::kv_bytes(g, model.context, bits));
        let kv = kv.map_or("KV cache not known".to_owned(), |b| format!("KV cache {} MB at {bits} bits", b / 1_000_000));
        let words = format!(
            "{} needs about {need} MB (weights {} MB, {kv}, {} MB beside), {available} MB are available",
            model.name,
            weights / 1_000_000,
            memory::REST / 1_000_000
        );
        said.push(if need > available {
            Said::warning(words, "close apps, restart the device, or take a smaller model or context")
        } else {
            Said::ok(words)
        });
    }
    said
}

fn storage(load: &Load) -> Vec<Said> {
    let (Some(free), true) = (load.storage_mb, load.send_bytes > 0) else { return Vec::new() };
    let send = load.send_bytes.div_ceil(1_000_000);
    let staged = load.staged_bytes.unwrap_or(0) / 1_000_000;
    let words = format!("{send} MB have to be on the device, {free} MB are free, {staged} MB are staged");
    let fix = format!("free some storage; `bench devices clean {}` gives back what is staged", load.serial);
    vec![if send <= free {
        Said::ok(words)
    } else if send <= free + staged {
        Said::note(format!("{words}: enough if what is staged is of this scenario; else {fix}"))
    } else {
        Said::error(words, fix)
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Severity, examine};

    fn load(memory_mb: u64, parameters: f64) -> Load {
        let model = Model { name: "m".to_owned(), parameters: Some(parameters), context: 4096, ..Model::default() };
        Load { models: vec![model], memory_mb: Some(memory_mb), serial: "R5".to_owned(), ..Load::default() }
    }

    fn said(load: &Load) -> Vec<(&'static str, Severity)> {
        examine(CHECKS, "x", load).into_iter().map(|f| (f.check, f.severity)).collect()
    }

    #[test]
    fn large_models_want_large_phones() {
        // Phones sold with 12 and 16 GB report a MemTotal of 11.5 and 15.4 GB and less.
        for (memory, parameters, expected) in [
            (11_500, 8.03e9, Some(Severity::Warning)),
            (15_400, 8.03e9, Some(Severity::Ok)),
            (11_500, 3.21e9, Some(Severity::Ok)),
            (7_600, 3.21e9, Some(Severity::Warning)),
            (7_600, 1.24e9, None),
        ] {
            let found = said(&load(memory, parameters));
            assert_eq!(found.first().map(|f| f.1), expected, "{parameters} on {memory}");
        }
    }

    #[test]
    fn memory_that_is_not_there() {
        let mut load = load(11_500, 1.0e9);
        load.models[0].weights = Some(2_000_000_000);
        load.available_mb = Some(2_399);
        assert_eq!(said(&load), [("memory-free", Severity::Warning)]);
        load.available_mb = Some(2_400);
        let found = examine(CHECKS, "x", &load);
        let words = "m needs about 2400 MB (weights 2000 MB, KV cache not known, 400 MB beside), 2400 MB are available";
        assert_eq!((found[0].severity, found[0].what.as_str()), (Severity::Ok, words));
    }

    #[test]
    fn storage_that_is_not_there() {
        let of = |free: u64, staged: Option<u64>| {
            let load = Load {
                send_bytes: 5_000_000_000,
                storage_mb: Some(free),
                staged_bytes: staged,
                serial: "R5".to_owned(),
                ..Load::default()
            };
            said(&load)[0].1
        };
        assert_eq!((of(5_000, None), of(4_999, None)), (Severity::Ok, Severity::Error));
        assert_eq!((of(1_000, Some(4_000_000_000)), of(1_000, Some(3_999_000_000))), (Severity::Note, Severity::Error));
        assert!(said(&Load { storage_mb: Some(0), ..Load::default() }).is_empty(), "nothing has to be sent");
    }
}
