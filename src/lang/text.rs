//! A text in Chinese: as one template, else sentence by sentence, else clause by clause, else as it is.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use unicode_width::UnicodeWidthStr;

use super::{
    cuts::{self, GAP},
    table::Table,
    template::{Hole, Piece, Template, decapitalised, is_number, spaced, without_stop},
};

/// How deep messages in the holes of messages go.
const DEEPEST: usize = 8;
/// A longer text is a log's or a tool's, and how often it can be cut grows with its length. Bytes.
const LONGEST: usize = 2_000;
/// A template with fewer letters of its own, such as `{} to {}`, is tried after a text has been cut at its commas.
const STRONG: usize = 7;
/// One with fewer fits many a text that it does not mean: what its holes take must be known, or one word.
const CLEAR: usize = 13;

/// What the console begins its messages with.
const LABELS: [&str; 3] = ["error", "warning", "note"];

/// Says texts in Chinese.
pub struct Speaker<'a> {
    table: &'a Table,
    /// Names of things, which are no words even if they look like them.
    names: HashSet<String>,
    /// What was said: a page says the same of every cell.
    said: RefCell<HashMap<String, Option<String>>>,
}

impl<'a> Speaker<'a> {
    /// A speaker who leaves these names as they are.
    pub fn new(table: &'a Table, names: HashSet<String>) -> Self {
        Self { table, names, said: RefCell::default() }
    }

    /// A text in Chinese; none where no template knows anything of it.
    pub fn phrase(&self, text: &str) -> Option<String> {
        if let Some(known) = self.said.borrow().get(text) {
            return known.clone();
        }
        let said = self.translated(text, 0);
        self.said.borrow_mut().insert(text.to_owned(), said.clone());
        said
    }

    /// One line of the console in Chinese, with its indent. Columns, which two blanks or more part, begin where they began, as far as there is room.
    pub fn line(&self, text: &str) -> String {
        let words = text.trim();
        // A template of the whole line knows which of its columns are names.
        let whole = if words.contains(GAP) { self.filled(words, 0, |template| template.key.contains(GAP)) } else { self.phrase(words) };
        if let Some(said) = whole {
            return text.replacen(words, &said, 1);
        }
        if !words.contains(GAP) {
            return text.to_owned();
        }
        let (mut all, mut width) = (String::new(), 0);
        for (begin, column) in cuts::columns(text) {
            let said = self.phrase(column);
            let column = said.as_deref().unwrap_or(column);
            let blanks = if all.is_empty() { begin } else { begin.saturating_sub(width).max(GAP.len()) };
            all = all + &" ".repeat(blanks) + column;
            width += blanks + column.width();
        }
        all
    }

    fn translated(&self, text: &str, depth: usize) -> Option<String> {
        // What stands around a text belongs to what is before and after it.
        let core = text.trim();
        let core = core.trim_start_matches([',', ';', ':']).trim_start();
        let core = core.strip_suffix(':').unwrap_or(core).trim_end();
        if depth > DEEPEST || text.len() > LONGEST || !has_words(core) || self.names.contains(core) {
            return None;
        }
        let said = self
            .whole(core)
            .or_else(|| self.sentences(core, depth))
            .or_else(|| self.filled(core, depth, is_strong))
            .or_else(|| self.clauses(core, depth))
            .or_else(|| self.list(core, depth))
            .or_else(|| Some(format!("（{}）", self.translated(core.strip_prefix('(')?.strip_suffix(')')?, depth + 1)?)))
            .or_else(|| self.filled(core, depth, |template| !is_strong(template)))?;
        let (before, after) = text.split_once(core)?;
        Some(format!("{}{said}{}", joint(before), joint(after)))
    }

    /// A text that is a template without holes.
    fn whole(&self, text: &str) -> Option<String> {
        let (stem, stop) = stopped(text);
        self.table.whole(stem).or_else(|| self.table.whole(&decapitalised(stem))).map(|template| template.said(&[]) + stop)
    }

