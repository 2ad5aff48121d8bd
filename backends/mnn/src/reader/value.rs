//! Cells and figures of MNN's tools.

use bench_backend_api::text;

/// More tokens a second than this come from a run that did nothing: a failed test is printed as tokens over one microsecond
/// (`8000000.00 ± 0.00`), while 10^5 is the most that a real run of a tiny model reached.
const MAX_TOK_S: f64 = 1e6;

/// A larger weight file is the -1 of a missing file, printed as `17179869184.00 GiB`.
const MAX_GIB: f64 = 1e5;

/// Why a text is no measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bad {
    /// A decimal or thousands comma: ambiguous.
    Comma,
    /// `nan` or `inf`.
    NotFinite,
    /// Something else.
    Text,
}

/// One number; a comma between digits is told apart, because it stops the reading of the whole file.
pub(super) fn number(text: &str) -> Result<f64, Bad> {
    if let Some(value) = text::number(text) {
        return Ok(value);
    }
    let lower = text.trim().trim_start_matches(['-', '+']).to_ascii_lowercase();
    let has_comma = lower
        .split(',')
        .skip(1)
        .zip(lower.split(','))
        .any(|(behind, before)| before.ends_with(|c: char| c.is_ascii_digit()) && behind.starts_with(|c: char| c.is_ascii_digit()));
    if has_comma {
        Err(Bad::Comma)
    } else if lower.starts_with("nan") || lower.starts_with("inf") {
        Err(Bad::NotFinite)
    } else {
        Err(Bad::Text)
    }
}

/// `avg ± std`, the sign in whatever encoding it survived, or one number alone.
pub(super) fn mean_std(cell: &str) -> Result<(f64, Option<f64>), Bad> {
    let cell = cell.replace("+/-", "±").replace("+-", "±").replace("Â±", "±").replace('\u{fffd}', "±");
    let mut parts = cell.split('±').map(str::trim).filter(|part| !part.is_empty());
    let mean = number(parts.next().ok_or(Bad::Text)?)?;
    let std = match parts.next() {
        None => None,
        Some(text) => match number(text) {
            Ok(value) => Some(value),
            Err(Bad::NotFinite) => None,
            Err(bad) => return Err(bad),
        },
    };
    if parts.next().is_some() { Err(Bad::Text) } else { Ok((mean, std)) }
}

/// Prompt and generated tokens of a test: `pp512`, `tg128`, `pp512+tg128`, or the older `prompt=512<br>decode=128`.
pub(super) fn test(cell: &str) -> Option<(Option<u32>, Option<u32>)> {
    let cell: String = cell.to_ascii_lowercase().replace("<br/>", "+").replace("<br>", "+").split_whitespace().collect();
    let (mut prompt, mut generate) = (None, None);
    for part in cell.split('+') {
        let (slot, digits) = if let Some(digits) = part.strip_prefix("pp").or_else(|| part.strip_prefix("prompt=")) {
            (&mut prompt, digits)
        } else {
            (&mut generate, part.strip_prefix("tg").or_else(|| part.strip_prefix("decode="))?)
        };
        if slot.is_some() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *slot = Some(digits.parse().ok()?);
    }
    Some((prompt, generate))
}

/// The label of a test.
pub(super) fn label(prompt: Option<u32>, generate: Option<u32>) -> String {
    match (prompt, generate) {
        (Some(prompt), None) => format!("pp{prompt}"),
        (None, Some(generate)) => format!("tg{generate}"),
        (Some(prompt), Some(generate)) => format!("pp{prompt}+tg{generate}"),
        (None, None) => String::new(),
    }
}

/// Whether tokens a second can be those of a run that computed something.
pub(super) fn real_speed(tok_s: f64) -> bool {
    tok_s > 0.0 && tok_s < MAX_TOK_S
}

/// Whether a printed size (`355.68 MiB`) is that of a file.
pub(super) fn real_size(cell: &str) -> bool {
    let Some((value, unit)) = text::quantity(cell) else { return true };
    let gib = match unit {
        "GiB" => value,
        "MiB" => value / 1024.0,
        "KiB" => value / 1024.0 / 1024.0,
        _ => return true,
    };
    real_gib(gib)
}

/// Whether a size in GiB is that of a file.
pub(super) fn real_gib(gib: f64) -> bool {
    (0.0..MAX_GIB).contains(&gib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_strict() {
        assert_eq!(mean_std("28.21 ± 0.10"), Ok((28.21, Some(0.1))));
        assert_eq!(mean_std("28.21 Â± 0.10"), Ok((28.21, Some(0.1))));
        assert_eq!(mean_std(" 28.21 +/- nan "), Ok((28.21, None)));
        assert_eq!(mean_std("28.21"), Ok((28.21, None)));
        assert_eq!(mean_std("28,21 ± 0,10"), Err(Bad::Comma));
        assert_eq!(mean_std("-nan ± 1"), Err(Bad::NotFinite));
        assert_eq!(mean_std("fast"), Err(Bad::Text));
        assert_eq!(mean_std("1 ± 2 ± 3"), Err(Bad::Text));
    }

    #[test]
    fn tests_have_two_spellings() {
        assert_eq!(test("pp512"), Some((Some(512), None)));
        assert_eq!(test(" tg 128"), Some((None, Some(128))));
        assert_eq!(test("prompt=64<br>decode=16"), Some((Some(64), Some(16))));
        assert_eq!(test("pp64+tg16"), Some((Some(64), Some(16))));
        for other in ["", "pp", "pp-1", "tg1+tg2", "512", "pp99999999999"] {
            assert_eq!(test(other), None, "{other}");
        }
    }

    #[test]
    fn sizes_of_missing_files_are_seen() {
        assert!(real_size("355.68 MiB") && real_size("1.99 GiB"));
        assert!(!real_size("17179869184.00 GiB"));
    }
}
