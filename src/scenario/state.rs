//! The state of a device and of what is around it, as a scenario asks for it and says it.

use serde::{Deserialize, Serialize};

use crate::device::zones::Domain;

/// `[settle]`: what is waited for before each block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settle {
    /// Longest wait before a block, in ms.
    pub timeout_ms: u64,
    /// Time between two looks, in ms.
    pub poll_ms: u64,
    /// What is done when the state is not reached.
    pub policy: Policy,
    /// Least charge, in percent.
    #[serde(default)]
    pub battery_pct: Option<f64>,
    /// Whether it must (`true`) or must not be charging.
    #[serde(default)]
    pub charging: Option<bool>,
    /// Whether the screen must be on or off.
    #[serde(default)]
    pub screen: Option<bool>,
    /// Least available memory, in 10^6 bytes.
    #[serde(default)]
    pub free_mb: Option<f64>,
    /// Most that the CPU may be busy, in percent of all cores.
    #[serde(default)]
    pub quiet_cpu_pct: Option<f64>,
    /// Whether nobody else may use camera or compute DSP.
    #[serde(default)]
    pub contention: bool,
    /// Temperatures.
    #[serde(default)]
    pub bands: Vec<Band>,
}

/// What is done when the state is not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The launches of the block are rows with a reason.
    Skip,
    /// The launches are made, and marked.
    Mark,
    /// The run ends, and can be resumed.
    Abort,
}

/// A band of temperature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// A domain (its hottest zone counts) or the name of a zone.
    pub zone: String,
    /// Lowest, in degrees Celsius.
    pub low_c: f64,
    /// Highest, in degrees Celsius.
    pub high_c: f64,
}
impl Band {
    /// The domain that is meant, if it is not a single zone.
    pub fn domain(&self) -> Option<Domain> {
        Domain::parse(&self.zone)
    }
}

/// `[environment]`: what the user says of the surroundings; unstated is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Temperature of the air, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambient_c: Option<f64>,
    /// Where the current comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supply: Option<String>,
    /// What the device is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
}

/// `[pin]`: what is set on the device for the time of the run, and put back afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Name in the list of `src/device/pins.toml`.
    pub name: String,
    /// The value in the device's words.
    pub value: String,
}
