//! Names of files: by what they show, the same in each run, for every file system.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

/// Longest name: with a folder and an ending it stays far under the 255 bytes of file systems.
const LONGEST: usize = 160;
/// Digits of the hash that stands for what was left out.
const DIGITS: usize = 8;

/// Names that are given away.
#[derive(Debug, Default)]
pub struct Names(BTreeSet<String>);

impl Names {
    /// A name of these words that no other picture has.
    pub fn unique(&mut self, words: &[&str]) -> String {
        let name = name(words);
        let mut free = name.clone();
        for n in 2.. {
            if self.0.insert(free.clone()) {
                break;
            }
            free = format!("{name}-{n}");
        }
        free
    }
}

/// Lower-case letters, digits and hyphens. A word of which more than its marks is lost (another script, an overlong name) gets a hash of what it
/// was, so that two of them stay two.
fn name(words: &[&str]) -> String {
    let parts: Vec<String> = words.iter().filter(|word| !word.is_empty()).map(|word| plain(word)).collect();
    let whole = parts.join("-");
    if whole.len() <= LONGEST {
        whole
    } else {
        format!("{}-{}", whole[..LONGEST - DIGITS - 1].trim_end_matches('-'), hash(&words.join("\n")))
    }
}

fn plain(word: &str) -> String {
    let mut found = String::new();
    for c in word.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' | '0'..='9' => found.push(c),
            _ if found.is_empty() || found.ends_with('-') => {}
            _ => found.push('-'),
        }
    }
    let found = found.trim_end_matches('-').to_owned();
    let lost = word.chars().any(|c| c.is_alphanumeric() && !c.is_ascii()) || found.is_empty();
    match (lost, found.is_empty()) {
        (false, _) => found,
        (true, false) => format!("{found}-{}", hash(word)),
        (true, true) => hash(word),
    }
}

fn hash(text: &str) -> String {
    crate::hex(&Sha256::digest(text.as_bytes())[..DIGITS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_shown_and_are_safe_everywhere() {
        let of = |words: &[&str]| Names::default().unique(words);
        assert_eq!(
            of(&["", "emulator", "Pixel 9", "tiny-llama", "Token latency, 96 → 16 tokens"]),
            "emulator-pixel-9-tiny-llama-token-latency-96-16-tokens"
        );
        for hostile in ["../../etc/passwd", "con", "a\0b", "C:\\x", "<script>", "..", "\u{202e}gnp"] {
            let name = of(&["pc", hostile, "Decode rate"]);
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{name}");
            assert!(name.starts_with("pc-") && name.ends_with("-decode-rate"), "{name}");
        }
        let long = of(&["phone", &"x".repeat(500), "t"]);
        assert!(long.len() <= LONGEST && long != of(&["phone", &"x".repeat(501), "t"]));
    }

    #[test]
    fn two_pictures_never_share_a_name() {
        let mut names = Names::default();
        assert_ne!(names.unique(&["phone", "小米"]), names.unique(&["phone", "华为"]));
        assert_eq!([names.unique(&["a b"]), names.unique(&["a-b"]), names.unique(&["A/B"])], ["a-b", "a-b-2", "a-b-3"]);
    }
}