    /// A text that is a template with holes, the first that fits and knows what its holes took.
    fn filled(&self, text: &str, depth: usize, of: impl Fn(&Template) -> bool) -> Option<String> {
        let (stem, stop) = stopped(text);
        let said = |(template, taken): (&Template, Vec<&str>)| {
            if matches!(template.pieces.first(), Some(Piece::Hole(_))) && self.takes_more(template, &taken) {
                return None;
            }
            let vague = template.weight().0 < CLEAR && !template.is_labelled();
            let holes = template.pieces.iter().filter_map(|piece| if let Piece::Hole(hole) = piece { Some(*hole) } else { None });
            let fill = |(hole, taken): (Hole, &str)| {
                let message = if matches!(hole, Hole::Text | Hole::Foreign) { self.translated(taken, depth + 1) } else { None };
                message.or_else(|| match hole {
                    _ if is_name(taken) => Some(taken.to_owned()),
                    Hole::Foreign => Some(format!("“{taken}”")),
                    _ => (!vague).then(|| taken.to_owned()),
                })
            };
            let fillings: Option<Vec<String>> = holes.zip(taken).map(fill).collect();
            Some(template.said(&fillings?) + stop)
        };
        self.table.fits(stem, of).into_iter().find_map(said)
    }

    /// Whether a hole at the beginning or a name at the end is more than one thing: a list of clauses, of which the template would mean one, or
    /// something behind a label such as `error:`.
    fn takes_more(&self, template: &Template, taken: &[&str]) -> bool {
        let list = |text: &&str| cuts::at(text, "; ").len() > 1;
        // A name is no label, but a text that is itself translated may be called like one.
        let named_first = template.pieces.first() == Some(&Piece::Hole(Hole::Same));
        let labelled = |text: &&str| match cuts::at(text, ": ").split_last() {
            // A name has no colon in it.
            Some((_, before @ [_, ..])) => named_first || before.iter().any(|label| self.table.is_label(&decapitalised(label))),
            _ => (named_first && self.table.is_label(text)) || LABELS.contains(text),
        };
        let named_last = template.pieces.last() == Some(&Piece::Hole(Hole::Same));
        taken.first().is_some_and(|first| list(first) || labelled(first)) || (named_last && taken.last().is_some_and(list))
    }

    /// Sentence by sentence: one that no template knows stays as it is among the others.
    fn sentences(&self, text: &str, depth: usize) -> Option<String> {
        self.joined(&cuts::sentences(text), (" ", ""), depth, |said| said.iter().any(Option::is_some))
    }

    /// Clause by clause. What stands between commas may be a name: all of it is known, or nothing is said.
    fn clauses(&self, text: &str, depth: usize) -> Option<String> {
        let some = |said: &[Option<String>]| said.iter().any(Option::is_some);
        // What stands behind a colon may be one template, with colons and semicolons of its own.
        let label = cuts::at(text, ": ")[0];
        if let Some(rest) = text[label.len()..].strip_prefix(": ").filter(|_| !label.contains("; "))
            && let Some(said) = self.whole(rest).or_else(|| self.filled(rest, depth + 1, is_strong))
        {
            return Some(format!("{}：{said}", self.translated(label, depth + 1).as_deref().unwrap_or(label)));
        }
        for (sign, chinese) in [("; ", "；"), (" — ", " — "), (": ", "：")] {
            if let Some(said) = self.joined(&cuts::at(text, sign), (sign, chinese), depth, some) {
                return Some(said);
            }
        }
        for (sign, chinese) in [(" · ", " · "), (", ", "，")] {
            let pieces = cuts::at(text, sign);
            let known =
                |said: &[Option<String>]| some(said) && said.iter().zip(&pieces).all(|(said, piece)| said.is_some() || is_name(piece));
            if let Some(said) = self.joined(&pieces, (sign, chinese), depth, known) {
                return Some(said);
            }
        }
        if let Some((before, inside)) = cuts::bracket(text) {
            let (outer, inner) = (self.translated(before, depth + 1), self.translated(inside, depth + 1));
            if outer.is_some() || inner.is_some() {
                return Some(format!("{}（{}）", outer.as_deref().unwrap_or(before), inner.as_deref().unwrap_or(inside)));
            }
        }
        None
    }

