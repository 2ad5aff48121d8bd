use super::*;

/// Nights around a level that go up and down by `by` in turn.
fn zigzag(n: usize, by: f64) -> Vec<Night> {
    (0..n).map(|i| Night { at: if i % 2 == 0 { by } else { -by }, error: Some(by) }).collect()
}

fn night(at: f64) -> Night {
    Night { at, error: Some(0.002) }
}

#[test]
fn a_large_change_is_found_at_once_and_none_is_said_to_be_none() {
    let history = zigzag(20, 0.002);
    for (at, verdict) in [(0.05, Verdict::Regressed), (-0.05, Verdict::Improved), (0.0, Verdict::Unchanged)] {
        let found = judge(&history, night(at), 0.02);
        assert_eq!((found.verdict, found.window), (verdict, 1), "{found:?}");
    }
}

#[test]
fn too_little_to_tell_is_said() {
    let none = judge(&[], night(0.0), 0.02);
    assert_eq!((none.verdict, none.effect, none.reasons.len()), (Verdict::Undecided, None, 1));
    let two = judge(&zigzag(2, 0.002), night(0.03), 0.02);
    assert_eq!(two.verdict, Verdict::Undecided);
    assert!(two.reasons.iter().any(|why| why.contains("assumed to be 1 %")), "{two:?}");
    // A change far beyond what is assumed is one all the same.
    assert_eq!(judge(&zigzag(2, 0.002), night(0.10), 0.02).verdict, Verdict::Regressed);
}

#[test]
fn both_ways_of_making_a_night_agree() {
    // Twenty values whose logs are 4.6 and 0.03 times normal scores: the MAD of such is 0.6745 x 0.03 x exp(4.6).
    let scores: Vec<f64> = (1..=20).map(|i| stats_normal((f64::from(i) - 0.375) / 20.25)).collect();
    let values: Vec<f64> = scores.iter().map(|z| (4.6 + 0.03 * z).exp()).collect();
    let of_values = Night::of(&values, true).expect("a night");
    let of_row = Night::of_row(4.6_f64.exp(), Some(0.6745 * 0.03 * 4.6_f64.exp()), 20, true).expect("a night");
    assert!((of_values.at + 4.6).abs() < 1e-9 && (of_row.at + 4.6).abs() < 1e-12);
    let (a, b) = (of_values.error.expect("an error"), of_row.error.expect("an error"));
    assert!((a - b).abs() < 0.1 * b, "{a} {b}");
    assert_eq!(Night::of_row(0.0, None, 20, true), None);
    assert_eq!(Night::of(&[1.0, -1.0], true), None);
}

fn stats_normal(p: f64) -> f64 {
    student(p, f64::INFINITY)
}
