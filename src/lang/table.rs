//! The table of templates, and the one that a text is made of.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::LazyLock,
};

use super::template::{Piece, Template, decapitalised};

/// The files of the table, in the order of the program's parts.
pub const FILES: [(&str, &str); 16] = [
    ("words", include_str!("zh/words.toml")),
    ("page", include_str!("zh/page.toml")),
    ("figures", include_str!("zh/figures.toml")),
    ("reasons", include_str!("zh/reasons.toml")),
    ("cards", include_str!("zh/cards.toml")),
    ("selection", include_str!("zh/selection.toml")),
    ("console", include_str!("zh/console.toml")),
    ("doctor", include_str!("zh/doctor.toml")),
    ("scenario", include_str!("zh/scenario.toml")),
    ("schema", include_str!("zh/schema.toml")),
    ("help", include_str!("zh/help.toml")),
    ("device", include_str!("zh/device.toml")),
    ("program", include_str!("zh/program.toml")),
    ("backends", include_str!("zh/backends.toml")),
    ("failures", include_str!("zh/failures.toml")),
    ("foreign", include_str!("zh/foreign.toml")),
];

/// Templates, found by what they are whole or by their rarest word.
pub struct Table {
    whole: HashMap<String, usize>,
    by_word: HashMap<String, Vec<usize>>,
    /// `error` of `error: {}`.
    labels: HashSet<String>,
    templates: Vec<Template>,
}

/// The table of this program; its test says that it can be read.
pub static ZH: LazyLock<Table> = LazyLock::new(|| Table::read(&FILES).unwrap_or_else(|_| Table::of(Vec::new())));

impl Table {
    /// Reads the files of a table; the error is all that is wrong with them.
    pub fn read(files: &[(&str, &str)]) -> Result<Self, Vec<String>> {
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        for (name, text) in files {
            match toml::from_str::<BTreeMap<String, String>>(text) {
                Ok(entries) => {
                    for (key, value) in &entries {
                        match Template::read(key, value) {
                            Ok(templates) => all.extend(templates),
                            Err(why) => wrong.push(format!("{name}: {why}")),
                        }
                    }
                }
                Err(why) => wrong.push(format!("{name}: {why}")),
            }
        }
        if wrong.is_empty() { Ok(Self::of(all)) } else { Err(wrong) }
    }

    fn of(templates: Vec<Template>) -> Self {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for word in templates.iter().flat_map(|template| words_of(&template.pieces)) {
            *seen.entry(word).or_default() += 1;
        }
        let (mut whole, mut by_word) = (HashMap::new(), HashMap::<String, Vec<usize>>::new());
        for (at, template) in templates.iter().enumerate() {
            if let [Piece::Words(words)] = template.pieces.as_slice() {
                whole.entry(words.clone()).or_insert(at);
            } else {
                // A template whose only words touch its holes is tried for every text.
                let rarest = words_of(&template.pieces).min_by_key(|word| (seen[word], *word)).unwrap_or_default();
                by_word.entry(rarest.to_owned()).or_default().push(at);
            }
        }
        let labels = templates.iter().filter_map(Template::label).map(str::to_owned).collect();
        Self { whole, by_word, labels, templates }
    }

    /// All templates.
    #[cfg(test)]
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// The template that is the whole text.
    pub fn whole(&self, text: &str) -> Option<&Template> {
        self.whole.get(text).map(|at| &self.templates[*at])
    }

    /// Whether a text is said in other words, whatever stands around it.
    pub fn is_word(&self, text: &str) -> bool {
        self.whole(text).or_else(|| self.whole(&decapitalised(text))).is_some()
    }

    /// Whether a message may stand behind this word and a colon.
    pub fn is_label(&self, word: &str) -> bool {
        self.labels.contains(word)
    }

    /// The templates with holes that fit a text, and what their holes take: those with most words of their own first, then by their keys.
    pub fn fits<'a>(&self, text: &'a str, of: impl Fn(&Template) -> bool) -> Vec<(&Template, Vec<&'a str>)> {
        let small = decapitalised(text);
        let mut found: Vec<&str> = words(text).chain(words(&small).next()).chain([""]).collect();
        found.sort_unstable();
        found.dedup();
        let mut fitting: Vec<_> = found
            .into_iter()
            .filter_map(|word| self.by_word.get(word))
            .flatten()
            .map(|at| &self.templates[*at])
            .filter(|template| of(template))
            .filter_map(|template| template.matches(text).map(|taken| (template, taken)))
            .collect();
        fitting.sort_by(|(a, _), (b, _)| b.weight().cmp(&a.weight()).then_with(|| a.key.cmp(&b.key)));
        fitting
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The words of a template that stand whole in every text of it: those that touch a hole may be part of a longer one.
fn words_of(pieces: &[Piece]) -> impl Iterator<Item = &str> {
    let last = pieces.len().saturating_sub(1);
    pieces.iter().enumerate().flat_map(move |(at, piece)| {
        let text = if let Piece::Words(text) = piece { text.as_str() } else { "" };
        let text = if at > 0 { text.trim_start_matches(char::is_alphanumeric) } else { text };
        words(if at < last { text.trim_end_matches(char::is_alphanumeric) } else { text })
    })
}