    /// `a, b and c`, if each of them is known or a name.
    fn list(&self, text: &str, depth: usize) -> Option<String> {
        let signs = [", ", " and "].map(|sign| text.match_indices(sign)).into_iter().flatten();
        let mut cuts: Vec<(usize, usize)> = signs.map(|(at, sign)| (at, at + sign.len())).collect();
        cuts.sort_unstable();
        let (mut said, mut begin) = (Vec::new(), 0);
        while begin < text.len() {
            let ends = || cuts.iter().copied().filter(|(end, _)| *end > begin).chain([(text.len(), text.len())]);
            // `load of CPU, GPU and NPU` is one thing.
            let (end, next) = ends().rfind(|(end, _)| self.table.whole(&text[begin..*end]).is_some()).or_else(|| ends().next())?;
            let piece = &text[begin..end];
            said.push(self.translated(piece, depth + 1).or_else(|| is_name(piece).then(|| piece.to_owned()))?);
            begin = next;
        }
        let (last, most) = said.split_last().filter(|(_, most)| !most.is_empty() && text.contains(" and "))?;
        Some(spaced([most.join("、").as_str(), "和", last.as_str()]))
    }

    /// The pieces translated and put together, if there are several and enough of them is known. A sign is Chinese beside a Chinese text.
    fn joined(
        &self,
        pieces: &[&str],
        (sign, chinese): (&str, &str),
        depth: usize,
        enough: impl Fn(&[Option<String>]) -> bool,
    ) -> Option<String> {
        let said: Vec<Option<String>> =
            if pieces.len() > 1 { pieces.iter().map(|piece| self.translated(piece, depth + 1)).collect() } else { Vec::new() };
        if said.is_empty() || !enough(&said) {
            return None;
        }
        let mut all = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            if at > 0 {
                let known = said[at - 1].is_some() || (said[at].is_some() && !chinese.is_empty());
                all.push_str(if known { chinese } else { sign });
            }
            all.push_str(said[at].as_deref().unwrap_or(piece));
        }
        Some(all)
    }
}

fn is_strong(template: &Template) -> bool {
    template.weight().0 >= STRONG || template.is_labelled()
}

/// The signs between texts as Chinese writes them, which has no space after its own.
fn joint(signs: &str) -> &str {
    match signs {
        ": " | ":" => "：",
        "; " => "；",
        ", " => "，",
        other => other,
    }
}

/// Whether a text holds what may be words.
pub fn has_words(text: &str) -> bool {
    text.as_bytes().windows(2).any(|two| two.iter().all(u8::is_ascii_alphabetic))
}

/// Units of figures, which are no words.
const UNITS: &str = "s ms us W mW MB GB kB MiB GiB tok/s tok/% J/tok mJ/tok";

/// Whether a text may be the name of something or a number: one word, or none, or what is in quotes, or a number with its unit; also several with
/// dots between.
fn is_name(text: &str) -> bool {
    let quoted = |part: &str, sign: char| part.strip_prefix(sign).is_some_and(|rest| rest.find(sign) == rest.len().checked_sub(1));
    let unit = |word: &str| UNITS.split(' ').any(|unit| unit == word);
    let figure = |part: &str| part.rsplit_once(' ').is_some_and(|(number, word)| is_number(number) && unit(word));
    text.split(" · ").all(|part| !part.contains(' ') || !has_words(part) || quoted(part, '"') || quoted(part, '`') || figure(part))
}

/// A text without its full stop, and that of Chinese: it is part of no template.
fn stopped(text: &str) -> (&str, &'static str) {
    without_stop(text).map_or((text, ""), |stem| (stem, "。"))
}
