//! JUnit XML, in the elements and attributes that both common schemas know (Ant's by Windy Road, Jenkins' xUnit `junit-10.xsd`): a test for each row
//! and each requirement. Names, by which a CI system knows a test again, are the same in all languages. What failed for a reason outside of the cell, or is not known, is `skipped`: no CI system may take it for a regression.

use std::fmt::Write;

use super::super::{Gate, Verdict};
use super::words;
use crate::{gate::require::Met, lang::Voice, safe::visible};

/// The document, its sentences said by a voice.
pub fn junit(gate: &Gate, voice: &Voice) -> String {
    let mut cases = String::new();
    let (mut failures, mut skipped) = (0, 0);
    let mut case = |class: &str, name: &str, outcome: Option<(&str, bool)>, text: &[String]| {
        let text = voice.text(&text.join("; "));
        let _ = write!(cases, "    <testcase classname=\"{}\" name=\"{}\" time=\"0\"", escaped(class), escaped(name));
        let _ = match outcome {
            None => writeln!(cases, "/>"),
            Some((kind, true)) => {
                failures += 1;
                writeln!(cases, ">\n      <failure type=\"{kind}\" message=\"{0}\">{0}</failure>\n    </testcase>", escaped(&text))
            }
            Some((_, false)) => {
                skipped += 1;
                writeln!(cases, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escaped(&text))
            }
        };
    };
    for row in &gate.rows {
        let outcome = match row.verdict {
            Verdict::Improved | Verdict::Unchanged => None,
            Verdict::Regressed => Some((row.kind.word(), true)),
            Verdict::Undecided => Some(("undecided", false)),
        };
        let mut text = vec![format!("{} {}", row.verdict.word(), words::change(row)).trim_end().to_owned()];
        text.extend(words::finds(row));
        text.extend(words::remarks(row));
        case(&format!("{}.{}", row.key.device, row.key.cell), words::subject(row), outcome, &text);
    }
    for judged in &gate.requirements {
        let outcome = match judged.met {
            Met::Passed => None,
            Met::Violated => Some(("requirement", true)),
            Met::Undecided | Met::NotTried => Some(("undecided", false)),
        };
        let text = [judged.met.word().to_owned(), words::measured(judged), words::slack(judged), judged.why.clone()];
        let text: Vec<String> = text.into_iter().filter(|t| !t.is_empty()).collect();
        case(&format!("{}.{}", judged.device, judged.cell), &format!("require {}", judged.words), outcome, &text);
    }
    let tests = gate.rows.len() + gate.requirements.len();
    // The schema wants seconds without a zone: `2026-01-31T02:00:00`.
    let stamp: String = gate.started_utc.chars().take(19).collect();
    let stamp = if stamp.len() == 19 { stamp } else { "1970-01-01T00:00:00".to_owned() };
    let device = gate.rows.first().map_or("unknown", |row| row.key.device.as_str());
    let device = if device.is_empty() { "unknown" } else { device };
    let mut properties = String::new();
    for (name, value) in [("against", gate.against.clone()), ("limit", gate.limit.to_string()), ("odds", gate.odds())] {
        let _ = writeln!(properties, "      <property name=\"{name}\" value=\"{}\"/>", escaped(&voice.text(&value)));
    }
    let notes: Vec<String> = gate.notes.iter().map(|note| voice.text(note)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite id=\"0\" package=\"bench.gate\" name=\"{}\" timestamp=\"{}\" hostname=\"{}\" \
         tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"0\">\n    <properties>\n{properties}    </properties>\n{cases}    \
         <system-out>{}</system-out>\n    <system-err></system-err>\n  </testsuite>\n</testsuites>\n",
        escaped(&format!("bench gate {}", gate.run)),
        escaped(&stamp),
        escaped(device),
        escaped(&notes.join("\n")),
    )
}

/// Text for XML: marks escaped, what XML 1.0 can't hold replaced.
fn escaped(text: &str) -> String {
    visible(text).chars().fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
        out
    })
}
