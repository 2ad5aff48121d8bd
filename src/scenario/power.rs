//! `[power]`, checked: what a run does to measure power, and what its readings are.

use serde::{Deserialize, Serialize};

/// How power is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerMethod {
    /// What there is.
    #[default]
    Auto,
    /// Current times voltage of the battery.
    Battery,
    /// Power rails of a board.
    Hwmon,
    /// An external meter.
    Meter,
}

/// Where an external meter's CSV comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterSource {
    /// Absolute path of the file that its program writes.
    File(String),
    /// Command line of this computer whose standard output it is.
    Command(Vec<String>),
}

/// What a run does about power.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Power {
    /// How it is measured.
    pub method: PowerMethod,
    /// What is read is the device's supply, so that external power is no reason to refuse it.
    pub measured: bool,
    /// Command line of this computer that cuts USB power; empty when there is none.
    pub usb_off: Vec<String>,
    /// Command line of this computer that gives it back.
    pub usb_on: Vec<String>,
    /// How long USB stays cut in the first launch of a cell, in ms; the launch's time-out when absent.
    pub away_ms: Option<u64>,
    /// How long its battery may take to discharge once it should, in ms; what is usual when absent.
    pub wait_ms: Option<u64>,
    /// The user unplugs the device by hand.
    pub on_battery: bool,
    /// Idle time before the first launch, and in the first launch of each cell with the model in memory, in ms; 0 is none.
    pub baseline_ms: u64,
    /// Rails of hwmon to add.
    pub rails: Vec<String>,
    /// The external meter.
    pub meter: Option<MeterSource>,
}

impl Power {
    /// The shortest and usual idle baseline, in ms.
    pub const BASELINE_MS: u64 = 60_000;

    /// What `--on-battery` means for a scenario without `[power]`.
    pub fn by_hand() -> Self {
        Self { on_battery: true, baseline_ms: Self::BASELINE_MS, ..Self::default() }
    }
}
