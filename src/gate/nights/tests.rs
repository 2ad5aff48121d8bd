use super::{judge as judged, *};

/// With what is assumed of a phone.
fn judge(history: &[Night], tonight: Night, asked: f64) -> Judgement {
    judged(history, tonight, asked, 0.01)
}

/// Nights that go up and down around 0 by `by` in turn.
fn zigzag(n: usize, by: f64) -> Vec<Night> {
    (0..n).map(|i| night(if i % 2 == 0 { by } else { -by })).collect()
}

fn night(at: f64) -> Night {
    Night { at, error: Some(0.002) }
}

/// [`zigzag`] around another level.
fn around(level: f64, n: usize) -> Vec<Night> {
    zigzag(n, 0.002).into_iter().map(|each| night(level + each.at)).collect()
}

#[test]
fn a_large_change_is_found_at_once_and_none_is_said_to_be_none() {
    let history = zigzag(20, 0.002);
    for (at, verdict) in [(0.05, Verdict::Regressed), (-0.05, Verdict::Improved), (0.0, Verdict::Unchanged)] {
        let found = judge(&history, night(at), 0.02);
        assert_eq!((found.verdict, found.window, found.nights_needed), (verdict, 1, None), "{found:?}");
        assert_eq!(found.since, (verdict != Verdict::Unchanged).then_some(20));
    }
}

/// The spread by hand: twenty nights of +-0.002 have s^2 = 20 * 4e-6 / 19; the assumption, 0.002^2 + 0.005^2 worth five nights, makes
/// (5 * 2.9e-5 + 19 * 4.2105e-6) / 24 = 9.375e-6 of it; t by SciPy for 24 degrees: ppf(.995) = 2.796940, ppf(.9) = 1.317836, ppf(.975) = 2.063899.
#[test]
fn figures_by_hand() {
    let found = judge(&zigzag(20, 0.002), night(0.05), 0.02);
    let (three, one) = ((9.375e-6_f64 * (1.0 / 3.0 + 0.05)).sqrt(), (9.375e-6_f64 * 1.05).sqrt());
    let effect = found.effect.expect("an effect");
    assert!((effect.log - 0.05).abs() < 1e-12 && (effect.hi - 0.05 - 2.063_899 * one).abs() < 1e-8, "{effect:?}");
    // The noise of three nights is 0.0053, under half of what is asked.
    assert!((found.tolerance - (0.5 * 1.02_f64.ln()).exp_m1()).abs() < 1e-12);
    let finds = (2.796_940 + 1.317_836) * three;
    assert!(finds < found.tolerance && (found.mde.expect("one") - found.tolerance).abs() < 1e-12, "{finds} {found:?}");
    // With less asked the noise is the tolerance; with less than the noise, what is asked is.
    let strict = judge(&zigzag(20, 0.002), night(0.0), 0.008);
    assert!((strict.tolerance - (2.796_940 * three).exp_m1()).abs() < 1e-7, "{strict:?}");
    assert!((strict.mde.expect("one") - finds.exp_m1()).abs() < 1e-7);
    assert!((judge(&zigzag(20, 0.002), night(0.0), 0.003).tolerance - 0.003).abs() < 1e-12);
}

#[test]
fn too_little_to_tell_is_said() {
    let none = judge(&[], night(0.0), 0.02);
    assert_eq!((none.verdict, none.effect, none.reasons.len()), (Verdict::Undecided, None, 1));
    let two = judge(&zigzag(2, 0.002), night(0.012), 0.02);
    assert_eq!(two.verdict, Verdict::Undecided);
    assert!(two.reasons.iter().any(|why| why.contains("only 2 nights") && why.contains("1 % is assumed")), "{two:?}");
    // A change far beyond what is assumed is one all the same.
    assert_eq!(judge(&zigzag(2, 0.002), night(0.10), 0.02).verdict, Verdict::Regressed);
    assert_eq!(judge(&zigzag(20, 0.002), night(0.0), 0.0).verdict, Verdict::Undecided, "nothing is within nothing");
}

