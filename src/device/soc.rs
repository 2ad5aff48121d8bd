//! The catalogue of SoCs: `scenarios/devices/*.toml`, built in. Data only: which of them a device has is found out by
//! [`super::identify()`].

use std::{collections::BTreeMap, sync::LazyLock};

use serde::{Deserialize, Serialize};

/// A SoC with a Hexagon processor. What no public source tells is absent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Soc {
    /// Part number, for instance `SM8650`.
    pub soc: String,
    /// Other part numbers of the same chip: bins, and siblings to which QNN gives the same number.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Marketing name.
    pub name: String,
    /// QNN `soc_model`; not the kernel's `soc_id`.
    pub soc_model: u32,
    /// Hexagon architecture (75 = v75). Before v68 there is no HTP.
    pub htp_arch: u32,
    /// Tightly coupled memory of the NPU, in MB (2^20 bytes).
    pub vtcm_mb: Option<u32>,
    /// Last-level cache in front of the DRAM (Qualcomm's LLCC), in KB (2^10 bytes): at least that much.
    pub llc_kb: Option<u32>,
    /// Its DRAM.
    pub memory: Option<Memory>,
    /// Whether its NPU can hold a language model.
    pub llm_on_npu: bool,
    /// Why it can't; only where it can't.
    pub llm_reason: Option<String>,
    /// What devices with this chip call it.
    pub says: Says,
    /// What the sources disagree about, or leave open.
    pub note: Option<String>,
    /// Where each fact comes from, by its key; scenarios/devices/README.md says what the names stand for.
    pub source: BTreeMap<String, String>,
}

/// DRAM of a SoC at its best; phones also ship with slower parts, so a device's own word (`bus_dcvs/DDR/hw_max_freq`) comes first.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Memory {
    /// Type, clock and width.
    #[serde(rename = "type")]
    pub kind: String,
    /// Width of all channels together, in bits.
    pub bus_bits: u32,
    /// Peak bandwidth in GB/s (10^9 bytes): twice the clock times the width.
    pub peak_gb_s: f64,
    /// How sure it is.
    pub confidence: Confidence,
}

/// How sure a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The vendor says it.
    High,
    /// A page about this very part says it.
    Medium,
    /// Inferred from a sibling.
    Low,
}

impl Confidence {
    /// As the catalogue writes it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// What devices with a chip call it, besides its part number (`ro.soc.model`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Says {
    /// Words of `/sys/devices/soc0/machine`.
    #[serde(default)]
    pub machine: Vec<String>,
    /// Word of `ro.board.platform`.
    pub platform: Option<String>,
    /// Part numbers outside this catalogue that have the same platform.
    #[serde(default)]
    pub platform_shared_with: Vec<String>,
}

/// The SoC that an emulated NPU stands for when the scenario does not say.
pub const DEFAULT_SOC: &str = "SM8650";

/// Oldest first, phones before boards, cars and laptops.
const FILES: [(&str, &str); 15] = [
    ("sm8450", include_str!("../../scenarios/devices/sm8450.toml")),
    ("sm8475", include_str!("../../scenarios/devices/sm8475.toml")),
    ("sm8550", include_str!("../../scenarios/devices/sm8550.toml")),
    ("sm8650", include_str!("../../scenarios/devices/sm8650.toml")),
    ("sm8750", include_str!("../../scenarios/devices/sm8750.toml")),
    ("sm8850", include_str!("../../scenarios/devices/sm8850.toml")),
    ("sm7325", include_str!("../../scenarios/devices/sm7325.toml")),
    ("sm7550", include_str!("../../scenarios/devices/sm7550.toml")),
    ("qrb5165", include_str!("../../scenarios/devices/qrb5165.toml")),
    ("qcs6490", include_str!("../../scenarios/devices/qcs6490.toml")),
    ("qcs8550", include_str!("../../scenarios/devices/qcs8550.toml")),
    ("qcs9075", include_str!("../../scenarios/devices/qcs9075.toml")),
    ("sa8295p", include_str!("../../scenarios/devices/sa8295p.toml")),
    ("sa8255p", include_str!("../../scenarios/devices/sa8255p.toml")),
    ("sc8380xp", include_str!("../../scenarios/devices/sc8380xp.toml")),
];

static CATALOGUE: LazyLock<Vec<Soc>> = LazyLock::new(|| FILES.iter().filter_map(|(_, text)| toml::from_str(text).ok()).collect());

/// Every SoC of the catalogue.
pub fn catalogue() -> &'static [Soc] {
    &CATALOGUE
}

/// The SoC of a part number or of one of its aliases, in capitals or not.
pub fn find(part: &str) -> Option<&'static Soc> {
    CATALOGUE.iter().find(|s| s.has_part(part))
}

