//! The language of what people read: English text in, Chinese text out.
//!
//! English is the source and the key. The program says everything in English; here, at its boundaries alone (`cli` before it prints, `report`
//! before it writes a page, a picture or a summary), a finished text is matched against a table of templates (`zh/*.toml`) and said again in Chinese. So no other module
//! knows that there are languages, and what no template knows stays English instead of going missing. Files for programs (CSV, JSON, scenarios,
//! the journal) are never translated.
//!
//! `template` reads one entry of the table, `table` finds the entries that fit a text, `cuts` says where a text can be cut, `text` translates a text
//! and what is in its holes, `page` walks a whole HTML page or a drawing, `markdown` a Markdown document, `help` the command line's own help.

mod cuts;
mod help;
mod markdown;
mod page;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod text;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    ffi::OsString,
    sync::{OnceLock, PoisonError, RwLock},
};

use table::ZH;
use text::Speaker;

/// A language that people can be told things in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Lang {
    /// English, the language of the source.
    #[default]
    En,
    /// Simplified Chinese.
    Zh,
}

static SPOKEN: OnceLock<Lang> = OnceLock::new();
/// Names of what is told about that look like words of the table.
static NAMES: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// Sets the language of this process, once and before anything is said.
pub fn speak(lang: Lang) {
    let _ = SPOKEN.set(lang);
}

/// The language of this process: English until [`speak`] said otherwise.
pub fn spoken() -> Lang {
    SPOKEN.get().copied().unwrap_or_default()
}

/// Says that these are names: a backend may be called `other`, and what is printed from now on leaves it that.
pub fn keep<'a>(names: impl IntoIterator<Item = &'a str>) {
    if spoken() == Lang::Zh {
        let mut kept = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        kept.extend(names.into_iter().filter(|name| ZH.is_word(name)).map(str::to_owned));
    }
}

/// Who speaks on the terminal.
fn speaker() -> Speaker<'static> {
    Speaker::new(&ZH, NAMES.read().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect())
}

/// A text of one or more lines in the language of this process; indents and line breaks stay.
pub fn say(text: &str) -> Cow<'_, str> {
    match spoken() {
        Lang::En => Cow::Borrowed(text),
        Lang::Zh => Cow::Owned(chinese(text)),
    }
}

fn chinese(text: &str) -> String {
    let speaker = speaker();
    text.split('\n').map(|text| speaker.line(text)).collect::<Vec<_>>().join("\n")
}

/// The same of the cells of a table, before they are aligned: Chinese has other widths.
pub fn say_cells<R: AsMut<[String]>>(mut rows: Vec<R>) -> Vec<R> {
    if spoken() == Lang::Zh {
        let speaker = speaker();
        rows.iter_mut().flat_map(|row| row.as_mut().iter_mut()).for_each(|cell| *cell = speaker.line(cell));
    }
    rows
}

/// An HTML page in the language of this process.
pub fn say_page(html: String) -> String {
    match spoken() {
        Lang::En => html,
        Lang::Zh => page::page(&ZH, &html),
    }
}

/// Says what goes beside a page, or without one: the texts of a picture, a drawing, a Markdown document.
pub struct Voice(Option<Speaker<'static>>);

impl Voice {
    /// Of texts that belong to no page.
    pub fn new(lang: Lang) -> Self {
        Self((lang == Lang::Zh).then(speaker))
    }

    /// Of what goes beside this page, the English one: what it marks as names are names here too.
    pub fn beside(lang: Lang, html: &str) -> Self {
        Self((lang == Lang::Zh).then(|| Speaker::new(&ZH, page::names(html))))
    }

    /// A text.
    pub fn text(&self, text: &str) -> String {
        self.0.as_ref().and_then(|speaker| speaker.phrase(text)).unwrap_or_else(|| text.to_owned())
    }

    /// A part of a page, or a drawing.
    pub fn html(&self, html: &str) -> String {
        self.0.as_ref().map_or_else(|| html.to_owned(), |speaker| page::fragment(speaker, html))
    }

    /// A Markdown document of ours, in which everything from elsewhere is escaped.
    pub fn markdown(&self, text: &str) -> String {
        self.0.as_ref().map_or_else(|| text.to_owned(), |speaker| markdown::document(speaker, text))
    }
}

/// A Markdown document in the language of this process.
pub fn say_markdown(text: &str) -> String {
    Voice::new(spoken()).markdown(text)
}

/// The text of the command line's help in the language of this process.
pub fn say_help(help: &str) -> Cow<'_, str> {
    match spoken() {
        Lang::En => Cow::Borrowed(help),
        Lang::Zh => Cow::Owned(help::rendered(help)),
    }
}

/// What is wrong with a command line, in the language of this process.
pub fn say_usage(error: &str) -> Cow<'_, str> {
    match spoken() {
        Lang::En => Cow::Borrowed(error),
        Lang::Zh => Cow::Owned(help::error(error)),
    }
}

/// The command line as the parser takes it: where the help is ours, the word `help` is an option.
pub fn say_args(command: &clap::Command, args: Vec<OsString>) -> Vec<OsString> {
    match spoken() {
        Lang::En => args,
        Lang::Zh => help::asked(command, args),
    }
}

/// The command line with its help in the language of this process.
pub fn say_command(command: clap::Command) -> clap::Command {
    match spoken() {
        Lang::En => command,
        Lang::Zh => help::command(command),
    }
}