/// Two nights of +-0.002 have s^2 = 8e-6; the assumption, 0.002^2 + 0.01^2 worth five nights, makes (5 * 1.04e-4 + 8e-6) / 6 = 8.8e-5 of it. A window of
/// two against two has that error squared; t by SciPy for 6 degrees: ppf(.9985) = 4.800243, ppf(.9) = 1.439756. One night against one: 5 degrees,
/// 1.04e-4 * 2, ppf(.999) = 5.893430, ppf(.9) = 1.475884.
#[test]
fn few_nights_have_the_mde_of_a_short_window() {
    let mde = |n: usize| judge(&zigzag(n, 0.002), night(0.0), 0.02).mde.expect("one");
    let two = ((4.800_243 + 1.439_756) * 8.8e-5_f64.sqrt()).exp_m1();
    assert!((mde(2) - two).abs() < 1e-6, "{} {two}", mde(2));
    let one = ((5.893_430 + 1.475_884) * 2.08e-4_f64.sqrt()).exp_m1();
    assert!((mde(1) - one).abs() < 1e-6, "{} {one}", mde(1));
}

#[test]
fn what_is_assumed_of_a_class_counts_until_nights_show_their_own() {
    let with = |n: usize, few: f64| judged(&zigzag(n, 0.002), night(0.0), 0.02, few);
    assert!(with(5, 0.02).mde > with(5, 0.01).mde && with(5, 0.02).reasons.concat().contains("spread by 2 % is assumed"));
    assert_eq!(with(FEWEST, 0.02), with(FEWEST, 0.01));
}

#[test]
fn a_small_change_takes_nights_and_says_how_many() {
    let history = zigzag(30, 0.008);
    let found = judge(&history, night(0.015), 0.02);
    assert_eq!(found.verdict, Verdict::Undecided);
    let nights = found.nights_needed.expect("a number");
    assert!(found.reasons.iter().any(|why| why.contains(&format!("2 %: {nights} in a row would"))), "{found:?}");
    let mut series = history;
    for _ in 1..nights {
        series.push(night(0.02));
    }
    let found = judge(&series, night(0.02), 0.02);
    assert_eq!((found.verdict, found.since), (Verdict::Regressed, Some(30)), "{found:?}");
}

#[test]
fn noise_that_no_night_can_beat_is_said() {
    let found = judge(&zigzag(30, 0.05), night(0.0), 0.02);
    assert_eq!((found.verdict, found.nights_needed), (Verdict::Undecided, None));
    assert!(found.mde.expect("one") > 0.05 && found.reasons[0].contains("more repetitions"), "{found:?}");
}

#[test]
fn outlier_nights_do_not_poison_the_baseline() {
    let mut history = zigzag(20, 0.002);
    (history[3], history[11]) = (night(0.4), night(-0.3));
    assert_eq!(judge(&history, night(0.05), 0.02).verdict, Verdict::Regressed);
    assert_eq!(judge(&history, night(0.0), 0.02).verdict, Verdict::Unchanged);
    // One bad night is an alarm of its night, not of those after it.
    history.push(night(0.05));
    assert_eq!(judge(&history, night(0.001), 0.02).verdict, Verdict::Unchanged);
}

#[test]
fn a_loss_stays_reported_until_it_is_accepted() {
    let mut history = around(0.0, 30);
    history.extend(around(0.03, 60));
    let found = judge(&history, night(0.03), 0.02);
    assert_eq!((found.verdict, found.since), (Verdict::Regressed, Some(30)), "{found:?}");
    // Accepted: the history begins with it.
    assert_eq!(judge(&history[30..], night(0.03), 0.02).verdict, Verdict::Unchanged);
    // Mended: at once, whatever the weeks before were like; later the new nights join the old level.
    let mended = judge(&history, night(0.0), 0.02);
    assert_ne!(mended.verdict, Verdict::Regressed, "{mended:?}");
    history.extend(around(0.0, 10));
    let found = judge(&history, night(0.0), 0.02);
    assert_eq!((found.verdict, found.baseline), (Verdict::Unchanged, 40), "{found:?}");
}

