//! Markdown for a pull request. Nothing of a run steers it: whatever could be syntax is escaped, HTML too.

use super::human::counts;
use crate::{
    report::comparison::{Comparison, Difference},
    safe::markdown as escape,
};

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

/// An id as code, where it is as plain as one of ours.
fn code(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+:".contains(c);
    if !text.is_empty() && text.chars().all(plain) { format!("`{text}`") } else { escape(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_id_is_code() {
        assert_eq!(code("qnn.tiny_llama.w4-0a1b"), "`qnn.tiny_llama.w4-0a1b`");
        let all = ["", "a`b|c", "x\u{202e}y", "a b"].map(code);
        assert_eq!(all, ["", "a&#96;b&#124;c", "x\u{fffd}y", "a b"]);
    }
}
