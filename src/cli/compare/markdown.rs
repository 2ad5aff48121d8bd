//! Markdown for a pull request. Nothing of a run steers it: whatever could be syntax is escaped, HTML too.

use super::human::counts;
use crate::report::comparison::{Comparison, Difference};

/// The comparison, its figures folded away where nothing regressed.
pub fn of(view: &Comparison) -> String {
    let mut lines = vec![format!("### bench compare: {}", counts(view)), String::new()];
    lines.push(format!(
        "B {} ({}) against A {} ({}).",
        code(&view.b.run),
        escape(&view.b.scenario),
        code(&view.a.run),
        escape(&view.a.scenario)
    ));
    lines.extend(view.method.iter().map(|sentence| escape(sentence)));
    list(&mut lines, "To know first", view.problems.iter().map(|problem| escape(problem)).collect());
    differences(&mut lines, "Not the same in both, and could explain a difference by itself", &view.serious);
    for table in &view.tables {
        let worst = table.rows.iter().any(|row| row.change.verdict == "regressed");
        let title = format!("{}, {} ({})", escape(table.metric), escape(&table.class), table.better);
        lines.extend([String::new(), format!("<details{}><summary>{title}</summary>", if worst { " open" } else { "" }), String::new()]);
        lines.push("| cell | A | B | launches | B/A | 95 % interval | verdict |".to_owned());
        lines.push("|---|--:|--:|--:|--:|--:|---|".to_owned());
        for row in &table.rows {
            let device = if row.device.is_empty() { String::new() } else { format!(" on {}", escape(&row.device)) };
            let composed = if row.composed { " (composed, an upper bound)" } else { "" };
            let verdict = if row.change.verdict == "regressed" { "**regressed**".to_owned() } else { row.verdict() };
            let (ratio, between) = (row.change.figure(), row.change.between());
            let name = code(&row.cell);
            lines.push(format!("| {name}{device}{composed} | {} | {} | {} | {ratio} | {between} | {verdict} |", row.a, row.b, row.n));
        }
        if let Some((n, change)) = &table.overall {
            let (ratio, between) = (change.figure(), change.between());
            lines.push(format!("| geometric mean of {n} cells | | | | **{ratio}** | {between} | {} |", change.verdict));
        }
        list(&mut lines, "Would decide", table.decide.iter().map(|(words, n)| format!("{n} of them: {}", escape(words))).collect());
        lines.extend([String::new(), "</details>".to_owned()]);
    }
    list(
        &mut lines,
        "What else would decide undecided rows",
        view.decide.iter().map(|(words, n)| format!("{} ({n} rows)", escape(words))).collect(),
    );
    let refused = view.refused.iter().map(|refused| format!("{}: {}", escape(&refused.reason), escape(&refused.what.join("; "))));
    list(&mut lines, "Not compared", refused.collect());
    differences(&mut lines, "Not the same either", &view.minor);
    lines.join("\n") + "\n"
}

fn list(lines: &mut Vec<String>, title: &str, entries: Vec<String>) {
    if !entries.is_empty() {
        lines.extend([String::new(), format!("**{title}**"), String::new()]);
        lines.extend(entries.into_iter().map(|entry| format!("- {entry}")));
    }
}

fn differences(lines: &mut Vec<String>, title: &str, all: &[Difference]) {
    if all.is_empty() {
        return;
    }
    lines.extend([
        String::new(),
        format!("**{title}**"),
        String::new(),
        "| what | A | B | where |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ]);
    for difference in all {
        let cells = if difference.cells.is_empty() { "the whole run".to_owned() } else { escape(&difference.cells) };
        let what = format!("{}{}", escape(&difference.what), if difference.bars { " (not compared)" } else { "" });
        lines.push(format!("| {what} | {} | {} | {cells} |", escape(&difference.a), escape(&difference.b)));
    }
}

/// Text as text: ASCII punctuation that Markdown or HTML could take for theirs, `@` and `#` of mentions among them.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // An entity, because a backslash does not keep a forge from making a mention of it.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// An id as code; a backtick or a bar in it would end the code or the cell.
fn code(text: &str) -> String {
    if text.is_empty() || text.contains(|c: char| matches!(c, '`' | '|' | '\\') || c.is_control()) {
        escape(text)
    } else {
        format!("`{text}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_says_is_text() {
        assert_eq!(escape("a|b`c`<img src=x>@you #1\n| x"), r"a\|b\`c\`&lt;img src=x&gt;&#64;you \#1 \| x");
        assert_eq!((code("qnn.tiny-llama.w4"), code("a`b|c")), ("`qnn.tiny-llama.w4`".to_owned(), r"a\`b\|c".to_owned()));
    }
}
