//! How far cells ran the same model, by what is known of their artifacts (rules R13 and R29).

use std::collections::BTreeSet;

/// How the keys of artifacts begin that bench makes itself: from the model's shape and seed, so that those of one model are of one source.
const SELF_MADE: [&str; 2] = ["qnn-context-", "mnn-llm-"];

/// How the key of a cell begins that has prompts of its own tokenizer and no artifact: a program that brings its model.
const NO_ARTIFACT: &str = "tokenizer-";

/// Whether an artifact was made by bench itself.
pub fn is_self_made(artifact: &str) -> bool {
    SELF_MADE.iter().any(|kind| artifact.starts_with(kind))
}

/// The artifact that a key of `cells.csv` names; `None` where no file of the model is known.
pub fn artifact(key: &str) -> Option<&str> {
    Some(key).filter(|key| !key.is_empty() && !key.starts_with(NO_ARTIFACT))
}

/// What is known of the model behind a cell: columns of `cells.csv`.
#[derive(Debug, Clone, Copy)]
pub struct Ran<'a> {
    /// Who ran it, as it is shown.
    pub who: &'a str,
    /// `artifact`.
    pub artifact: &'a str,
    /// `quant`.
    pub quant: &'a str,
}

/// How far cells of one model of the scenario ran the same.
#[derive(Debug, PartialEq, Eq)]
pub enum Sameness<'a> {
    /// The very same files.
    One,
    /// Files of one source model, in words: which, and whether quantised otherwise.
    Source(&'static str),
    /// Of these no file is known.
    Unknown(Vec<&'a str>),
}

/// How far these ran the same model. What the scenario calls one model is its word alone, unless bench made the files.
pub fn sameness<'a>(all: &[Ran<'a>]) -> Sameness<'a> {
    let artifacts: BTreeSet<&str> = all.iter().filter_map(|ran| artifact(ran.artifact)).collect();
    let mut unknown: Vec<&str> = all.iter().filter(|ran| artifact(ran.artifact).is_none()).map(|ran| ran.who).collect();
    if !unknown.is_empty() {
        let mut seen = BTreeSet::new();
        unknown.retain(|who| seen.insert(*who));
        return Sameness::Unknown(unknown);
    }
    if artifacts.len() < 2 {
        return Sameness::One;
    }
    let made = artifacts.iter().all(|artifact| is_self_made(artifact));
    let differ = |of: fn(&Ran<'a>) -> &'a str| all.iter().map(of).filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().len() > 1;
    // Of one class two names may mean one quantisation, and one name two: that the artifacts differ is all that is known.
    Sameness::Source(match (made, differ(|ran| ran.quant)) {
        (true, true) => "Same source model, different quantisation",
        (true, false) => "Same source model, different artifacts",
        (false, true) => "Same source model by the scenario's word, different quantisation",
        (false, false) => "Same source model by the scenario's word, different artifacts",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran<'a>(who: &'a str, artifact: &'a str, quant: &'a str) -> Ran<'a> {
        Ran { who, artifact, quant }
    }

    #[test]
    fn one_source_and_another_quantisation_are_said_where_they_are_known() {
        let words = |all: &[Ran]| match sameness(all) {
            Sameness::Source(words) => words,
            other => panic!("{other:?}"),
        };
        let (made, other) = ("mnn-llm-60ae14b6c8831a37", "qnn-context-c2af8cf0a01dce78");
        assert_eq!(words(&[ran("a", made, "w8"), ran("b", other, "w4")]), "Same source model, different quantisation");
        assert_eq!(words(&[ran("a", made, "fp32"), ran("b", other, "fp32")]), "Same source model, different artifacts");
        // Of one class nobody knows it by the names: `Q4_0` and `q4_0` are one.
        assert_eq!(words(&[ran("a", made, "w4"), ran("b", other, "w4")]), "Same source model, different artifacts");
        let files = [ran("a", "files-1", "w4"), ran("b", other, "w8")];
        assert_eq!(words(&files), "Same source model by the scenario's word, different quantisation");
        let files = [ran("a", "files-1", "w4"), ran("b", "files-2", "w4")];
        assert_eq!(words(&files), "Same source model by the scenario's word, different artifacts");
    }

    #[test]
    fn of_programs_without_an_artifact_nobody_knows_what_they_ran() {
        assert_eq!(sameness(&[ran("a", "files-1", "w4"), ran("b", "files-1", "w4")]), Sameness::One);
        assert_eq!(sameness(&[ran("a", "", "fp32"), ran("b", "", "fp32"), ran("a", "", "fp32")]), Sameness::Unknown(vec!["a", "b"]));
        assert_eq!(sameness(&[ran("a", "files-1", "w4"), ran("b", "", "w8")]), Sameness::Unknown(vec!["b"]));
        // One tokenizer is no one model.
        let both = "tokenizer-0123456789abcdef";
        assert_eq!(sameness(&[ran("a", both, "fp32"), ran("b", both, "fp32")]), Sameness::Unknown(vec!["a", "b"]));
    }
}
