//! Workflow commands of GitHub Actions, which stand in the log and above the pull request. GitLab has none: it shows the JUnit report.

use super::super::{Gate, Verdict};
use super::words;
use crate::{gate::require::Met, lang::Voice, safe::visible};

/// A line for each thing that is worse (`::error`), and one for all that is not known (`::warning`): GitHub shows ten of a kind. A voice says them.
pub fn annotations(gate: &Gate, voice: &Voice) -> String {
    let command = |kind: &str, title: &str, message: &str| command(kind, &voice.text(title), &voice.text(message));
    let mut lines = Vec::new();
    for row in gate.rows.iter().filter(|row| row.verdict == Verdict::Regressed) {
        let text: Vec<String> = [words::change(row)].into_iter().filter(|t| !t.is_empty()).chain(words::remarks(row)).collect();
        let title = format!("{} of {} on {}", words::subject(row), row.key.cell, row.key.device);
        lines.push(command("error", &title, &text.join("; ")));
    }
    for judged in gate.requirements.iter().filter(|judged| judged.met == Met::Violated) {
        let text = format!("{}: {}, {}", judged.words, words::measured(judged), words::slack(judged));
        lines.push(command("error", &format!("requirement violated by {}", judged.cell), &text));
    }
    if gate.undecided() {
        lines.push(command("warning", "bench gate is undecided", &words::counts(gate)));
    }
    lines.join("\n")
}

/// `::error title=...::message`, escaped as actions/toolkit does (packages/core/src/command.ts).
fn command(kind: &str, title: &str, message: &str) -> String {
    let data = |text: &str| visible(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    format!("::{kind} title={}::{}", data(title).replace(':', "%3A").replace(',', "%2C"), data(message))
}
