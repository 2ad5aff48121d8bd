//! Which part of a device a thermal zone belongs to: `scenarios/devices/zones.toml`, built in. Data only.

use std::{fmt, sync::LazyLock};

use serde::{Deserialize, Serialize};

/// A part of a device with temperatures of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Domain {
    /// The compute DSP: HVX and HMX.
    Npu,
    /// The CPU's cores and their shared parts.
    Cpu,
    /// The GPU.
    Gpu,
    /// The DRAM's controller.
    Ddr,
    /// Case or glass, as the maker's software estimates it.
    Skin,
    /// The battery.
    Battery,
    /// The modem.
    Modem,
    /// Power management ICs.
    Pmic,
    /// Known, and none of these.
    Other,
}

impl Domain {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 9] =
        [Self::Npu, Self::Cpu, Self::Gpu, Self::Ddr, Self::Skin, Self::Battery, Self::Modem, Self::Pmic, Self::Other];

    /// The word in scenarios and columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Npu => "npu",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Ddr => "ddr",
            Self::Skin => "skin",
            Self::Battery => "battery",
            Self::Modem => "modem",
            Self::Pmic => "pmic",
            Self::Other => "other",
        }
    }

    /// The domain of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|domain| domain.as_str() == word)
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    zone: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Entry {
    /// Only on this chip; everywhere when absent.
    soc: Option<String>,
    domain: Domain,
    names: Vec<String>,
}

static CATALOGUE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let catalogue: Catalogue = toml::from_str(include_str!("../../scenarios/devices/zones.toml")).expect("zones.toml, tested");
    catalogue.zone
});

/// The domain of a zone of a chip (`soc` may be empty); `None` when nobody knows the name.
///
/// `zone` is the zone's `type`, or the name of its rows in telemetry.csv (`cpu-0-0#2` is the second zone called `cpu-0-0`).
pub fn domain_of(soc: &str, zone: &str) -> Option<Domain> {
    let name = zone.split_once('#').map_or(zone, |(name, _)| name);
    let name = name.strip_suffix("-thermal").unwrap_or(name);
    let fits = |entry: &&Entry| entry.names.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()));
    let own = CATALOGUE.iter().filter(|entry| entry.soc.as_deref().is_some_and(|s| s.eq_ignore_ascii_case(soc)));
    let common = CATALOGUE.iter().filter(|entry| entry.soc.is_none());
    own.chain(common).find(fits).map(|entry| entry.domain)
}

/// `*`: any bytes; `#`: one or more digits, after a `-` or not.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|skip| matches(rest, &name[skip..])),
        [b'#', rest @ ..] => {
            let name = name.strip_prefix(b"-").unwrap_or(name);
            let digits = name.iter().take_while(|b| b.is_ascii_digit()).count();
            (1..=digits).any(|skip| matches(rest, &name[skip..]))
        }
        [byte, rest @ ..] => name.strip_prefix(&[*byte]).is_some_and(|name| matches(rest, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_real_devices() {
        // 8 Gen 3 (mainline device tree), 8 Elite (S25), QCS6490 and X Elite.
        for (zone, domain) in [
            ("nsphvx0", Domain::Npu),
            ("nsphmx-3", Domain::Npu),
            ("nspss0", Domain::Npu),
            ("nsp0", Domain::Npu),
            ("gpuss-10", Domain::Gpu),
            ("cpu7-top", Domain::Cpu),
            ("cpu-0-5", Domain::Cpu),
            ("cpu-0-5-1", Domain::Cpu),
            ("cpuss3", Domain::Cpu),
            ("cpuss-1-0", Domain::Cpu),
            ("cpullc-0-0", Domain::Cpu),
            ("cpuss0#2", Domain::Cpu),
            ("ddr", Domain::Ddr),
            ("skin-msm-therm", Domain::Skin),
            ("battery", Domain::Battery),
            ("mdmss-2", Domain::Modem),
            ("pm8550_tz", Domain::Pmic),
            ("aoss0-thermal", Domain::Other),
            ("coretemp/Core_0", Domain::Cpu),
        ] {
            assert_eq!(domain_of("SM8650", zone), Some(domain), "{zone}");
        }
        for raw in ["sys-therm-3", "xo-therm", "", "cpu", "nsphvx", "charger", "nspower"] {
            assert_eq!(domain_of("", raw), None, "{raw}");
        }
    }

    #[test]
    fn words_go_both_ways() {
        for domain in Domain::ALL {
            assert_eq!(Domain::parse(domain.as_str()), Some(domain));
        }
        assert_eq!(Domain::parse("NPU"), None);
    }
}
