//! Text in a drawing: how wide it is, about, where it is broken, and what may stand in an XML document.

/// Width in units of the font's size, about that of the widest sans-serif fonts: no font is at hand where a picture is made.
pub fn width(text: &str) -> f64 {
    text.chars().map(em).sum()
}

fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '(' | ')' | '[' | ']' | '·' => 0.34,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '→' => 0.95,
        'A'..='Z' => 0.72,
        // Hangul, Han, Kana and full-width forms.
        '\u{1100}'.. => 1.05,
        _ => 0.58,
    }
}

/// Lines of at most `most` units of the font's size; a word that is longer is broken too, and Han between any two characters.
pub fn lines(text: &str, most: f64) -> Vec<String> {
    let mut found = vec![String::new()];
    for word in pieces(text) {
        let line = found.last().map_or("", String::as_str);
        if !line.is_empty() && width(line) + width(word.trim_end()) > most {
            found.push(String::new());
        }
        for c in word.chars() {
            let line = found.last().map_or("", String::as_str);
            if !line.is_empty() && c != ' ' && width(line) + em(c) > most {
                found.push(String::new());
            }
            if let Some(line) = found.last_mut().filter(|line| c != ' ' || !line.is_empty()) {
                line.push(c);
            }
        }
    }
    found.into_iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Signs of Chinese that begin no line, and those that end none (GB/T 15834-2011, 5.1).
const CLOSING: &str = "，。；：、？！）》”%";
const OPENING: &str = "（《“";

/// Words with the space behind them; wide characters each for itself, but not apart from a sign that may not begin or end a line.
fn pieces(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![String::new()];
    for c in text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }) {
        let last = found.last().and_then(|piece| piece.chars().next_back());
        let wide = |c: char| em(c) > 1.0;
        let parts = wide(c) || last.is_some_and(|last| wide(last) && c != ' ');
        let stays = CLOSING.contains(c) || last.is_some_and(|last| OPENING.contains(last));
        let begins = last.is_some_and(|last| last == ' ' && c != ' ') || (parts && !stays);
        match found.last_mut().filter(|_| !begins) {
            Some(piece) => piece.push(c),
            None => found.push(c.to_string()),
        }
    }
    found
}

/// Escaped for XML.
pub fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut found, c| {
        match c {
            '<' => found.push_str("&lt;"),
            '>' => found.push_str("&gt;"),
            '&' => found.push_str("&amp;"),
            '"' => found.push_str("&quot;"),
            other => found.push(other),
        }
        found
    })
}

/// A document without the characters that XML 1.0 (section 2.2) forbids: what a device prints may hold them, and no reader would open the file.
pub fn legal(document: &str) -> String {
    let legal = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..) && !matches!(c, '\u{7f}'..='\u{9f}');
    document.chars().map(|c| if legal(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_words_and_their_width() {
        let text = "Median of the launches with its interval; timed at the token's arrival.";
        let broken = lines(text, 14.0);
        assert!(broken.len() > 2 && broken.iter().all(|line| width(line) <= 14.0), "{broken:?}");
        assert_eq!(broken.join(" "), text);
        assert_eq!(lines("首词元延迟与解码速度", 4.3), ["首词元延", "迟与解码", "速度"]);
        // A full stop goes with what it ends, a bracket with what is in it; a word after Han is whole.
        assert_eq!(lines("首词元延。解码（速度）", 4.3), ["首词元", "延。解码", "（速度）"]);
        assert_eq!(lines("解码 tok 延迟token", 4.4), ["解码 tok", "延迟", "token"]);
        assert!(lines(&"x".repeat(99), 12.0).iter().all(|line| width(line) <= 12.0));
        assert!(lines("", 9.0).is_empty() && lines("   ", 9.0).is_empty());
    }

    #[test]
    fn what_no_xml_may_hold_is_taken_out() {
        assert_eq!(legal("a\u{0}\u{1b}[31m\u{fffe}b\n中"), "a??[31m?b\n中");
        assert_eq!(escaped("<a b=\"&\">"), "&lt;a b=&quot;&amp;&quot;&gt;");
    }
}
