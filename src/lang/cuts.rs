//! Where a text can be cut into texts of its own.

/// The pieces between the signs, outside of brackets and quotes.
pub fn at<'a>(text: &'a str, sign: &str) -> Vec<&'a str> {
    let cuts: Vec<usize> = outside(text).filter(|at| text[*at..].starts_with(sign)).collect();
    pieces(text, &cuts, sign.len())
}

/// The sentences, each with its full stop.
pub fn sentences(text: &str) -> Vec<&str> {
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || "“`✓".contains(c));
    // Where no capital tells, some words before it do: `perf. profile` is no end of a sentence.
    let long = |before: &str| before.rsplit(". ").next().is_some_and(|sentence| sentence.split(' ').count() >= 3);
    let cuts: Vec<usize> = outside(text)
        .filter(|at| text[*at..].starts_with(". ") && (begins(&text[at + 2..]) || long(&text[..*at])))
        .map(|at| at + 1)
        .collect();
    pieces(text, &cuts, 1)
}

/// The columns of a line, and the place on a terminal at which each begins; two blanks or more part them.
pub fn columns(text: &str) -> Vec<(usize, &str)> {
    use unicode_width::UnicodeWidthStr;
    let (mut all, mut at, mut place) = (Vec::new(), 0, 0);
    for piece in text.split_inclusive(GAP) {
        let column = piece.trim();
        if !column.is_empty() {
            let before = piece.len() - piece.trim_start().len();
            all.push((place + before, &text[at + before..at + before + column.len()]));
        }
        at += piece.len();
        place += piece.width();
    }
    all
}

/// What parts the columns of a line.
pub const GAP: &str = "  ";

/// The places of a text outside of brackets and quotes.
fn outside(text: &str) -> impl Iterator<Item = usize> {
    let (mut depth, mut quoted) = (0_u32, false);
    text.char_indices()
        .filter(move |(_, c)| {
            match c {
                '(' | '[' | '“' => depth += 1,
                ')' | ']' | '”' => depth = depth.saturating_sub(1),
                '`' => quoted = !quoted,
                _ => {}
            }
            depth == 0 && !quoted
        })
        .map(|(at, _)| at)
}

fn pieces<'a>(text: &'a str, cuts: &[usize], sign: usize) -> Vec<&'a str> {
    let begins = std::iter::once(0).chain(cuts.iter().map(|cut| cut + sign));
    let ends = cuts.iter().copied().chain([text.len()]);
    begins.zip(ends).map(|(begin, end)| &text[begin..end]).collect()
}

/// What stands before the bracket that ends a text, and what is in it.
pub fn bracket(text: &str) -> Option<(&str, &str)> {
    let stem = text.strip_suffix(')')?;
    let mut open = 1;
    let begin = stem.char_indices().rev().find_map(|(at, c)| {
        open += match c {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        (open == 0).then_some(at)
    })?;
    Some((stem[..begin].strip_suffix(' ')?, &stem[begin + 1..]))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_bracket_is_the_one_that_ends_the_text() {
        assert_eq!(super::bracket("a (b (c) d)"), Some(("a", "b (c) d")));
        assert_eq!([super::bracket("a(b)"), super::bracket("a) b)"), super::bracket("(a) b")], [None; 3]);
    }
}
