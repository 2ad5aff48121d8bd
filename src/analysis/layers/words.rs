//! Names of operations as lists of words, so that one rule reads `q_proj`, `q/proj` and `QProj`.

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
pub struct Pattern(Vec<String>);

impl Pattern {
    /// Reads a pattern of the rules, cut like a name; `^` and `$` only where they are written.
    pub fn new(text: &str) -> Self {
        let mut all = words(text);
        all.pop();
        Self(all.split_off(1))
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Where it stands in a name: begins of all places, in order.
    pub fn places<'a>(&'a self, name: &'a [String]) -> impl DoubleEndedIterator<Item = usize> + 'a {
        name.windows(self.0.len().max(1)).enumerate().filter(|(_, at)| self.fits(at)).map(|(begin, _)| begin)
    }

    /// The number in its first place.
    pub fn number(&self, name: &[String]) -> Option<u32> {
        let begin = self.places(name).next()?;
        let at = self.0.iter().position(|word| word == "#")?;
        name.get(begin + at)?.parse().ok()
    }

    fn fits(&self, name: &[String]) -> bool {
        !self.0.is_empty() && self.0.iter().zip(name).all(|(want, word)| if want == "#" { is_number(word) } else { want == word })
    }
}

/// Whether a word is a number.
pub fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{Pattern, words};

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
        assert_eq!(Pattern::new("layers #").number(&name), Some(12));
        assert_eq!(Pattern::new("q proj").places(&name).collect::<Vec<_>>(), [6]);
        assert_eq!(Pattern::new("proj q").places(&name).count(), 0);
        assert_eq!(Pattern::new("attn q").places(&name).count(), 1);
        assert_eq!(Pattern::new("^ model").places(&name).count(), 1);
        assert_eq!(Pattern::new("^ layers").places(&name).count(), 0);
        assert_eq!(Pattern::new("- # $").number(&words("kq_soft_max-31")), Some(31));
        // A number that is none of ours is no panic.
        assert_eq!(Pattern::new("layers #").number(&words("layers.99999999999999999999")), None);
        assert_eq!(Pattern::new("").places(&name).count(), 0);
    }
}
