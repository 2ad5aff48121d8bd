//! Prompts of exactly the asked number of tokens, different for each query of a launch (rule R3), and their reference tokens. They come
//! with a model that is made on the spot, or are made with a model's own tokenizer, or are random token ids where there is neither.

use std::{collections::BTreeMap, fs, path::Path};

use bench_backend_api::Geometry;
use serde::Deserialize;
use thiserror::Error;

use super::exact::{Exact, ExactError, TRIES, same_beginning};
use crate::{chat::ChatTemplate, random::SplitMix64};

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
    /// There are not enough different prompts of this length.
    #[error(
        "only {found} different prompts of {tokens} tokens were found in a vocabulary of {vocab}, {queries} are needed: ask for longer ones"
    )]
    TooAlike {
        /// Different ones.
        found: usize,
        /// Tokens asked.
        tokens: u32,
        /// The vocabulary.
        vocab: u32,
        /// Prompts asked.
        queries: u32,
    },
    /// Nobody tells the vocabulary.
    #[error("no `geometry` tells its `vocab`")]
    NoVocabulary,
    /// The model's own tokenizer.
    #[error(transparent)]
    Exact(#[from] ExactError),
}

#[derive(Debug, Deserialize)]
struct Prompt {
    ids: Vec<u32>,
    #[serde(default)]
    text: Option<String>,
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
    /// The same as text, without BOS; empty where the ids stand for none.
    pub texts: Vec<String>,
    /// The model wants a BOS, and every prompt begins with exactly one.
    pub bos: bool,
    /// Greedy tokens of the float32 reference, one list a query.
    pub reference: Option<Vec<Vec<u32>>>,
}

fn load<T: for<'de> Deserialize<'de>>(folder: &Path, name: &str) -> Result<BTreeMap<String, Vec<T>>, PromptError> {
    let path = folder.join(name);
    let bad = |e: String| PromptError::Unreadable(path.display().to_string(), e);
    serde_json::from_slice(&fs::read(&path).map_err(|e| bad(e.to_string()))?).map_err(|e| bad(e.to_string()))
}

/// Takes prompts and reference from a made `text` artifact.
pub fn from_artifact(folder: &Path, bos: Option<u32>, tokens: u32, gen_tokens: u32, queries: u32) -> Result<Prompts, PromptError> {
    let missing = || PromptError::Missing { queries, tokens };
    let prompts = load::<Prompt>(folder, "prompts.json")?;
    let reference = load::<Answer>(folder, "reference.json")?;
    let pick = |n: usize| n >= queries as usize;
    let prompts = prompts.get(&tokens.to_string()).filter(|p| pick(p.len())).ok_or_else(missing)?;
    let ids: Vec<Vec<u32>> = prompts.iter().map(|p| p.ids.clone()).collect();
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
    let texts = prompts.iter().filter_map(|p| p.text.clone()).take(queries).collect();
    let ids: Vec<Vec<u32>> = ids.into_iter().take(queries).collect();
    let bos = one_bos(&ids, bos);
    Ok(Prompts { ids, texts, bos, reference: Some(answers.into_iter().take(queries).collect()) })
}

/// Whether there is a BOS, and every prompt begins with exactly one.
fn one_bos(prompts: &[Vec<u32>], bos: Option<u32>) -> bool {
    let one = |ids: &Vec<u32>, bos| ids.first() == Some(&bos) && !ids[1..].contains(&bos);
    bos.is_some_and(|bos| prompts.iter().all(|ids| one(ids, bos)))
}

/// Prompts of English text, made with the model's own `tokenizer.json`, inside its chat template if there is one.
///
/// # Errors
/// A tokenizer that can't be used or is another model's, or a length that can't be met.
pub fn exact(
    (tokenizer, chat): (&Path, Option<ChatTemplate>),
    geometry: Option<&Geometry>,
    seed: u64,
    tokens: u32,
    queries: u32,
) -> Result<Prompts, PromptError> {
    let plain = Exact::open(tokenizer, geometry.and_then(|g| g.bos), geometry.and_then(|g| g.vocab))?;
    let in_chat = chat.is_some();
    let exact = match chat {
        Some(chat) => plain.within(chat)?,
        None => plain,
    };
    let (ids, mut texts): (Vec<_>, Vec<_>) = exact.prompts(seed, tokens, queries)?.into_iter().map(|p| (p.ids, p.text)).unzip();
    if in_chat && texts.iter().any(String::is_empty) {
        texts.clear();
    }
    let bos = one_bos(&ids, exact.bos());
    Ok(Prompts { ids, texts, bos, reference: None })
}

/// Prompts of seeded random tokens: for models whose tokenizer nobody names, and programs of the user that bring their own model.
///
/// # Errors
/// A vocabulary that is not told, without an ordinary token, or with too few of them for so many prompts.
pub fn synthetic(geometry: &Geometry, seed: u64, tokens: u32, queries: u32) -> Result<Prompts, PromptError> {
    let mut random = SplitMix64::new(seed ^ (u64::from(tokens) << 32));
    let vocab = geometry.vocab.ok_or(PromptError::NoVocabulary)?;
    let special = [geometry.bos, geometry.eos, geometry.pad];
    if (0..vocab.min(special.len() as u32 + 1)).all(|id| special.contains(&Some(id))) {
        return Err(PromptError::NoTokens(vocab));
    }
    let mut one = || -> Vec<u32> {
        let mut ids = Vec::from_iter(geometry.bos);
        while ids.len() < tokens as usize {
            let id = (random.next() % u64::from(vocab.max(8))) as u32;
            if !special.contains(&Some(id)) && id < vocab {
                ids.push(id);
            }
        }
        ids.truncate(tokens as usize);
        ids
    };
    let mut made: Vec<Vec<u32>> = Vec::new();
    for _ in 0..queries {
        let found = (0..TRIES).map(|_| one()).find(|ids| !made.iter().any(|other| same_beginning(ids, other)));
        made.push(found.ok_or(PromptError::TooAlike { found: made.len(), tokens, vocab, queries })?);
    }
    let bos = one_bos(&made, geometry.bos);
    Ok(Prompts { ids: made, texts: Vec::new(), bos, reference: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry { name: "t".into(), vocab: Some(64), bos: Some(0), eos: Some(1), pad: Some(2), ..Geometry::default() }
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
            let error = synthetic(&Geometry { vocab: Some(vocab), ..geometry() }, 1, 16, 1).expect_err("no token");
            assert_eq!(error.to_string(), format!("the vocabulary of {vocab} tokens has none beside BOS, EOS and PAD"));
        }
        let prompts = synthetic(&Geometry { vocab: Some(4), ..geometry() }, 1, 4, 1).expect("one ordinary token");
        assert_eq!(prompts.ids, [[0, 3, 3, 3]]);
        let without_bos = Geometry { bos: None, eos: None, pad: None, vocab: Some(1), ..geometry() };
        assert_eq!(synthetic(&without_bos, 1, 3, 1).expect("one token").ids, [[0, 0, 0]]);
        assert!(matches!(synthetic(&Geometry::default(), 1, 3, 1), Err(PromptError::NoVocabulary)));
        // One ordinary token makes one prompt: a second would be answered from the first one's KV cache.
        let alike = synthetic(&Geometry { vocab: Some(4), ..geometry() }, 1, 4, 2).expect_err("one prompt");
        assert!(alike.to_string().starts_with("only 1 different prompts of 4 tokens"), "{alike}");
    }
}
