//! A Markdown document of ours in Chinese: what is text in it, and nothing of its signs.
//!
//! All that comes from elsewhere is escaped in it (`safe::markdown`), so that its signs are ours: marks at the beginning of a line, bars of tables,
//! `**`, code, links, tags.

use std::ops::Range;

use super::text::Speaker;
use crate::safe;

/// Stands for a piece of code or a link in a text that is matched; the others follow it (private use, Unicode 23.5).
const FIRST: u32 = 0xE000;
const LAST: u32 = 0xF8FF;

/// The document with its words in Chinese. A line of which nothing is known stays as it is, byte for byte.
pub fn document(speaker: &Speaker, text: &str) -> String {
    text.split('\n').map(|text| line(speaker, text)).collect::<Vec<_>>().join("\n")
}

fn line(speaker: &Speaker, text: &str) -> String {
    let begin = text.len() - text.trim_start_matches(|c: char| c == ' ' || "#->".contains(c)).len();
    // `-12 %` and `---` are no entries of a list.
    let begin = if begin == 0 || text[..begin].ends_with(' ') { begin } else { 0 };
    let begin = begin + note(&text[begin..]);
    let (marks, rest) = text.split_at(begin);
    let bars = if rest.starts_with('|') { "|" } else { "\n" };
    let cells = rest.split(bars).map(|cell| {
        let (mut out, mut rest) = (String::new(), cell);
        while let Some(sign) = boundary(rest) {
            out = out + &said(speaker, &rest[..sign.start]) + &rest[sign.clone()];
            rest = &rest[sign.end..];
        }
        out + &said(speaker, rest)
    });
    marks.to_owned() + &cells.collect::<Vec<_>>().join(bars)
}

/// How long the mark of a footnote is that a text begins with: `(a) `.
fn note(text: &str) -> usize {
    let end = text.strip_prefix('(').and_then(|inside| inside.find(") ")).filter(|letters| *letters <= 2);
    end.map_or(0, |letters| letters + "() ".len())
}

/// The first sign that parts texts: that of strong letters, or a tag.
fn boundary(text: &str) -> Option<Range<usize>> {
    let strong = text.find("**").map(|at| at..at + 2);
    let tag = text.find('<').and_then(|at| Some(at..at + text[at..].find('>')? + 1));
    strong.into_iter().chain(tag).min_by_key(|sign| sign.start)
}

/// A text between two signs, with the blanks around it.
fn said(speaker: &Speaker, text: &str) -> String {
    let core = text.trim();
    let fixed = fixed(core);
    let (mut plain, mut from) = (String::new(), 0);
    for (place, span) in fixed.iter().enumerate() {
        plain.push_str(&core[from..span.start]);
        plain.extend(u32::try_from(place).ok().and_then(|place| char::from_u32(FIRST + place)));
        from = span.end;
    }
    let plain = unescaped(&(plain + &core[from..]));
    // A text that has such characters of its own could not be told from them.
    let marks = plain.chars().filter(|c| (FIRST..=LAST).contains(&u32::from(*c))).count();
    let Some(said) = speaker.phrase(&plain).filter(|_| marks == fixed.len()) else { return text.to_owned() };
    let mut out = String::new();
    for c in safe::markdown(&said).chars() {
        match u32::from(c).checked_sub(FIRST).and_then(|place| fixed.get(place as usize)) {
            Some(span) => out.push_str(&core[span.clone()]),
            None => out.push(c),
        }
    }
    text.replacen(core, &out, 1)
}

/// Where code and links stand.
fn fixed(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(begin) = text[at..].find(['`', '[']).map(|begin| at + begin) {
        let rest = &text[begin..];
        let end = match rest.as_bytes()[0] {
            b'`' => rest[1..].find('`').map(|end| end + 2),
            _ => rest.find("](").and_then(|middle| Some(middle + rest[middle..].find(')')? + 1)),
        };
        at = begin + end.unwrap_or(1);
        if end.is_some() {
            found.push(begin..at);
        }
    }
    found
}

/// What `safe::markdown` made of a text, undone.
fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("&#") {
        let sign = after.split_once(';').and_then(|(code, after)| Some((char::from_u32(code.parse().ok()?)?, after)));
        out.push_str(before);
        rest = if let Some((sign, after)) = sign {
            out.push(sign);
            after
        } else {
            out.push_str("&#");
            after
        };
    }
    out + rest
}
