//! An artifact of the scenario, before any byte of it is sent: context binaries for this chip and this runtime (rule R33).

use std::collections::BTreeSet;

use bench_backend_api::DeviceFacts;
use serde_json::Value;

use crate::{
    doctor::{
        Check, Said,
        build::Build,
        read::{Binary, is_binary},
    },
    import::part_of,
    scenario::find_soc,
};

/// A processor core's cluster, as cpufreq tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// Its first core.
    pub first: u32,
    /// Its highest clock in kHz.
    pub max_khz: u64,
}

/// What is known of the cores that a configuration names; all empty when no device was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cores {
    /// How many the kernel has.
    pub count: Option<u32>,
    /// Those that are online.
    pub online: Vec<u32>,
    /// Clusters, by their first core.
    pub clusters: Vec<Cluster>,
}

/// What is known of an artifact on a device.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// Its backend.
    pub backend: String,
    /// The device that it is for; one that is not there yet is the scenario's.
    pub device: DeviceFacts,
    /// Its files, relative to its folder.
    pub files: Vec<String>,
    /// The framework's configuration, or why it can't be read.
    pub config: Option<Result<Value, String>>,
    /// The context binaries among the files.
    pub binaries: Vec<Binary>,
    /// The QNN version of the backend's libraries.
    pub runtime: Option<Build>,
    /// The device's cores.
    pub cores: Cores,
}

/// The list.
pub static CHECKS: &[Check<Bundle>] = &[
    Check {
        id: "binary-chip",
        why: "a context binary runs on the Hexagon version that it was made for; another refuses it with error 5005",
        of: chip,
    },
    Check { id: "binary-version", why: "a QNN runtime does not load binaries that a newer one made", of: version },
    Check { id: "parts", why: "a model without one of its parts can't answer (rule R11)", of: parts },
];

fn chip(bundle: &Bundle) -> Vec<Said> {
    let device = &bundle.device;
    let here = device.soc.clone().unwrap_or_else(|| device.name.clone());
    if bundle.binaries.is_empty() || device.htp_arch == 0 {
        return Vec::new();
    }
    let mut said = Vec::new();
    let mut fits = Vec::new();
    for Binary { name, chip, .. } in &bundle.binaries {
        let (Some(chip), Some(arch)) = (chip, chip.as_ref().and_then(|c| c.htp_arch)) else { continue };
        let soc = chip.soc.as_deref().unwrap_or("another chip");
        if arch != device.htp_arch {
            let words = format!("{name} was made for {soc} (Hexagon v{arch}), {here} has Hexagon v{}", device.htp_arch);
            said.push(Said::error(words, format!("export or download the model for {here}")));
        } else if device
            .soc
            .as_deref()
            .is_some_and(|part| !find_soc(soc).is_some_and(|s| s.has_part(part)) && !soc.eq_ignore_ascii_case(part))
        {
            said.push(Said::note(format!("{name} was made for {soc}, another chip with Hexagon v{arch}: it may run, and not as fast")));
        } else {
            fits.push(name.as_str());
        }
    }
    let silent = bundle.binaries.iter().filter(|b| b.chip.is_none()).count();
    if silent > 0 {
        said.push(Said::note(format!("{silent} of {} context binaries do not tell their chip", bundle.binaries.len())));
    }
    if !fits.is_empty() {
        said.push(Said::ok(format!("{} for Hexagon v{}", count(fits.len(), "context binary", "context binaries"), device.htp_arch)));
    }
    said
}

fn version(bundle: &Bundle) -> Vec<Said> {
    let builds: BTreeSet<Build> = bundle.binaries.iter().filter_map(|b| b.build).collect();
    let (Some(newest), Some(oldest)) = (builds.last(), builds.first()) else {
        return if bundle.binaries.is_empty() {
            Vec::new()
        } else {
            vec![Said::note("the context binaries do not tell their QNN version")]
        };
    };
    let mut said = Vec::new();
    let minor = |b: &Build| (b.major, b.minor);
    if minor(newest) != minor(oldest) {
        said.push(Said::warning(
            format!("context binaries of several QNN versions: {oldest} to {newest}"),
            "export the model again, all parts with one SDK",
        ));
    }
    said.push(match bundle.runtime {
        None => Said::note(format!("made with QNN {newest}; the runtime's version is not known")),
        Some(runtime) if minor(newest) > minor(&runtime) => Said::error(
            format!("made with QNN {newest}, the runtime is {runtime}"),
            format!("install the QAIRT SDK {}.{} or newer, or export the model with {runtime}", newest.major, newest.minor),
        ),
        Some(runtime) if minor(newest) < minor(&runtime) => {
            Said::note(format!("made with QNN {newest}, older than the runtime {runtime}: it loads"))
        }
        Some(runtime) => Said::ok(format!("made with QNN {newest}, as the runtime {runtime}")),
    });
    said
}

