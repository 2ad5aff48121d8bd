//! Text of devices, models and files, made safe to show: it steers no terminal, turns no line around and is no markup.

use std::fmt::Write;

/// Whether a character steers a terminal or turns a line of text: what [`visible`] replaces, beside line feeds and tabs.
pub fn steers(c: char) -> bool {
    c.is_control() || turns(c)
}

/// Text as a reader sees it: control characters, and those that turn the direction of writing or end a line and so can make a line read as
/// another, become the replacement character. Line feeds and tabs stay. Escaping touches none of them.
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if steers(c) && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The same in one line: control characters, line feeds and tabs too, become spaces.
pub fn printable(text: &str) -> String {
    visible(&text.replace(char::is_control, " "))
}

/// The same with its line feeds.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// The marks of Unicode's bidirectional algorithm (UAX 9, section 2), and its separators of lines and paragraphs.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text that is nothing but text in Markdown and the HTML in it, in one line of a table. Entities, since a backslash is none of HTML's: what
/// stands in a `<summary>` would keep it.
pub fn markdown(text: &str) -> String {
    let text = printable(text);
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        // All signs of Markdown are ASCII's; a colon is one within a word: `https://`, `:smile:`.
        let sentence = c == ':' && rest.peek().is_none_or(|next| *next == ' ');
        let plain = c.is_alphanumeric() || !c.is_ascii() || " .,;()%+-/=".contains(c) || sentence;
        let _ = if plain { out.write_char(c) } else { write!(out, "&#{};", u32::from(c)) };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a device may call itself: colours, another line, and a mark after which `gpj.exe` reads as `exe.jpg`.
    const HOSTILE: &str = "\u{1b}[31mred\u{7}\r\u{9b}2J\n\tx\u{202e}gpj.\u{2066}\u{2028}模型";

    #[test]
    fn nothing_steers_a_terminal_or_turns_a_line() {
        assert_eq!(visible(HOSTILE), "\u{fffd}[31mred\u{fffd}\u{fffd}\u{fffd}2J\n\tx\u{fffd}gpj.\u{fffd}\u{fffd}模型");
        assert_eq!(printable(HOSTILE), " [31mred   2J  x\u{fffd}gpj.\u{fffd}\u{fffd}模型");
        assert_eq!(printable_lines(HOSTILE), " [31mred   2J\n x\u{fffd}gpj.\u{fffd}\u{fffd}模型");
    }

    #[test]
    fn nothing_is_markup() {
        let text = "a|b`c`<img src=x>@you #1\n| x_y\\ \u{202e}";
        assert_eq!(markdown(text), "a&#124;b&#96;c&#96;&#60;img src=x&#62;&#64;you &#35;1 &#124; x&#95;y&#92; \u{fffd}");
        assert_eq!(markdown("16 × 9: “a” · https://x :bug: b:"), "16 × 9: “a” · https&#58;//x &#58;bug: b:");
    }
}