#[test]
fn losses_too_small_to_count_add_up() {
    let mut history = around(0.0, 30);
    history.extend(around(0.008, 30));
    assert_eq!(judge(&history, night(0.008), 0.02).verdict, Verdict::Unchanged);
    history.extend(around(0.016, 30));
    let found = judge(&history, night(0.016), 0.02);
    assert_eq!((found.verdict, found.since), (Verdict::Regressed, Some(30)), "{found:?}");
}

#[test]
fn a_gain_that_lasts_is_the_new_level() {
    let mut history = around(0.0, 30);
    history.extend(around(-0.03, 10));
    assert_eq!(judge(&history, night(-0.03), 0.02).verdict, Verdict::Unchanged);
    assert_eq!(judge(&history, night(0.0), 0.02).verdict, Verdict::Regressed);
}

#[test]
fn a_night_with_few_launches_weighs_less() {
    let history = zigzag(20, 0.002);
    let noisy = Night { at: 0.02, error: Some(0.02) };
    assert_eq!(judge(&history, night(0.02), 0.02).verdict, Verdict::Regressed);
    assert_eq!(judge(&history, noisy, 0.02).verdict, Verdict::Undecided);
}

#[test]
fn both_ways_of_making_a_night_agree() {
    // Twenty values whose logs are 4.6 and 0.03 times normal scores: the MAD of such is 0.6745 x 0.03 x exp(4.6).
    let scores: Vec<f64> = (1..=20).map(|i| student((f64::from(i) - 0.375) / 20.25, f64::INFINITY)).collect();
    let values: Vec<f64> = scores.iter().map(|z| (4.6 + 0.03 * z).exp()).collect();
    let of_values = Night::of(&values, true).expect("a night");
    let of_row = Night::of_row(4.6_f64.exp(), Some(0.6745 * 0.03 * 4.6_f64.exp()), 20, true).expect("a night");
    assert!((of_values.at + 4.6).abs() < 1e-9 && (of_row.at + 4.6).abs() < 1e-12);
    let (a, b) = (of_values.error.expect("an error"), of_row.error.expect("an error"));
    assert!((a - b).abs() < 0.1 * b, "{a} {b}");
    assert_eq!(Night::of_row(0.0, None, 20, true), None);
    assert_eq!(Night::of(&[1.0, -1.0], true), None);
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(60))]

    /// No series makes it panic; what it says is finite, and holds what is promised of it.
    #[test]
    fn no_series_breaks_it(
        levels in proptest::collection::vec((-1e3..1e3_f64, proptest::option::of(0.0..1.0_f64)), 0..40),
        scale in 0.0..1.0_f64,
        asked in 0.0..0.5_f64,
    ) {
        let nights: Vec<Night> = levels.iter().map(|(at, error)| Night { at: at * scale, error: *error }).collect();
        let Some((tonight, history)) = nights.split_last() else { return Ok(()) };
        let found = judge(history, *tonight, asked);
        let least = (asked.ln_1p() / 2.0).exp_m1() * (1.0 - 1e-9);
        proptest::prop_assert!(found.tolerance <= asked * (1.0 + 1e-9) && found.tolerance >= least);
        proptest::prop_assert_eq!(found.effect.is_some(), !history.is_empty());
        for figure in found.effect.iter().flat_map(|e| [e.log, e.lo, e.hi]).chain(found.mde) {
            proptest::prop_assert!(!figure.is_nan());
        }
        proptest::prop_assert!(found.since.is_none_or(|since| since <= history.len()));
        // Turned over, a regression is an improvement, unless a gain has moved the level.
        let turned: Vec<Night> = history.iter().map(|night| Night { at: -night.at, ..*night }).collect();
        if history.len() < 9 {
            let other = judge(&turned, Night { at: -tonight.at, ..*tonight }, asked);
            proptest::prop_assert_eq!(found.verdict == Verdict::Regressed, other.verdict == Verdict::Improved);
        }
    }
}
