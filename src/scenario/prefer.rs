//! Preferences: what the selection weighs, among candidates that meet the requirements.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A checked `[prefer]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Prefer {
    /// Name of the preset whose limits and weights are added.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub use_case: Option<String>,
    /// Weights above 0 by the words of [`super::Subject`]; only their proportions count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, f64>,
}

impl Prefer {
    /// Everything that it weighs or limits, the preset's part included.
    pub fn words(&self) -> Vec<&str> {
        let preset = self.use_case.as_deref().and_then(super::preset::preset);
        let weighed = preset.into_iter().filter(|_| self.weights.is_empty()).flat_map(|p| &p.weights).map(|w| w.metric.as_str());
        let limited = preset.into_iter().flat_map(|p| &p.require).map(|p| p.requirement.metric.as_str());
        self.weights.keys().map(String::as_str).chain(weighed).chain(limited).collect()
    }
}
