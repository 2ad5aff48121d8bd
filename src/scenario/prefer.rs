//! Preferences: what the selection weighs, among candidates that meet the requirements.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{preset::preset, require::Subject, suggest::show};

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
    /// What no scenario can have said: of a stored plan that was changed.
    pub fn fault(&self) -> Option<String> {
        let of_weight = |(word, weight): (&String, &f64)| {
            let known = Subject::parse(word).is_some_and(|subject| subject.source.words().is_none());
            if !known {
                return Some(format!("prefer.weights has {}, which is nothing that can be weighed", show(word)));
            }
            let sound = weight.is_finite() && *weight > 0.0;
            (!sound).then(|| format!("prefer.weights.{word} is {weight}, and a weight is a number above 0"))
        };
        let unknown = |name: &&String| preset(name).is_none();
        let of_preset = |name: &String| format!("prefer.use is {}, and there is no such preset", show(name));
        self.weights.iter().find_map(of_weight).or_else(|| self.use_case.as_ref().filter(unknown).map(of_preset))
    }

    /// Everything that it weighs or limits, the preset's part included.
    pub fn words(&self) -> Vec<&str> {
        let preset = self.use_case.as_deref().and_then(preset);
        let weighed = preset.into_iter().filter(|_| self.weights.is_empty()).flat_map(|p| &p.weights).map(|w| w.metric.as_str());
        let limited = preset.into_iter().flat_map(|p| &p.require).map(|p| p.requirement.metric.as_str());
        self.weights.keys().map(String::as_str).chain(weighed).chain(limited).collect()
    }
}
