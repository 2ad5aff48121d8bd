//! Prompts of exactly the asked number of tokens, different for each query of a launch (rule R3), and their reference tokens.

use std::{collections::BTreeMap, fs, path::Path};

use bench_backend_api::Geometry;
use serde::Deserialize;
use thiserror::Error;

use crate::random::SplitMix64;

/// Why there are no prompts.
#[derive(Debug, Error)]
pub enum PromptError {
    /// A made artifact can't be read.
    #[error("{0}: {1}")]
    Unreadable(String, String),
    /// A made artifact lacks what was asked for.
    #[error("the artifact `text` has no {queries} prompts of {tokens} tokens")]
    Missing {
        /// Prompts asked.
        queries: u32,
        /// Tokens asked.
        tokens: u32,
    },
    /// The vocabulary has nothing to make a prompt of.
    #[error("the vocabulary of {0} tokens has none beside BOS, EOS and PAD")]
    NoTokens(u32),
}

#[derive(Debug, Deserialize)]
struct Prompt {
    ids: Vec<u32>,
}
#[derive(Debug, Deserialize)]
struct Answer {
    tokens: Vec<u32>,
}

/// Prompts and reference tokens of one prompt length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompts {
    /// Token ids, BOS first, one list a query.
    pub ids: Vec<Vec<u32>>,
    /// Greedy tokens of the float32 reference, one list a query.
    pub reference: Option<Vec<Vec<u32>>>,
}

fn load<T: for<'de> Deserialize<'de>>(folder: &Path, name: &str) -> Result<BTreeMap<String, Vec<T>>, PromptError> {
    let path = folder.join(name);
    let bad = |e: String| PromptError::Unreadable(path.display().to_string(), e);
    serde_json::from_slice(&fs::read(&path).map_err(|e| bad(e.to_string()))?).map_err(|e| bad(e.to_string()))
}

/// Takes prompts and reference from a made `text` artifact.
pub fn from_artifact(folder: &Path, tokens: u32, gen_tokens: u32, queries: u32) -> Result<Prompts, PromptError> {
    let missing = || PromptError::Missing { queries, tokens };
    let prompts = load::<Prompt>(folder, "prompts.json")?;
    let reference = load::<Answer>(folder, "reference.json")?;
    let pick = |n: usize| n >= queries as usize;
    let ids: Vec<Vec<u32>> =
        prompts.get(&tokens.to_string()).filter(|p| pick(p.len())).ok_or_else(missing)?.iter().map(|p| p.ids.clone()).collect();
    let answers: Vec<Vec<u32>> = reference
        .get(&tokens.to_string())
        .filter(|p| pick(p.len()))
        .ok_or_else(missing)?
        .iter()
        .map(|a| a.tokens.iter().take(gen_tokens as usize).copied().collect())
        .collect();
    if ids.iter().any(|p| p.len() != tokens as usize) || answers.iter().any(|a| a.len() != gen_tokens as usize) {
        return Err(missing());
    }
    let queries = queries as usize;
    Ok(Prompts { ids: ids.into_iter().take(queries).collect(), reference: Some(answers.into_iter().take(queries).collect()) })
}

/// Prompts of seeded random tokens: for programs of the user that bring their own model, where there is nothing to agree with.
///
/// # Errors
/// A vocabulary without an ordinary token.
pub fn synthetic(geometry: &Geometry, seed: u64, tokens: u32, queries: u32) -> Result<Prompts, PromptError> {
    let mut random = SplitMix64::new(seed ^ (u64::from(tokens) << 32));
    let special = [geometry.bos, geometry.eos, geometry.pad];
    if (0..geometry.vocab.min(special.len() as u32 + 1)).all(|id| special.contains(&id)) {
        return Err(PromptError::NoTokens(geometry.vocab));
    }
    let mut one = |_| -> Vec<u32> {
        let mut ids = vec![geometry.bos];
        while ids.len() < tokens as usize {
            let id = (random.next() % u64::from(geometry.vocab.max(8))) as u32;
            if !special.contains(&id) && id < geometry.vocab {
                ids.push(id);
            }
        }
        ids.truncate(tokens as usize);
        ids
    };
    Ok(Prompts { ids: (0..queries).map(&mut one).collect(), reference: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry {
            name: "t".into(),
            layers: 1,
            hidden: 8,
            heads: 1,
            kv_heads: 1,
            head_dim: 8,
            ffn: 8,
            vocab: 64,
            rope_theta: 1e4,
            norm_eps: 1e-5,
            tied_embeddings: false,
            experts: 0,
            lm_head_bits: 16,
            embedding_bits: 16,
            seed: Some(1),
            bos: 0,
            eos: 1,
            pad: 2,
        }
    }

    const FIRST: [u32; 16] = [0, 41, 37, 39, 54, 28, 19, 29, 28, 50, 45, 11, 36, 4, 46, 51];

    #[test]
    fn synthetic_prompts_are_exact_distinct_and_repeatable() {
        let synthetic = |seed| synthetic(&geometry(), seed, 16, 4).expect("prompts");
        let a = synthetic(1);
        assert_eq!(a, synthetic(1));
        // Computed by an independent Python version of SplitMix64: the prompts of a seed are the same for ever.
        assert_eq!(a.ids[0], FIRST);
        assert!(a.ids.iter().all(|p| p.len() == 16 && p[0] == 0 && !p[1..].iter().any(|id| *id < 3 || *id >= 64)));
        assert!((1..4).all(|i| a.ids[i] != a.ids[i - 1]));
        assert_ne!(a, synthetic(2));
    }

    #[test]
    fn a_vocabulary_of_special_tokens_alone_is_refused() {
        for vocab in [0, 1, 2, 3] {
            let error = synthetic(&Geometry { vocab, ..geometry() }, 1, 16, 1).expect_err("no token");
            assert_eq!(error.to_string(), format!("the vocabulary of {vocab} tokens has none beside BOS, EOS and PAD"));
        }
        let prompts = synthetic(&Geometry { vocab: 4, ..geometry() }, 1, 4, 1).expect("one ordinary token");
        assert_eq!(prompts.ids, [[0, 3, 3, 3]]);
    }
}
