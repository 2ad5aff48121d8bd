//! The state in which a launch began.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::device::zones::Domain;

/// What became of the wait before the block of a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Settled {
    /// Nothing was waited for.
    #[default]
    Off,
    /// The device was as the scenario asks.
    Ready,
    /// It was not, and the launch was made all the same.
    Marked,
    /// It was not, and the launch was not made.
    Skipped,
}
impl Settled {
    /// The word in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ready => "ready",
            Self::Marked => "marked",
            Self::Skipped => "skipped",
        }
    }
}

/// How a launch began. Temperatures and battery are the launch's own first readings; screen and other users were seen before its block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// What became of the wait before its block.
    pub settle: Settled,
    /// Seconds of that wait.
    #[serde(default)]
    pub settle_s: Option<f64>,
    /// What was missing when the wait ended, in words.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The hottest zone of each domain, in degrees Celsius.
    #[serde(default)]
    pub domains: BTreeMap<Domain, f64>,
    /// Charge in percent.
    #[serde(default)]
    pub battery_pct: Option<f64>,
    /// Whether the battery was being charged.
    #[serde(default)]
    pub charging: Option<bool>,
    /// Whether the screen was on.
    #[serde(default)]
    pub screen: Option<bool>,
    /// What was pinned, as [`super::pinned::words`] writes it.
    #[serde(default)]
    pub pins: String,
    /// Who else used camera or compute DSP; absent where that can't be seen.
    #[serde(default)]
    pub contended_by: Option<Vec<String>>,
    /// Why the launch that this cell was to share with others failed as a whole just before, so that it was made alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke: Option<String>,
}
