//! Names of operations as lists of words, so that one rule reads `q_proj`, `q/proj` and `QProj`.

use std::collections::HashMap;

/// The words of a name between `^` and `$`: cut at every sign, at a capital behind a small letter or a digit (and at the last capital of
/// several, `RMSNorm`), and before the digits at a word's end. In small letters; a hyphen is a word, other signs are none.
pub fn words(name: &str) -> Vec<String> {
    let mut found = vec!["^".to_owned()];
    let chars: Vec<char> = name.chars().collect();
    let mut word = String::new();
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|i| chars[i]);
        let capital = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase()
                    || b.is_ascii_digit()
                    || (b.is_ascii_uppercase() && chars.get(at + 1).is_some_and(char::is_ascii_lowercase))
            });
        if !c.is_ascii_alphanumeric() || capital {
            push(&mut found, &mut word);
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if matches!(c, '-' | '#' | '^' | '$') {
            found.push(c.to_string());
        }
    }
    push(&mut found, &mut word);
    found.push("$".to_owned());
    found
}

fn push(found: &mut Vec<String>, word: &mut String) {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (head, digits) = word.split_at(letters);
    found.extend([head, digits].into_iter().filter(|part| !part.is_empty()).map(str::to_owned));
    word.clear();
}

/// A list of words to look for: `layers # q`. `#` is a number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    words: Vec<String>,
    /// Of the rule that it belongs to.
    rule: usize,
}

/// A pattern found in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Number of its first word.
    pub begin: usize,
    /// Number of the word behind its last.
    pub end: usize,
    /// The rule that it belongs to.
    pub rule: usize,
}

/// Patterns by their first words: a model has tens of thousands of operations, and the rules have hundreds of patterns.
#[derive(Debug, Default)]
pub struct Patterns(HashMap<String, Vec<Pattern>>);

impl Patterns {
    /// Adds a pattern of a rule, cut like a name; `^` and `$` only where they are written.
    pub fn add(&mut self, text: &str, rule: usize) {
        let mut all = words(text);
        all.pop();
        let words = all.split_off(1);
        if let Some(first) = words.first().cloned() {
            self.0.entry(first).or_default().push(Pattern { words, rule });
        }
    }

    /// The patterns of these rules.
    pub fn of<'a>(rules: impl IntoIterator<Item = (usize, &'a String)>) -> Self {
        let mut patterns = Self::default();
        rules.into_iter().for_each(|(rule, text)| patterns.add(text, rule));
        patterns
    }

    /// Those that begin with a name's word of this number.
    pub fn at<'a>(&'a self, name: &'a [String], begin: usize) -> impl Iterator<Item = Place> + 'a {
        let first = name.get(begin).map_or("", |word| if is_number(word) { "#" } else { word });
        let fits = move |pattern: &&Pattern| {
            let there = name.get(begin..begin + pattern.words.len());
            there.is_some_and(|there| pattern.words.iter().zip(there).all(|(want, word)| want == word || (want == "#" && is_number(word))))
        };
        let found = self.0.get(first).into_iter().flatten().filter(fits);
        found.map(move |pattern| Place { begin, end: begin + pattern.words.len(), rule: pattern.rule })
    }

    /// All that a name holds, from its begin on.
    pub fn all<'a>(&'a self, name: &'a [String]) -> impl Iterator<Item = Place> + 'a {
        (0..name.len()).flat_map(move |begin| self.at(name, begin))
    }
}

/// Whether a word is a number.
pub fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{Patterns, words};

    #[test]
    fn names_are_cut() {
        for (name, wanted) in [
            ("layers.0.q/rope/real", "^ layers 0 q rope real $"),
            ("/model/layers.10/self_attn/q_proj/MatMul_output_0Reshape", "^ model layers 10 self attn q proj mat mul output 0 reshape $"),
            ("layers.1.q/matmul/storedReshape", "^ layers 1 q matmul stored reshape $"),
            ("RMSNorm", "^ rms norm $"),
            ("Qcur-0", "^ qcur - 0 $"),
            ("MUL_MAT", "^ mul mat $"),
            ("BinaryOp18", "^ binary op 18 $"),
            ("Conv2d", "^ conv2d $"),
            ("cache_k_l0", "^ cache k l 0 $"),
            ("größe.0", "^ gr e 0 $"),
            ("", "^ $"),
        ] {
            assert_eq!(words(name).join(" "), wanted);
        }
    }

    #[test]
    fn patterns_match_whole_words() {
        let name = words("/model/layers.12/self_attn/q_proj/MatMul");
        let places = |pattern: &str, name: &[String]| -> Vec<(usize, usize)> {
            let mut patterns = Patterns::default();
            patterns.add(pattern, 7);
            patterns.all(name).inspect(|place| assert_eq!(place.rule, 7)).map(|place| (place.begin, place.end)).collect()
        };
        assert_eq!(places("layers #", &name), [(2, 4)]);
        assert_eq!(places("q proj", &name), [(6, 8)]);
        assert_eq!(places("attn q", &name), [(5, 7)]);
        assert_eq!(places("^ model", &name), [(0, 2)]);
        assert_eq!(places("MatMul $", &name), [(8, 11)]);
        for none in ["proj q", "^ layers", "layers proj", ""] {
            assert_eq!(places(none, &name), [], "{none}");
        }
        assert_eq!(places("- # $", &words("kq_soft_max-31")), [(4, 7)]);
        assert_eq!(places("#", &words("a 1 2")), [(2, 3), (3, 4)]);
    }
}
