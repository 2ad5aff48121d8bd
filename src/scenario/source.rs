//! The text of a file that problems point into.

use std::{ops::Range, sync::Arc};

use crate::safe::{printable, steers};

/// A file's name and text, with the starts of its lines.
#[derive(Debug)]
pub struct SourceText {
    name: String,
    text: String,
    line_starts: Vec<usize>,
}
impl SourceText {
    /// Keeps a file's text for messages. Control characters, which a terminal might obey, and those that turn a line are replaced byte for byte, so
    /// that every span stays right.
    pub fn new(name: &str, text: &str) -> Arc<Self> {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' | '\t' | '\r' => shown.push(c),
                c if steers(c) => (0..c.len_utf8()).for_each(|_| shown.push('?')),
                c => shown.push(c),
            }
        }
        let line_starts = std::iter::once(0).chain(shown.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Arc::new(Self { name: printable(name), text: shown, line_starts })
    }

    /// The file's name as the user gave it, made safe to show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, control characters replaced.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte, both from 1, the column in characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|s| *s <= offset).max(1);
        let start = self.line_starts[line - 1];
        let column = self.text.get(start..self.floor(offset)).map_or(1, |t| t.chars().count() + 1);
        (line, column)
    }

    /// A span that lies within the text and on its characters' borders.
    pub fn clamp(&self, span: &Range<usize>) -> Range<usize> {
        let start = self.floor(span.start);
        start..self.floor(span.end).max(start)
    }

    /// The whole lines that a span touches, without the last line break.
    pub fn lines(&self, span: &Range<usize>) -> Range<usize> {
        let first = self.line_starts.partition_point(|s| *s <= span.start).max(1) - 1;
        let last = self.line_starts.partition_point(|s| *s < span.end.max(span.start + 1)).max(1) - 1;
        let end = self.line_starts.get(last + 1).map_or(self.text.len(), |next| next - 1);
        self.line_starts[first]..end.max(self.line_starts[first])
    }

    fn floor(&self, offset: usize) -> usize {
        let mut at = offset.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}
