//! Scores, shares and fronts against figures worked out elsewhere.

use proptest::prelude::*;

use super::{
    super::{
        Sure,
        rank::{self, DRAWS, Term},
        samples::Sample,
    },
    close,
};

fn term(exponent: f64, values: &[f64], bundle: &str) -> Term {
    let values = (0..).zip(values.iter().copied()).collect();
    Term { exponent, sample: Sample::Launches { values, bundle: bundle.to_owned() }, session: 0 }
}

fn one(exponent: f64, value: f64) -> Term {
    Term { exponent, sample: Sample::Exact(value), session: 0 }
}

#[test]
fn a_score_is_the_weighted_geometric_mean_of_ratios_to_the_best() {
    // TTFT weighs 2/3, decode 1/3. A: (100/100)^(2/3) (20/40)^(1/3) = 0.793700526; B: (100/200)^(2/3) (40/40)^(1/3) = 0.629960525.
    let (ttft, decode) = (-2.0 / 3.0, 1.0 / 3.0);
    let scores = rank::scores(&[vec![one(ttft, 200.0), one(decode, 40.0)], vec![one(ttft, 100.0), one(decode, 20.0)]]);
    close(scores[0], 0.629_960_524_947_436_6);
    close(scores[1], 0.793_700_525_984_099_8);
    assert_eq!(rank::order(&scores), [1, 0]);
    // The third one, the best in decode, takes the same share of both.
    let scores = rank::scores(&[
        vec![one(ttft, 200.0), one(decode, 40.0)],
        vec![one(ttft, 100.0), one(decode, 20.0)],
        vec![one(ttft, 900.0), one(decode, 80.0)],
    ]);
    close(scores[0] / scores[1], 0.629_960_524_947_436_6 / 0.793_700_525_984_099_8);
}

/// Launches of A; B's and its shifts come from them.
const A: [f64; 11] = [100.0, 104.0, 98.0, 102.0, 101.0, 99.0, 103.0, 97.0, 105.0, 96.0, 106.0];
const B: [f64; 11] = [101.0, 105.0, 99.0, 103.0, 102.0, 100.0, 104.0, 98.0, 106.0, 97.0, 110.0];

fn share(candidates: &[Vec<Term>]) -> f64 {
    let (sure, firsts) = rank::sure(candidates);
    let Sure::Bootstrap { resamples, first, launches } = sure else { panic!("{sure:?}") };
    assert_eq!((resamples, launches), (DRAWS, 11));
    close(firsts.iter().flatten().sum(), 1.0);
    assert!(firsts.iter().flatten().all(|share| *share <= first + 1e-12), "the best is first most often here");
    firsts[0].expect("a share")
}

/// The exact shares: P(median* <= x_(k)) of n values is P(Bin(n, k/n) >= (n+1)/2), and two independent medians are compared value by value, equal ones
/// half and half (Python's fractions).
#[test]
fn the_share_of_the_draws_is_the_exact_one() {
    let shifted = |by: f64| A.map(|value| value + by);
    for (other, exact) in [(B, 0.669_253_020_600), (shifted(3.0), 0.908_312_001_798), (shifted(6.0), 0.997_410_861_738)] {
        let found = share(&[vec![term(-1.0, &A, "a")], vec![term(-1.0, &other, "b")]]);
        // Four standard errors of a share out of so many draws.
        let tolerance = 4.0 * (exact * (1.0 - exact) / DRAWS as f64).sqrt();
        assert!((found - exact).abs() < tolerance, "{found} is not {exact}");
    }
}

/// One that can't be first takes nothing from the others: neither a share, nor a draw.
#[test]
fn the_hopeless_change_nothing() {
    let three = [vec![term(-1.0, &A, "a")], vec![term(-1.0, &B, "b")], vec![term(-1.0, &A.map(|value| value * 2.0), "c")]];
    let (two, all) = (rank::sure(&three[..2]).1, rank::sure(&three).1);
    assert_eq!((&all[..2], all[2]), (&two[..], Some(0.0)));
}

/// Two metrics of the same launches are drawn together: 0.6503 in 400,000 draws of Python's `random`. Drawn apart it would be another share.
#[test]
fn metrics_of_a_launch_are_drawn_together() {
    let decode = [20.0, 19.0, 21.0, 20.5, 19.5, 20.2, 19.8, 20.1, 19.9, 20.3, 19.7];
    let other = [19.0, 21.0, 20.0, 19.9, 20.1, 19.6, 20.4, 19.8, 20.2, 19.7, 20.3];
    let terms = |ttft: &[f64], rate: &[f64], bundle| vec![term(-0.5, ttft, bundle), term(0.5, rate, bundle)];
    let found = share(&[terms(&A, &decode, "a"), terms(&B, &other, "b")]);
    assert!((found - 0.650_3).abs() < 4.0 * (0.65_f64 * 0.35 / DRAWS as f64).sqrt(), "{found}");
    // What rises and falls together within each launch cancels out, unless the two are drawn apart.
    let together = |bundle: &str| vec![term(-0.5, &A, "a"), term(0.5, &A, bundle)];
    let steady = vec![one(-0.5, 100.0), one(0.5, 100.5)];
    assert!(share(&[together("a"), steady.clone()]) < 1e-9, "always just behind");
    assert!(share(&[together("b"), steady]) > 0.2);
}

