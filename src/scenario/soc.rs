//! The catalogue of SoCs: `scenarios/devices/*.toml`, built in.

use std::sync::LazyLock;

use serde::Deserialize;

/// A SoC whose NPU can be measured or emulated.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Soc {
    /// Part number, for instance `SM8650`.
    pub soc: String,
    /// Marketing name.
    pub name: String,
    /// QNN `soc_model`; not the kernel's `soc_id`.
    pub soc_model: u32,
    /// Hexagon architecture (75 = v75).
    pub htp_arch: u32,
    /// Tightly coupled memory of the NPU, in MB (2^20 bytes).
    pub vtcm_mb: u32,
    /// Where the figures come from.
    pub source: String,
}

/// The SoC that an emulated NPU stands for when the scenario does not say.
pub const DEFAULT_SOC: &str = "SM8650";

const FILES: [&str; 5] = [
    include_str!("../../scenarios/devices/sm8450.toml"),
    include_str!("../../scenarios/devices/sm8550.toml"),
    include_str!("../../scenarios/devices/sm8650.toml"),
    include_str!("../../scenarios/devices/sm8750.toml"),
    include_str!("../../scenarios/devices/sm8850.toml"),
];

static CATALOGUE: LazyLock<Vec<Soc>> = LazyLock::new(|| FILES.iter().filter_map(|text| toml::from_str(text).ok()).collect());

/// Every SoC of the catalogue, oldest first.
pub fn catalogue() -> &'static [Soc] {
    &CATALOGUE
}

/// The SoC of a part number, in capitals or not.
pub fn find(part: &str) -> Option<&'static Soc> {
    CATALOGUE.iter().find(|s| s.soc.eq_ignore_ascii_case(part))
}
