//! Use cases: what a product of some kind usually needs and prefers, as data (`presets.toml`). Proposals of this project, each with its reason and,
//! where there is one, its public source; never measurements.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::{Deserialize, Serialize};

use super::{
    limit::Limit,
    require::{Phase, Requirement, Statistic, Subject},
};

/// A use case.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// Its name, as `use` has it.
    pub name: String,
    /// The same for a reader.
    pub title: String,
    /// What is meant by it.
    pub what: String,
    /// What it needs.
    pub require: Vec<Proposal>,
    /// What it weighs.
    pub weights: Vec<Weighed>,
    /// What such a product needs and this version can't judge, in sentences.
    pub unasked: Vec<String>,
}

/// A limit of a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The limit with its conditions.
    pub requirement: Requirement,
    /// Why this value.
    pub reason: String,
    /// Public address of what the reason rests on; absent where the value is a guess of this project.
    pub source: Option<String>,
}

/// A weight of a preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighed {
    /// Word of a [`Subject`] that is a number.
    pub metric: String,
    /// Above 0; only the proportions count.
    pub weight: f64,
    /// Why so much.
    pub reason: String,
}

/// Every preset, in the order of the file.
pub fn presets() -> &'static [Preset] {
    static PRESETS: LazyLock<Vec<Preset>> =
        LazyLock::new(|| parse(include_str!("presets.toml")).expect("the presets of this program are valid"));
    &PRESETS
}

/// The preset of this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    preset: Vec<WirePreset>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WirePreset {
    name: String,
    title: String,
    what: String,
    #[serde(default)]
    require: Vec<WireRequire>,
    weigh: Vec<Weighed>,
    #[serde(default)]
    unasked: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WireRequire {
    metric: String,
    limit: String,
    statistic: Option<String>,
    phase: Option<String>,
    minute: Option<u32>,
    prompt_tokens: Option<u32>,
    reason: String,
    source: Option<String>,
}

/// Reads a file of presets.
fn parse(text: &str) -> Result<Vec<Preset>, String> {
    let Wire { preset } = toml::from_str(text).map_err(|error| error.to_string())?;
    preset
        .into_iter()
        .map(|WirePreset { name, title, what, require, weigh, unasked }| {
            let require = require.into_iter().map(proposal).collect::<Result<_, _>>().map_err(|why: String| format!("{name}: {why}"))?;
            Ok(Preset { name, title, what, require, weights: weigh, unasked })
        })
        .collect()
}

fn proposal(wire: WireRequire) -> Result<Proposal, String> {
    let subject = Subject::parse(&wire.metric).ok_or_else(|| format!("unknown metric {}", wire.metric))?;
    let limit = Limit::parse(&wire.limit, subject).map_err(|no| format!("{}, {}", no.message, no.help))?;
    let known = |word: &String| Statistic::parse(word).ok_or_else(|| format!("unknown statistic {word}"));
    let statistic = wire.statistic.as_ref().map(known).transpose()?;
    let usual = (!subject.ask_statistic && !subject.statistics.is_empty()).then_some(Statistic::Median);
    let phase = wire.phase.as_ref().map(|word| Phase::parse(word).ok_or_else(|| format!("unknown phase {word}"))).transpose()?;
    let prompt = wire.prompt_tokens.map(|n| ("prompt-tokens".to_owned(), vec![n.to_string()]));
    let requirement = Requirement {
        metric: wire.metric,
        limit,
        text: wire.limit,
        statistic: statistic.or(usual),
        phase,
        minute: wire.minute,
        cells: BTreeMap::from_iter(prompt),
    };
    Ok(Proposal { requirement, reason: wire.reason, source: wire.source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{require::Need, wire::Prefer};

    /// Each limit has the conditions without which it means nothing (rule R27); those that need any cell at all are of every cell here.
    #[test]
    fn the_presets_are_sound() {
        let mut names: Vec<&str> = presets().iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(
            names,
            ["chat-assistant", "glasses", "in-car", "always-on-service", "phone-app", "batch", "vision-detector"],
            "the use cases of the issue"
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), presets().len(), "each once");
        for preset in presets() {
            let name = &preset.name;
            for Proposal { requirement, reason, source } in &preset.require {
                let subject = requirement.subject().expect("known");
                for need in subject.needs {
                    let there = match need {
                        Need::Cells(key) => requirement.cells.contains_key(key.as_str()),
                        Need::Phase => requirement.phase.is_some(),
                        Need::Minute => requirement.minute.is_some(),
                        Need::Any => true,
                    };
                    assert!(there, "{name}: {} lacks {need:?}", subject.word);
                }
                assert!(!subject.ask_statistic || requirement.statistic.is_some(), "{name}: {}", subject.word);
                assert!(reason.len() > 30, "{name}: {}: a reason", subject.word);
                assert!(source.as_deref().is_none_or(|url| url.starts_with("https://")), "{name}: {source:?}");
                let same = preset.require.iter().filter(|other| other.requirement.metric == requirement.metric);
                assert_eq!(same.count(), 1, "{name}: {}: a scenario's own takes the place of one", subject.word);
            }
            assert!(!preset.weights.is_empty(), "{name}");
            for Weighed { metric, weight, reason } in &preset.weights {
                assert!(*weight > 0.0 && weight.is_finite() && reason.len() > 15, "{name}: {metric}");
                assert!(Prefer::WORDS.contains(&metric.as_str()), "{name}: {metric} is no number");
            }
        }
    }

    #[test]
    fn every_subject_that_is_a_number_can_have_a_weight() {
        let numbers = super::super::SUBJECTS.iter().filter(|s| s.source.words().is_none()).map(|s| s.word);
        assert_eq!(numbers.collect::<Vec<_>>(), Prefer::WORDS);
    }

    #[test]
    fn a_preset_that_makes_no_sense_says_where() {
        let text = |require: &str| {
            format!("[[preset]]\nname = \"x\"\ntitle = \"X\"\nwhat = \"x\"\nweigh = []\n[[preset.require]]\nreason = \"\"\n{require}")
        };
        let why = |require: &str| parse(&text(require)).expect_err("no preset");
        assert_eq!(why("metric = \"ttft\"\nlimit = \">= 1s\""), "x: `ttft` is good when low, write `<= 1s`");
        assert_eq!(why("metric = \"speed\"\nlimit = \">= 1s\""), "x: unknown metric speed");
        assert!(why("metric = \"ttft\"\nlimit = \"<= 1s\"\nwhere = 3").contains("unknown field `where`"));
    }
}