#[test]
fn few_launches_have_no_share() {
    let pair = |n: usize, factor: f64| {
        let other: Vec<f64> = A[..n].iter().map(|value| value * factor).collect();
        rank::sure(&[vec![term(-1.0, &A[..n], "a")], vec![term(-1.0, &other, "b")]])
    };
    // Of six launches the interval is the range: 98 to 104, and 1.1 times that begins at 107.8.
    assert_eq!(pair(6, 1.1), (Sure::Intervals { launches: 6, ahead: true }, vec![None, None]));
    assert_eq!(pair(6, 1.05).0, Sure::Intervals { launches: 6, ahead: false });
    assert_eq!(pair(5, 2.0), (Sure::Unknown { launches: 5 }, vec![None, None]));
    // Eleven launches against one are one: that one has a spread, which nobody knows.
    assert_eq!(rank::sure(&[vec![term(-1.0, &A, "a")], vec![term(-1.0, &A[..1], "b")]]).0, Sure::Unknown { launches: 1 });
    assert_eq!(rank::sure(&[vec![term(-1.0, &A[..2], "a")]]).0, Sure::Alone);
    // A size has no spread, a soak has one that nobody knows.
    assert_eq!(rank::sure(&[vec![one(-1.0, 2.0)], vec![one(-1.0, 3.0)]]).0, Sure::Exact { equals: 1 });
    assert_eq!(rank::sure(&[vec![one(-1.0, 2.0)], vec![one(-1.0, 2.0)]]).0, Sure::Exact { equals: 2 });
    let soak = |value: f64| vec![Term { exponent: 1.0, sample: Sample::Soak(value), session: 0 }];
    assert_eq!(rank::sure(&[soak(2.0), soak(3.0)]).0, Sure::Unknown { launches: 1 });
    let (bad, good) = rank::ends(&[term(-1.0, &A[..6], "a"), term(1.0, &A[..6], "a")]);
    close(bad, (98.0_f64 / 104.0).ln());
    close(good, (104.0_f64 / 98.0).ln());
}

#[test]
fn the_front_holds_those_that_nobody_beats_in_everything() {
    // The fourth is as good as the first in one and worse in the other; the fifth is worse than the second in both; twins leave each other alone.
    let all = [[3.0, 1.0], [2.0, 2.0], [1.0, 3.0], [3.0, 0.5], [1.5, 1.5], [2.0, 2.0]].map(Vec::from);
    assert_eq!(rank::front(&all), [true, true, true, false, false, true]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whoever gets better in one metric keeps ahead of all that it was ahead of, and whoever is as good in everything is never below.
    #[test]
    fn a_better_candidate_never_ranks_below(
        rows in prop::collection::vec(prop::collection::vec(0.1_f64..1e4, 4), 2..6),
        who in 0_usize..6, what in 0_usize..4, gain in 1.0_f64..3.0, weights in prop::collection::vec(0.01_f64..5.0, 4),
    ) {
        let exponents: Vec<f64> = weights.iter().enumerate().map(|(at, weight)| if at % 2 == 0 { -weight } else { *weight }).collect();
        let scores = |rows: &[Vec<f64>]| {
            let terms: Vec<Vec<Term>> = rows.iter().map(|row| row.iter().zip(&exponents).map(|(v, e)| one(*e, *v)).collect()).collect();
            rank::scores(&terms)
        };
        let place = |scores: &[f64], who: usize| scores.iter().filter(|score| **score > scores[who] * (1.0 + 1e-12)).count();
        let who = who % rows.len();
        let before = scores(&rows);
        prop_assert!(before.iter().all(|score| *score > 0.0 && *score <= 1.0 + 1e-12));
        let mut better = rows.clone();
        better[who][what] *= if exponents[what] < 0.0 { 1.0 / gain } else { gain };
        prop_assert!(place(&scores(&better), who) <= place(&before, who));
        let mut all = rows.clone();
        all.push(better[who].clone());
        let both = scores(&all);
        prop_assert!(both[rows.len()] >= both[who] * (1.0 - 1e-12));
        let signed = |row: &Vec<f64>| -> Vec<f64> { row.iter().zip(&exponents).map(|(v, e)| v * e.signum()).collect() };
        let front = rank::front(&all.iter().map(signed).collect::<Vec<_>>());
        prop_assert!(front.iter().any(|on| *on), "somebody is always on it");
        prop_assert!(gain < 1.001 || !front[who], "one that another beats in one metric and equals in the rest is not");
    }
}
