//! A page in Chinese: its text and those attributes that are read to people.

use std::{collections::HashSet, ops::Range};

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

use super::{table::Table, text::Speaker};

/// Attributes that hold words for people.
const WORDS: [&[u8]; 4] = [b"title", b"aria-label", b"alt", b"data-label"];
/// Elements whose text is not for people, or is no prose.
const OPAQUE: [&[u8]; 4] = [b"style", b"script", b"code", b"pre"];
/// Classes of elements whose text is the name of something.
const NAMES: [&str; 2] = ["backend", "id"];
/// Elements that have no end.
const VOID: [&[u8]; 7] = [b"meta", b"link", b"br", b"hr", b"img", b"input", b"col"];

/// An HTML page with its words in Chinese. Everything else stays as it is, byte for byte; so does what an element with `translate="no"` or
/// a class of names holds, and the same text elsewhere on the page: a device may be called `failed`.
pub fn page(table: &Table, html: &str) -> String {
    fragment(&Speaker::new(table, names(html)), html).replacen("<html lang=\"en\"", "<html lang=\"zh-CN\"", 1)
}

/// What a page marks as names.
pub fn names(html: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    walk(html, |text, held| {
        if let (Text::Between(text, _), Some(Held { names: true, .. })) = (text, held) {
            names.extend(text.split(" · ").chain([text]).map(|name| name.trim().to_owned()));
        }
    });
    names
}

/// A part of a page, a drawing for instance, with its words in Chinese.
pub fn fragment(speaker: &Speaker, html: &str) -> String {
    let (mut out, mut copied) = (String::with_capacity(html.len() + html.len() / 8), 0);
    walk(html, |text, held| {
        let (text, name, span) = match text {
            Text::Between(text, span) => (text, None, span),
            Text::Attribute(name, text, span) => (text, Some(name), span),
        };
        if let (None, Some(said)) = (held, said(speaker, text)) {
            out.push_str(&html[copied..span.start]);
            match name {
                None => out.push_str(&escaped(&said)),
                Some(name) => out.extend([name, "=\"", &escaped(&said), "\""]),
            }
            copied = span.end;
        }
    });
    out + &html[copied..]
}

/// A text of a page and where it stands in it.
enum Text<'a> {
    Between(&'a str, Range<usize>),
    /// With its name; the place is that of name and value.
    Attribute(&'a str, &'a str, Range<usize>),
}

/// Walks all texts of a page in their order; each with the outermost element around it that holds nothing to translate.
fn walk(html: &str, mut each: impl FnMut(Text, Option<&Held>)) {
    let mut held: Option<Held> = None;
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => {
                let own = Held::of(&tag);
                if own.is_none() {
                    for attribute in attributes(&tag) {
                        each(attribute, held.as_ref());
                    }
                }
                match &mut held {
                    Some(held) => held.opened(&tag),
                    None if !tag.self_closing && !VOID.contains(&tag.name.as_slice()) => held = own,
                    None => {}
                }
            }
            Token::EndTag(tag) if held.as_mut().is_some_and(|held| held.closed(&tag.name)) => held = None,
            Token::String(string) => {
                if let Ok(text) = std::str::from_utf8(&string.value) {
                    each(Text::Between(text, string.span.start..string.span.end), held.as_ref());
                }
            }
            _ => {}
        }
    }
}

/// An element that holds nothing to translate.
struct Held {
    tag: Vec<u8>,
    /// How many of its name are open in it.
    depth: usize,
    /// Its text is the name of something.
    names: bool,
}

impl Held {
    fn of(tag: &StartTag<usize>) -> Option<Self> {
        let value = |name: &[u8]| tag.attributes.get(name).and_then(|value| std::str::from_utf8(&value.value).ok()).unwrap_or_default();
        let marked = value(b"translate") == "no";
        // A block that is marked, such as all settings of a host, holds words as well.
        let names = (marked && tag.name.as_slice() != b"div") || value(b"class").split(' ').any(|class| NAMES.contains(&class));
        (marked || names || OPAQUE.contains(&tag.name.as_slice())).then(|| Self { tag: tag.name.to_vec(), depth: 1, names })
    }

    fn opened(&mut self, tag: &StartTag<usize>) {
        self.depth += usize::from(!tag.self_closing && tag.name.as_slice() == self.tag);
    }

    /// Whether it has ended with this tag.
    fn closed(&mut self, name: &[u8]) -> bool {
        self.depth -= usize::from(name == self.tag);
        self.depth == 0
    }
}

/// The attributes with words, in their order.
fn attributes(tag: &StartTag<usize>) -> Vec<Text<'_>> {
    let words = tag.attributes.iter().filter(|(name, _)| WORDS.contains(&name.as_slice()));
    let mut found: Vec<_> = words.filter_map(|(name, value)| Some((value.span, str_of(name)?, str_of(&value.value)?))).collect();
    found.sort_by_key(|(span, ..)| span.start);
    found.into_iter().map(|(span, name, value)| Text::Attribute(name, value, span.start..span.end)).collect()
}

fn str_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// A text of a page in Chinese: how its lines are broken makes no difference, the blanks around it stay.
fn said(speaker: &Speaker, text: &str) -> Option<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = speaker.phrase(&words)?;
    let before = text.len() - text.trim_start().len();
    let after = text.trim_end().len();
    Some(format!("{}{said}{}", &text[..before], &text[after..]))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#x27;"),
            c => out.push(c),
        }
    }
    out
}