fn parts(bundle: &Bundle) -> Vec<Said> {
    let numbered: Vec<(u32, u32)> =
        bundle.files.iter().filter(|f| is_binary(f)).filter_map(|f| part_of(f)).map(|(n, of, _)| (n, of)).collect();
    let Some(whole) = numbered.iter().map(|(_, of)| *of).max() else { return Vec::new() };
    let there: BTreeSet<u32> = numbered.iter().map(|(n, _)| *n).collect();
    let missing: Vec<String> = (1..=whole.min(1000)).filter(|n| !there.contains(n)).map(|n| n.to_string()).collect();
    vec![if missing.is_empty() {
        Said::ok(format!("all {whole} parts of the model"))
    } else {
        Said::error(format!("of {whole} parts of the model part {} is missing", missing.join(", ")), "copy or download it again, and whole")
    }]
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device::phone_facts,
        doctor::{Severity, examine},
        import::Chip,
    };

    fn binary(name: &str, soc: &str, arch: u32, minor: u32) -> Binary {
        let chip = Some(Chip { soc: Some(soc.to_owned()), soc_model: None, htp_arch: Some(arch) }).filter(|_| arch > 0);
        let build = Some(Build { major: 2, minor, patch: 0 }).filter(|_| minor > 0);
        Binary { name: name.to_owned(), build, chip, contexts: vec![] }
    }

    fn bundle(binaries: Vec<Binary>, runtime: u32) -> Bundle {
        Bundle {
            backend: "genie".to_owned(),
            device: DeviceFacts { name: "R5".to_owned(), soc: Some("SM8650".to_owned()), ..phone_facts(57, 75) },
            files: binaries.iter().map(|b| b.name.clone()).collect(),
            config: None,
            binaries,
            runtime: Some(Build { major: 2, minor: runtime, patch: 1 }).filter(|_| runtime > 0),
            cores: Cores::default(),
        }
    }

    fn said(bundle: &Bundle) -> Vec<(&'static str, Severity, String)> {
        examine(CHECKS, "x", bundle).into_iter().map(|f| (f.check, f.severity, f.what)).collect()
    }

    #[test]
    fn a_binary_for_another_chip_names_both() {
        let found = said(&bundle(vec![binary("m_part_1_of_2.bin", "SM8750", 79, 37), binary("m_part_2_of_2.bin", "SM8650", 75, 37)], 37));
        let words = "m_part_1_of_2.bin was made for SM8750 (Hexagon v79), SM8650 has Hexagon v75";
        assert_eq!(found[0], ("binary-chip", Severity::Error, words.to_owned()));
        assert_eq!(found[1], ("binary-chip", Severity::Ok, "1 context binary for Hexagon v75".to_owned()));
        // An alias of the catalogue is the same chip; a sibling with the same Hexagon is worth a note.
        assert!(said(&bundle(vec![binary("a.bin", "SM8650P", 75, 37)], 37)).iter().all(|f| f.1 == Severity::Ok));
        assert_eq!(said(&bundle(vec![binary("a.bin", "SM8635", 75, 37)], 37))[0].1, Severity::Note);
        assert_eq!(said(&bundle(vec![binary("a.bin", "", 0, 37)], 37))[0].2, "1 of 1 context binaries do not tell their chip");
    }

    #[test]
    fn a_binary_of_a_newer_sdk_is_an_error_and_an_older_one_loads() {
        let of = |made: u32, runtime: u32| {
            let found = said(&bundle(vec![binary("a.bin", "SM8650", 75, made)], runtime));
            found.into_iter().find(|f| f.0 == "binary-version").map(|f| (f.1, f.2)).unwrap()
        };
        assert_eq!(of(41, 37), (Severity::Error, "made with QNN 2.41.0, the runtime is 2.37.1".to_owned()));
        assert_eq!(of(28, 37).0, Severity::Note);
        assert_eq!(of(37, 37).0, Severity::Ok);
        assert_eq!(of(37, 0).0, Severity::Note);
        assert_eq!(of(0, 37).0, Severity::Note);
        let two = said(&bundle(vec![binary("a.bin", "SM8650", 75, 28), binary("b.bin", "SM8650", 75, 37)], 37));
        assert!(two.contains(&(
            "binary-version",
            Severity::Warning,
            "context binaries of several QNN versions: 2.28.0 to 2.37.0".to_owned()
        )));
    }

    #[test]
    fn a_missing_part_is_named() {
        let found = said(&bundle(vec![binary("m_part_1_of_3.bin", "SM8650", 75, 37), binary("m_part_3_of_3.bin", "SM8650", 75, 37)], 37));
        assert_eq!(found.last().unwrap(), &("parts", Severity::Error, "of 3 parts of the model part 2 is missing".to_owned()));
        assert!(said(&bundle(vec![], 37)).is_empty());
    }
}
