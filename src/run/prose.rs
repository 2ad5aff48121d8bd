//! Endless plain English of our own, made from a seed: what prompts for real models are cut from.

use crate::random::SplitMix64;

const OPENERS: [&str; 16] = [
    "Before", "After", "While", "When", "Because", "Although", "Until", "Since", "As", "Once", "Whenever", "If", "Where", "Unless",
    "Though", "Near",
];
const PEOPLE: [&str; 16] = [
    "farmer",
    "teacher",
    "sailor",
    "doctor",
    "painter",
    "driver",
    "writer",
    "baker",
    "student",
    "captain",
    "singer",
    "hunter",
    "neighbour",
    "gardener",
    "engineer",
    "nurse",
];
const VERBS: [&str; 16] = [
    "found",
    "carried",
    "watched",
    "opened",
    "painted",
    "followed",
    "repaired",
    "counted",
    "lifted",
    "washed",
    "sold",
    "kept",
    "moved",
    "visited",
    "remembered",
    "crossed",
];
const QUALITIES: [&str; 16] = [
    "old", "small", "bright", "quiet", "heavy", "green", "narrow", "early", "gentle", "broken", "distant", "warm", "empty", "wooden",
    "patient", "silver",
];
const THINGS: [&str; 16] = [
    "river", "bridge", "lantern", "basket", "garden", "window", "letter", "market", "harbour", "ladder", "blanket", "kettle", "mirror",
    "orchard", "mountain", "road",
];
const PLACES: [&str; 8] = ["near", "behind", "under", "beside", "above", "beyond", "inside", "across from"];
const TIMES: [&str; 8] =
    ["in the morning", "at noon", "after the rain", "on Sunday", "last winter", "every evening", "by accident", "without a word"];

/// Prose of about `words` words, one space between words and never at an end. Equal seeds give equal text for ever.
pub fn prose(seed: u64, words: usize) -> String {
    let mut random = SplitMix64::new(seed);
    let mut text = String::new();
    let mut written = 0;
    while written < words {
        let mut pick = |list: &[&'static str]| list[random.below(list.len())];
        let (opener, first, second) = (pick(&OPENERS), pick(&PEOPLE), pick(&PEOPLE));
        let (verb, did) = (pick(&VERBS), pick(&VERBS));
        let (quality, thing, other) = (pick(&QUALITIES), pick(&THINGS), pick(&THINGS));
        let (place, time) = (pick(&PLACES), pick(&TIMES));
        let sentence = format!("{opener} the {first} {verb} the {quality} {thing}, a {second} {did} the {other} {place} it {time}.");
        written += sentence.split(' ').count();
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&sentence);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_plain_and_repeatable() {
        let text = prose(7, 200);
        assert_eq!(text, prose(7, 200));
        assert!(prose(7, 400).starts_with(&text), "a longer text begins like a shorter one");
        assert_ne!(text, prose(8, 200));
        assert!(text.is_ascii() && !text.contains("  ") && text.trim() == text);
        assert!((200..230).contains(&text.split(' ').count()));
    }
}
