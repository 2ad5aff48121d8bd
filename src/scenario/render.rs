//! Problems with the text underlined, by miette.

use std::fmt::{self, Write as _};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};

use super::{
    problem::{Problem, Problems, Severity},
    source::SourceText,
};

/// More text than this around a problem, in bytes, is not shown: a snippet of a megabyte helps nobody.
const LARGEST_SNIPPET: usize = 1000;

impl Problems {
    /// The problems as a terminal shows them, with or without colour, each with its line of the file.
    pub fn render(&self, colour: bool) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_context_lines(0).with_links(false);
        let mut text = String::new();
        for problem in &self.problems {
            if handler.render_report(&mut text, &Shown(problem)).is_err() {
                let _ = writeln!(text, "{problem}"); // a snippet that can't be drawn must not hide the message
            }
        }
        if self.omitted > 0 {
            let _ = writeln!(text, "and {} more", self.omitted);
        }
        text
    }
}

/// A problem as miette sees it. Without a snippet the message itself has to name the place.
struct Shown<'a>(&'a Problem);
impl Shown<'_> {
    fn snippet(&self) -> Option<&SourceText> {
        self.0.source.as_deref().filter(|s| s.lines(&self.0.span).len() <= LARGEST_SNIPPET)
    }
}
impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.snippet().is_none() {
            write!(f, "{}: ", self.0.place())?;
        }
        f.write_str(&self.0.message)
    }
}
impl std::error::Error for Shown<'_> {}
impl Diagnostic for Shown<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.0.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.0.help.as_ref().map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.snippet().map(|s| s as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.snippet()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(None, self.0.span.clone()))))
    }
}

impl SourceCode for SourceText {
    /// Whole lines: miette's own reading of a text shows no more than the span when no context is asked for.
    fn read_span<'a>(&'a self, span: &SourceSpan, _: usize, _: usize) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let lines = self.lines(&(span.offset()..span.offset() + span.len()));
        let (_, column) = self.position(span.offset()); // for the heading: of the problem, not of the snippet
        let (line, _) = self.position(lines.start);
        let text = self.text().get(lines.clone()).ok_or(MietteError::OutOfBounds)?;
        let place = SourceSpan::from(lines);
        let count = text.lines().count();
        Ok(Box::new(MietteSpanContents::new_named(self.name().to_owned(), text.as_bytes(), place, line - 1, column - 1, count)))
    }
}
