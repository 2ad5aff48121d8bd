//! One entry of the table: an English template and its Chinese one.
//!
//! In the English template `{}` is a hole for text that is itself translated, `{=}` one for text that stays as it is (names, paths, what a tool
//! printed), `{#}` one for a number, `{?}` one for what the system or a parser says, which is in quotes where it stays English, and `{a|b}` either of the words between the bars, so that `cell{|s}` is both `cell` and `cells`. The Chinese one
//! names its holes by their place in the English one: `{2}`. The case of the first letter and a full stop or colon at the end make no difference.

/// What a hole takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hole {
    /// A text that is translated in turn.
    Text,
    /// A text that stays as it is.
    Same,
    /// A number with its signs, without letters.
    Number,
    /// A text from elsewhere, translated if it is known.
    Foreign,
}

/// A template in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Words(String),
    Hole(Hole),
}

/// The Chinese side in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Words(String),
    /// What the hole with this number took, from 0.
    Taken(usize),
}

/// An entry of the table.
#[derive(Debug, Clone)]
pub struct Template {
    /// The English template, alternatives chosen.
    pub key: String,
    pub pieces: Vec<Piece>,
    parts: Vec<Part>,
}

impl Template {
    /// Reads an entry, which is one template for each choice of its alternatives; the error says what is wrong with it.
    pub fn read(key: &str, value: &str) -> Result<Vec<Self>, String> {
        let parts = chinese(stem(value))?;
        alternatives(&decapitalised(stem(key)))
            .into_iter()
            .map(|key| {
                let pieces = english(&key)?;
                let holes = pieces.iter().filter(|piece| matches!(piece, Piece::Hole(_))).count();
                let mut named: Vec<usize> =
                    parts.iter().filter_map(|part| if let Part::Taken(at) = part { Some(*at) } else { None }).collect();
                named.sort_unstable();
                named.dedup();
                if named.iter().copied().eq(0..holes) {
                    Ok(Self { key, pieces, parts: parts.clone() })
                } else {
                    Err(format!("`{key}` has {holes} holes, and its translation names {}", named.len()))
                }
            })
            .collect()
    }

    /// What the holes take if this is the template of the text: the first hole as little as can be, then the next.
    pub fn matches<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let mut taken = Vec::new();
        let (pieces, text) = match self.pieces.split_first() {
            Some((Piece::Words(words), rest)) => (rest, without(text, words)?),
            _ => (self.pieces.as_slice(), text),
        };
        fits(pieces, text, &mut taken).then_some(taken)
    }

    /// How much of a text the template itself is: the number of its letters outside holes, then that of its holes for numbers.
    pub fn weight(&self) -> (usize, usize) {
        let words = |piece: &Piece| if let Piece::Words(words) = piece { words.len() } else { 0 };
        (self.pieces.iter().map(words).sum(), self.pieces.iter().filter(|piece| **piece == Piece::Hole(Hole::Number)).count())
    }

    /// Whether it says what a text is (`error: {}`), or is a line with columns: then anything may follow.
    pub fn is_labelled(&self) -> bool {
        let label = matches!(self.pieces.first(), Some(Piece::Words(words)) if words.trim_end().ends_with(':'));
        label || self.key.contains("  ")
    }

    /// What stands before the colon, if any message may stand behind it and the template is nothing else.
    pub fn label(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Words(words), Piece::Hole(Hole::Text | Hole::Foreign)] => words.strip_suffix(": "),
            _ => None,
        }
    }

    /// The Chinese text around what the holes took.
    pub fn said(&self, taken: &[String]) -> String {
        spaced(self.parts.iter().map(|part| match part {
            Part::Words(words) => words.as_str(),
            Part::Taken(at) => taken.get(*at).map_or("", String::as_str),
        }))
    }
}

/// Texts put together, with a space between a Chinese sign and a Latin letter or digit that meet.
pub fn spaced<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let han = |c: char| matches!(c, '\u{4e00}'..='\u{9fff}');
    let latin = |c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '`');
    texts.into_iter().fold(String::new(), |mut all, next| {
        if let (Some(a), Some(b)) = (all.chars().next_back(), next.chars().next())
            && ((han(a) && latin(b)) || (latin(a) && han(b)))
        {
            all.push(' ');
        }
        all.push_str(next);
        all
    })
}

/// A text without the full stop or colon at its end.
fn stem(text: &str) -> &str {
    text.strip_suffix(['。', ':', '：']).unwrap_or_else(|| without_stop(text).unwrap_or(text))
}

