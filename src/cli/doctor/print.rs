//! Findings for people: grouped by where, the worst last, so that they are seen.

use crate::{
    cli::console::printable,
    doctor::{Finding, Severity},
    words,
};

/// Width of the column of severities.
const COLUMN: usize = 9;

/// The text.
pub fn human(findings: &[Finding]) -> String {
    let mut places: Vec<&str> = Vec::new();
    for finding in findings {
        if !places.contains(&finding.place.as_str()) {
            places.push(&finding.place);
        }
    }
    let of = |place: &str| -> Vec<&Finding> {
        let mut list: Vec<&Finding> = findings.iter().filter(|f| f.place == place).collect();
        list.sort_by_key(|f| f.severity);
        list
    };
    places.sort_by_key(|place| of(place).last().map(|f| f.severity));
    let mut lines = Vec::new();
    for place in places {
        lines.push(printable(place));
        for finding in of(place) {
            lines.extend(told(finding));
        }
        lines.push(String::new());
    }
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    lines.push(match (errors, warnings) {
        (0, 0) => "everything is as it should be".to_owned(),
        _ => format!("{}, {}", words::count(errors, "error"), words::count(warnings, "warning")),
    });
    lines.iter().map(|line| line.clone() + "\n").collect()
}

fn told(finding: &Finding) -> Vec<String> {
    let word = finding.severity.word();
    let mut lines = vec![printable(&format!("  {word:<COLUMN$}{}: {}", finding.check, finding.what))];
    if finding.severity >= Severity::Warning {
        lines.push(format!("  {:<COLUMN$}why: {}", "", finding.why));
    }
    // Several lines are lines to type.
    for (number, line) in finding.fix.iter().flat_map(|fix| fix.lines().enumerate()) {
        lines.push(printable(&format!("  {:<COLUMN$}{}{line}", "", if number == 0 { "do:  " } else { "     " })).trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(place: &str, severity: Severity, what: &str) -> Finding {
        let fix = (severity > Severity::Note).then(|| "adb kill-server\nadb start-server".to_owned());
        Finding { check: "x", place: place.to_owned(), severity, what: what.to_owned(), why: "it matters", fix }
    }

    #[test]
    fn the_worst_comes_last_and_nothing_steers_the_terminal() {
        let findings = [
            finding("R5\u{1b}[2J", Severity::Error, "gone\r\nok"),
            finding("R5\u{1b}[2J", Severity::Ok, "fine"),
            finding("host", Severity::Note, "so"),
        ];
        let expected = "host\n  note     x: so\n\nR5 [2J\n  ok       x: fine\n  error    x: gone  ok\n           why: it matters\n           do:  adb kill-server\n                adb start-server\n\n1 error, 0 warnings\n";
        assert_eq!(human(&findings), expected);
        assert_eq!(human(&[finding("host", Severity::Ok, "fine")]).lines().last(), Some("everything is as it should be"));
    }
}
