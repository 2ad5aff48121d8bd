//! The nearest right word.

/// The word of a list that a misspelt one most likely means, if one is near enough to be worth a guess.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None; // the distance is quadratic, and no known word is that long
    }
    let lower = word.to_lowercase().replace('_', "-");
    let far = lower.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|k| (strsim::osa_distance(&lower, &k.to_lowercase()), k))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, k)| *distance <= far || (lower.len() >= 3 && k.starts_with(&lower)))
        .map(|(_, k)| k)
}

/// Help for an unknown word: the nearest one, or the list.
pub fn help(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none to choose from".to_owned(),
        None => format!("known: {}", known.join(", ")),
    }
}

/// A word of the file for a message: printable and short.
pub fn show(word: &str) -> String {
    let mut text: String = word.chars().take(48).flat_map(char::escape_debug).collect();
    if word.chars().nth(48).is_some() {
        text.push('…');
    }
    format!("`{text}`")
}
