//! `[settle]`, `[environment]` and `[pin]`: the state of the device and of what is around it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::value::At;

/// The state that the device has to be in before each block of launches. What is not named is not waited for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settle {
    /// Bands of temperature by part of the device (npu cpu gpu ddr skin battery modem pmic: its hottest zone counts) or by the name of a
    /// zone, for instance `skin = ["28C", "36C"]`. Too cold counts as well: the first block must not be colder than the others.
    pub zones: Option<BTreeMap<At<String>, At<Band>>>,
    /// Longest wait before a block, for instance `10m` (default `5m`).
    pub timeout: Option<At<String>>,
    /// What is done when the state is not reached (default `mark`).
    pub policy: Option<SettlePolicy>,
    /// Time between two looks at the device, for instance `5s` (default `3s`).
    pub poll: Option<At<String>>,
    /// Least charge of the battery, for instance `30%`.
    pub battery: Option<At<String>>,
    /// Whether the battery is being charged (default `any`).
    pub charging: Option<YesNo>,
    /// Whether the screen is on (default `any`).
    pub screen: Option<OnOff>,
    /// Least memory that is available, for instance `4000MB` or `4GB`.
    pub free_memory: Option<At<String>>,
    /// Most that the whole CPU may be busy, of all its cores, for instance `20%`.
    pub quiet_cpu: Option<At<String>>,
    /// `true` also waits until no camera is in use and nobody else holds the compute DSP, as far as the device lets that be seen.
    pub contention: Option<At<bool>>,
}

/// Lowest and highest temperature, for instance `["28C", "36C"]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Band(#[schemars(length(min = 2, max = 2))] pub Vec<At<String>>);

/// What is done when the state is not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum SettlePolicy {
    /// The launches of the block are not made: each is a row with the reason.
    Skip,
    /// The launches are made and their rows marked.
    Mark,
    /// The run ends; `--resume` goes on with it.
    Abort,
}

/// A condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum YesNo {
    /// It has to be so.
    Yes,
    /// It must not be so.
    No,
    /// It does not matter.
    Any,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum OnOff {
    /// It has to be on.
    On,
    /// It has to be off.
    Off,
    /// It does not matter.
    Any,
}

/// What is around the device. It is written into the manifest and into the rows of the cells, and figures of different surroundings are not
/// compared without a word. Nothing of it is measured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Environment {
    /// Temperature of the air, for instance `22C`.
    pub ambient: Option<At<String>>,
    /// Where the current comes from, for instance `battery`, `usb` or `bench supply 4.2 V`.
    pub supply: Option<At<String>>,
    /// What the device is in, for instance `none`, `silicone` or `board with fan`.
    pub case: Option<At<String>>,
}