/// A text without its full stop; `...` and a folder called `.` are none.
pub fn without_stop(text: &str) -> Option<&str> {
    text.strip_suffix('.').filter(|stem| !stem.ends_with(['.', ' ']))
}

/// A text whose first letter is small.
pub fn decapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// What follows the words that a text begins with, whatever the case of its first letter.
fn without<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.strip_prefix(words).or_else(|| {
        let first = text.chars().next().filter(|c| c.is_uppercase())?;
        let (of_text, of_words) = (&text[first.len_utf8()..], words.chars().next()?);
        first.to_lowercase().eq([of_words]).then(|| of_text.strip_prefix(&words[of_words.len_utf8()..]))?
    })
}

/// Whether a hole for a number takes it: a digit at least, and no letter but the `e` of powers of ten.
pub fn is_number(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && !text.contains(|c: char| c.is_alphabetic() && c != 'e') && !text.contains(['{', '`'])
}

fn fits<'a>(pieces: &[Piece], text: &'a str, taken: &mut Vec<&'a str>) -> bool {
    match pieces {
        [] => text.is_empty(),
        [Piece::Words(words), rest @ ..] => text.strip_prefix(words.as_str()).is_some_and(|text| fits(rest, text, taken)),
        [Piece::Hole(hole)] => take(*hole, text, taken),
        [Piece::Hole(hole), rest @ ..] => {
            let next = if let Some(Piece::Words(words)) = rest.first() { words.as_str() } else { "" };
            let ends = text.match_indices(next).map(|(end, _)| end);
            for end in ends.collect::<Vec<_>>() {
                let depth = taken.len();
                if take(*hole, &text[..end], taken) && fits(rest, &text[end..], taken) {
                    return true;
                }
                taken.truncate(depth);
            }
            false
        }
    }
}

fn take<'a>(hole: Hole, text: &'a str, taken: &mut Vec<&'a str>) -> bool {
    let good = !text.is_empty() && (hole != Hole::Number || is_number(text));
    if good {
        taken.push(text);
    }
    good
}

/// Every choice of `{a|b}`.
fn alternatives(key: &str) -> Vec<String> {
    let mut from = 0;
    while let Some((open, close)) = braces(key, from) {
        let inside = &key[open + 1..close];
        if inside.contains('|') {
            return inside.split('|').flat_map(|word| alternatives(&format!("{}{word}{}", &key[..open], &key[close + 1..]))).collect();
        }
        from = close + 1;
    }
    vec![key.to_owned()]
}

fn braces(text: &str, from: usize) -> Option<(usize, usize)> {
    let open = from + text[from..].find('{')?;
    Some((open, open + text[open..].find('}')?))
}

/// Cuts a text at its braces and reads what is in them.
fn cut<T>(text: &str, words: impl Fn(&str) -> T, hole: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let (mut all, mut from) = (Vec::new(), 0);
    while let Some((open, close)) = braces(text, from) {
        if open > from {
            all.push(words(&text[from..open]));
        }
        all.push(hole(&text[open + 1..close])?);
        from = close + 1;
    }
    if from < text.len() {
        all.push(words(&text[from..]));
    }
    Ok(all)
}

fn english(key: &str) -> Result<Vec<Piece>, String> {
    let hole = |inside: &str| match inside {
        "" => Ok(Piece::Hole(Hole::Text)),
        "=" => Ok(Piece::Hole(Hole::Same)),
        "#" => Ok(Piece::Hole(Hole::Number)),
        "?" => Ok(Piece::Hole(Hole::Foreign)),
        _ => Err(format!("`{key}`: {{{inside}}} is no hole, write {{}}, {{=}}, {{#}} or {{?}}")),
    };
    let pieces = cut(key, |words| Piece::Words(words.to_owned()), hole)?;
    if pieces.windows(2).any(|two| matches!(two, [Piece::Hole(_), Piece::Hole(_)])) {
        return Err(format!("`{key}`: nothing tells two holes apart that touch"));
    }
    Ok(pieces)
}

fn chinese(value: &str) -> Result<Vec<Part>, String> {
    let hole = |inside: &str| match inside.parse::<usize>() {
        Ok(at) if at > 0 => Ok(Part::Taken(at - 1)),
        _ => Err(format!("`{value}`: {{{inside}}} is no number of a hole")),
    };
    cut(value, |words| Part::Words(words.to_owned()), hole)
}
