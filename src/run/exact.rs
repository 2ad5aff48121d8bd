//! Prompts of exactly N tokens with a real model's own tokenizer. Nothing is taken on trust: a prompt counts only when its whole text,
//! encoded again, has N ids.

use std::{fs, path::Path};

use thiserror::Error;
use tokenizers::Tokenizer;

use super::prose::prose;
use crate::{chat::ChatTemplate, random::SplitMix64};

/// The largest vocabularies in use make files of some 30 MB.
const MAX_BYTES: u64 = 256 << 20;
/// Texts that are tried for one prompt, before a length counts as one that can't be met.
pub(super) const TRIES: u64 = 16;
/// Tokens at the start of which no two prompts of a launch may agree in all: a shared beginning could be served from a KV cache (rule R3).
const BEGINNING: usize = 8;
/// Words that are one token with their space in most vocabularies: they fill what a cut leaves open.
const FILLERS: [&str; 12] = [" the", " of", " and", " to", " in", " a", " or", " is", " that", " for", " you", " this"];
/// How far around a length that can't be met others are tried, to name some in the error.
const AROUND: u32 = 8;

/// Why there is no prompt.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ExactError {
    /// The file is not a tokenizer.
    #[error("{path}: not a tokenizer.json that can be used: {why}")]
    Tokenizer {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// No text has this many tokens.
    #[error("no prompt of exactly {tokens} tokens can be made with {path}: {}", hint(*.least, .possible))]
    Length {
        /// Tokens asked.
        tokens: u32,
        /// The tokenizer.
        path: String,
        /// Fewest tokens of any prompt.
        least: u32,
        /// Lengths near it that can be met.
        possible: Vec<u32>,
    },
    /// There are not enough different prompts of this length.
    #[error("only {found} different prompts of {tokens} tokens can be made with {path}, {queries} are needed: ask for longer ones")]
    TooAlike {
        /// Different ones.
        found: usize,
        /// Tokens asked.
        tokens: u32,
        /// Prompts asked.
        queries: u32,
        /// The tokenizer.
        path: String,
    },
    /// The tokenizer, or the chat template, does not begin texts with exactly one BOS.
    #[error("{path}: a prompt has token {bos}, the BOS, {found} times instead of once at its begin: {hint}")]
    Bos {
        /// The tokenizer.
        path: String,
        /// The model's BOS.
        bos: u32,
        /// How often it is there.
        found: usize,
        /// What is probably wrong.
        hint: &'static str,
    },
    /// The tokenizer begins texts with a token that is not the model's BOS.
    #[error("{path} begins every text with token {own}, and the geometry says `bos = {bos}`: the prompts would begin with both")]
    OtherBos {
        /// The tokenizer.
        path: String,
        /// What it puts first.
        own: u32,
        /// The model's BOS.
        bos: u32,
    },
    /// The chat template fails.
    #[error("{0}")]
    Chat(String),
    /// The tokenizer is another model's.
    #[error("{path} gives token {id}, and the model's vocabulary has {vocab}: it is the tokenizer of another model")]
    OtherModel {
        /// The tokenizer.
        path: String,
        /// An id.
        id: u32,
        /// The model's vocabulary.
        vocab: u32,
    },
}

fn hint(least: u32, possible: &[u32]) -> String {
    let list: Vec<String> = possible.iter().map(u32::to_string).collect();
    match possible {
        [] => format!("the shortest has {least}"),
        [one] => format!("{one} can be met"),
        _ => format!("{} can be met", list.join(", ")),
    }
}

/// A prompt and its text, which is without what a tokenizer or runtime puts around it, and with the chat template where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Token ids, BOS first where the model has one.
    pub ids: Vec<u32>,
    /// Its text; empty also where a runtime's own tokenizer would make other tokens of what a chat template gives.
    pub text: String,
}

/// Makes prompts with one tokenizer.
pub struct Exact {
    tokenizer: Tokenizer,
    path: String,
    bos: Option<u32>,
    vocab: Option<u32>,
    chat: Option<ChatTemplate>,
    /// Tokens that every prompt begins with: those of the chat template before the user's words.
    lead: usize,
    fillers: Vec<&'static str>,
    least: usize,
}