impl Soc {
    /// Whether a part number is this chip's.
    pub fn has_part(&self, part: &str) -> bool {
        std::iter::once(&self.soc).chain(&self.aliases).any(|p| p.eq_ignore_ascii_case(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `soc_model`, Hexagon and VTCM; copied by hand from ExecuTorch's qc_schema.py and LiteRT's soc_table (see the README there).
    const TABLES: [(&str, u32, u32, Option<u32>); 17] = [
        ("SM8450", 36, 69, Some(8)),
        ("SM8475", 42, 69, Some(8)),
        ("SM8550", 43, 73, Some(8)),
        ("SM8650", 57, 75, Some(8)),
        ("SM8750", 69, 79, Some(8)),
        ("SM8850", 87, 81, Some(8)),
        ("SM7325", 35, 68, Some(2)),
        ("SM7550", 64, 73, None),
        ("QRB5165", 21, 66, None),
        ("QCM6490", 93, 68, Some(2)),
        ("QCS8550", 66, 73, None),
        ("QCS9075", 77, 73, Some(8)),
        ("QCS9100", 77, 73, Some(8)),
        ("SA8295P", 39, 68, Some(8)),
        ("SA8255P", 52, 73, Some(8)),
        ("SA8775P", 52, 73, Some(8)),
        ("SC8380XP", 60, 73, Some(8)),
    ];

    #[test]
    fn the_catalogue_agrees_with_public_tables() {
        for (part, soc_model, arch, vtcm) in TABLES {
            let soc = find(part).unwrap_or_else(|| panic!("no {part}"));
            assert_eq!((soc.soc_model, soc.htp_arch, soc.vtcm_mb), (soc_model, arch, vtcm), "{part}");
        }
        assert!(find("sm8650p").is_some_and(|s| s.soc == DEFAULT_SOC));
        assert!(find("SM9999").is_none() && find("").is_none());
    }

    #[test]
    fn every_file_is_built_in_and_can_be_read() {
        let mut built_in: Vec<_> = FILES.iter().map(|(name, _)| format!("{name}.toml")).collect();
        built_in.sort();
        let mut there: Vec<_> =
            std::fs::read_dir("scenarios/devices").unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        there.retain(|name| name != "README.md" && name != "zones.toml");
        there.sort();
        assert_eq!(there, built_in);
        for (name, text) in FILES {
            let soc: Soc = toml::from_str(text).unwrap_or_else(|e| panic!("{name}.toml: {e}"));
            assert_eq!(soc.soc.to_lowercase(), name);
        }
    }

    #[test]
    fn every_fact_has_a_source_and_no_source_is_without_its_fact() {
        for soc in catalogue() {
            let mut facts = vec!["soc", "soc-model", "htp-arch", "llm-on-npu"];
            facts.extend(soc.vtcm_mb.map(|_| "vtcm-mb"));
            facts.extend(soc.llc_kb.map(|_| "llc-kb"));
            facts.extend(soc.memory.as_ref().map(|_| "memory"));
            facts.extend((!soc.says.machine.is_empty()).then_some("machine"));
            facts.extend(soc.says.platform.as_ref().map(|_| "platform"));
            facts.sort_unstable();
            assert_eq!(soc.source.keys().map(String::as_str).collect::<Vec<_>>(), facts, "{}", soc.soc);
            assert!(soc.source.values().all(|s| s.len() > 2), "{}", soc.soc);
            assert_eq!(soc.llm_on_npu, soc.llm_reason.is_none(), "{}", soc.soc);
            assert!(soc.says.platform.is_some() || soc.says.platform_shared_with.is_empty(), "{}", soc.soc);
        }
    }

    #[test]
    fn what_cannot_hold_a_language_model() {
        let cannot: Vec<_> = catalogue().iter().filter(|s| !s.llm_on_npu).map(|s| s.soc.as_str()).collect();
        assert_eq!(cannot, ["SM7325", "QRB5165", "QCS6490"]);
        for soc in catalogue() {
            // The rule behind them: an HTP, and more than 2 MB of VTCM.
            assert_eq!(soc.llm_on_npu, soc.htp_arch >= 68 && soc.vtcm_mb.is_none_or(|mb| mb > 2), "{}", soc.soc);
        }
    }

    #[test]
    fn bandwidths_are_those_of_their_clock_and_width() {
        // Clock in MHz and bytes across; two transfers a clock.
        for (part, mhz, bytes) in [("SM8550", 4200.0, 8.0), ("SM8650", 4800.0, 8.0), ("SM8750", 5300.0, 8.0), ("SM8850", 5300.0, 8.0)] {
            let memory = find(part).and_then(|s| s.memory.as_ref()).unwrap();
            assert!((memory.peak_gb_s - 2.0 * mhz * bytes / 1000.0).abs() < 0.05, "{part} {memory:?}");
        }
        for memory in catalogue().iter().filter_map(|s| s.memory.as_ref()) {
            assert!(memory.kind.ends_with(&format!(", {} bits", memory.bus_bits)), "{memory:?}");
        }
        assert!(catalogue().iter().filter_map(|s| s.memory.as_ref()).all(|m| (20.0..250.0).contains(&m.peak_gb_s)));
    }

    #[test]
    fn no_word_means_two_chips() {
        let mut seen = BTreeMap::new();
        for soc in catalogue() {
            for word in std::iter::once(&soc.soc).chain(&soc.aliases).chain(&soc.says.machine) {
                if let Some(other) = seen.insert(word.to_uppercase(), &soc.soc) {
                    assert_eq!(other, &soc.soc, "{word}");
                }
            }
        }
    }
}