impl Exact {
    /// Reads a `tokenizer.json`. `bos` and `vocab` are the model's, if known: a runtime that adds BOS has to be met even where the
    /// tokenizer adds none.
    ///
    /// # Errors
    /// A file that is not a tokenizer, or one of another BOS.
    pub fn open(path: &Path, bos: Option<u32>, vocab: Option<u32>) -> Result<Self, ExactError> {
        let bad = |why: String| ExactError::Tokenizer { path: path.display().to_string(), why };
        let size = fs::metadata(path).map_err(|e| bad(e.to_string()))?.len();
        if size > MAX_BYTES {
            return Err(bad(format!("{size} bytes are more than any tokenizer has")));
        }
        let bytes = fs::read(path).map_err(|e| bad(e.to_string()))?;
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|e| bad(e.to_string()))?;
        // Some files say that texts are to be cut or padded to a length.
        tokenizer.with_truncation(None).map_err(|e| bad(e.to_string()))?;
        tokenizer.with_padding(None);
        let mut exact =
            Self { tokenizer, path: path.display().to_string(), bos: None, vocab, chat: None, lead: 0, fillers: Vec::new(), least: 0 };
        // What stands before any text, and before none, is the tokenizer's own BOS.
        let first = |text: &str| exact.encoded(text, true).map(|ids| ids.first().copied());
        let own = if first("")? == first("It")? { first("")? } else { None };
        if let Some((own, bos)) = own.zip(bos).filter(|(own, bos)| own != bos) {
            return Err(ExactError::OtherBos { path: exact.path, own, bos });
        }
        exact.bos = bos.or(own);
        exact.measured()
    }

    /// The same with the user's words inside a chat template.
    ///
    /// # Errors
    /// The template fails.
    pub fn within(mut self, chat: ChatTemplate) -> Result<Self, ExactError> {
        self.chat = Some(chat);
        let (one, other) = (self.ids("It")?, self.ids("old")?);
        self.lead = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
        self.measured()
    }

    /// The model's BOS, by the geometry or by what its tokenizer begins texts with.
    pub const fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Looks at how many tokens little words and no words are.
    fn measured(mut self) -> Result<Self, ExactError> {
        self.least = self.ids("")?.len();
        self.fillers.clear();
        for filler in FILLERS {
            let count = |n: usize| self.ids(&format!("It{}", filler.repeat(n))).map(|ids| ids.len());
            let none = count(0)?;
            if (count(1)?, count(9)?) == (none + 1, none + 9) {
                self.fillers.push(filler);
            }
        }
        Ok(self)
    }

    /// `queries` different prompts of exactly `tokens` tokens.
    ///
    /// # Errors
    /// A length that can't be met, with those near it that can, or a tokenizer of another model.
    pub fn prompts(&self, seed: u64, tokens: u32, queries: u32) -> Result<Vec<Prompt>, ExactError> {
        let mut made: Vec<Prompt> = Vec::new();
        let mut met = false;
        for query in 0..u64::from(queries) {
            let fresh = |prompt: &Prompt| made.iter().all(|other| !same_beginning(self.own(&prompt.ids), self.own(&other.ids)));
            let mut found = None;
            for attempt in 0..TRIES {
                let Some(prompt) = self.one(mixed(seed, tokens, query * TRIES + attempt), tokens)? else { continue };
                met = true;
                if fresh(&prompt) {
                    found = Some(prompt);
                    break;
                }
            }
            match found {
                Some(prompt) => made.push(prompt),
                None if met => {
                    return Err(ExactError::TooAlike { found: made.len(), tokens, queries, path: self.path.clone() });
                }
                None => return Err(self.unmet(seed, tokens)),
            }
        }
        if let Some((vocab, id)) = self.vocab.and_then(|v| Some((v, *made.iter().flat_map(|p| &p.ids).find(|id| **id >= v)?))) {
            return Err(ExactError::OtherModel { path: self.path.clone(), id, vocab });
        }
        let bos = |prompt: &Prompt| {
            let bos = self.bos?;
            let found = prompt.ids.iter().filter(|id| **id == bos).count();
            (found != 1 || prompt.ids[0] != bos).then_some((bos, found))
        };
        match made.iter().find_map(bos) {
            Some((bos, found)) => {
                let hint = if self.chat.is_some() { "the chat template writes it too" } else { "the tokenizer makes it of plain words" };
                Err(ExactError::Bos { path: self.path.clone(), bos, found, hint })
            }
            None => Ok(made),
        }
    }

    /// The tokens behind those that every prompt begins with.
    fn own<'a>(&self, ids: &'a [u32]) -> &'a [u32] {
        ids.get(self.lead..).unwrap_or_default()
    }

    fn unmet(&self, seed: u64, tokens: u32) -> ExactError {
        let least = self.least as u32;
        let meets = |n: &u32| matches!(self.one(mixed(seed, *n, 0), *n), Ok(Some(_)));
        let around = tokens.saturating_sub(AROUND).max(least)..=tokens.saturating_add(AROUND);
        let possible = if tokens < least { Vec::new() } else { around.filter(meets).collect() };
        ExactError::Length { tokens, path: self.path.clone(), least, possible }
    }

    /// A prompt cut from the prose of a seed; `None` if this prose has none of that length.
    fn one(&self, seed: u64, tokens: u32) -> Result<Option<Prompt>, ExactError> {
        let Some(body) = (tokens as usize).checked_sub(self.least) else { return Ok(None) };
        let (text, ends) = self.corpus(seed, body)?;
        // The end of the token at which the text has to be cut, to first order: a cut can change how what is left of it is split.
        let cut = |n: usize| text.get(..if n == 0 { 0 } else { *ends.get(n - 1)? });
        let near = [0_isize, -1, 1, -2, 2, -3, 3].into_iter().filter_map(|d| body.checked_add_signed(d));
        for candidate in near.filter_map(cut) {
            if let Some(prompt) = self.accepted(candidate.to_owned(), tokens)? {
                return Ok(Some(prompt));
            }
        }
        // Else an earlier end of a word, filled up with words of one token each.
        for stem in (body.saturating_sub(24)..=body).rev().filter_map(cut) {
            let stem = stem.trim_end_matches(|c: char| !c.is_alphanumeric());
            for place in 0..self.fillers.len() {
                // Not always the first: where nothing is left of the prose the fillers are all that tells prompts apart.
                let filler = self.fillers[(seed as usize).wrapping_add(place) % self.fillers.len()];
                let begun = format!("{stem}{filler}").trim_start().to_owned();
                let Some(more) = (tokens as usize).checked_sub(self.ids(&begun)?.len()) else { continue };
                if let Some(prompt) = self.accepted(begun + &filler.repeat(more), tokens)? {
                    return Ok(Some(prompt));
                }
            }
        }
        Ok(None)
    }

    /// Prose with more than `body` tokens, and where in it each token ends.
    fn corpus(&self, seed: u64, body: usize) -> Result<(String, Vec<usize>), ExactError> {
        let mut words = body + 16;
        loop {
            let text = prose(seed, words);
            let encoding = self.tokenizer.encode(text.as_str(), false).map_err(|e| self.unusable(e.to_string()))?;
            let ends: Vec<usize> = encoding.get_offsets().iter().map(|(_, end)| *end).collect();
            // A vocabulary may hold whole phrases; one that makes nothing of a text is no tokenizer.
            if ends.len() > body + 3 || words > 64 * (body + 16) {
                return Ok((text, ends));
            }
            words *= 2;
        }
    }

    fn accepted(&self, text: String, tokens: u32) -> Result<Option<Prompt>, ExactError> {
        let ids = self.ids(&text)?;
        if ids.len() != tokens as usize {
            return Ok(None);
        }
        let text = match &self.chat {
            None => text,
            Some(chat) => {
                // A runtime that is given the text puts BOS before it.
                let whole = render(chat, &text)?;
                let text = chat.bos.as_deref().and_then(|bos| whole.strip_prefix(bos)).unwrap_or(&whole);
                if self.encoded(text, true)? == ids { text.to_owned() } else { String::new() }
            }
        };
        Ok(Some(Prompt { ids, text }))
    }

    /// The ids that a runtime prefills for words: with the tokenizer's own special tokens, or inside the chat template, which brings its own.
    fn ids(&self, words: &str) -> Result<Vec<u32>, ExactError> {
        match &self.chat {
            None => self.encoded(words, true),
            Some(chat) => self.encoded(&render(chat, words)?, false),
        }
    }

    /// The ids of a text, with exactly one BOS at the begin if the model has one.
    fn encoded(&self, text: &str, special: bool) -> Result<Vec<u32>, ExactError> {
        let mut ids = self.tokenizer.encode(text, special).map_err(|e| self.unusable(e.to_string()))?.get_ids().to_vec();
        if let Some(bos) = self.bos.filter(|bos| ids.first() != Some(bos)) {
            ids.insert(0, bos);
        }
        Ok(ids)
    }

    fn unusable(&self, why: String) -> ExactError {
        ExactError::Tokenizer { path: self.path.clone(), why }
    }
}

fn render(chat: &ChatTemplate, words: &str) -> Result<String, ExactError> {
    chat.render(words).map_err(|e| ExactError::Chat(e.to_string()))
}

/// Whether two prompts begin alike, beyond what every prompt begins with.
pub(in crate::run) fn same_beginning(a: &[u32], b: &[u32]) -> bool {
    let head = |ids: &[u32]| ids[..ids.len().min(BEGINNING)].to_vec();
    head(a) == head(b)
}

/// A seed for each length and text.
fn mixed(seed: u64, tokens: u32, text: u64) -> u64 {
    SplitMix64::new(SplitMix64::new(seed ^ (u64::from(tokens) << 32)).next() ^ text).next()
}

#[cfg(test)]
#[path = "exact/tests.rs"]
mod tests;
