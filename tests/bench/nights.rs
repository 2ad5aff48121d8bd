//! nights [--quick]: the nightly gate on made-up devices (simulator.rs): false alarms, detection, how often intervals hold the truth, and what a
//! fixed threshold and a t-test without interleaving do at the same values.

mod simulator;

use bench::stats::{checkpoints, interval, log_effect, mean, median, paired_effect, reached, standard_deviation, student};
use simulator::{ASKED, Device, LAUNCHES, Random, USUAL, score};

fn percent(part: usize, of: usize) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (cells, nights, rounds) = if quick { (1, 20, 40) } else { (10, 1_000, 2_000) };
    println!(
        "{cells} cells x {nights} nights, {LAUNCHES} launches a night, 60 nights of history; {:.0} % asked and planted",
        100.0 * ASKED
    );
    println!(
        "{:<34} {:>6} {:>8} {:>8} {:>8} | found in {:>4} {:>5} {:>5} nights | {:>5} needs",
        "", "alarms", "improved", "undec.", "unch.", 1, 2, 3, "MDE"
    );
    let devices = [
        ("nights 0 % apart", Device { between: 0.0, ..USUAL }),
        ("nights 0.3 % apart (usual)", USUAL),
        ("nights 1 % apart", Device { between: 0.01, ..USUAL }),
        ("autocorrelation 0.5", Device { repeats: 0.5, ..USUAL }),
        ("both", Device { between: 0.01, repeats: 0.5, ..USUAL }),
    ];
    for (place, (name, device)) in devices.iter().enumerate() {
        let found = score(device, 11 + place as u64, cells, nights, cells);
        let [improved, unchanged, undecided, regressed] = found.said.map(|said| percent(said, found.nights));
        let [one, two, three] = found.found.map(|n| percent(n, found.planted));
        let target = if place > 1 {
            ""
        } else if regressed < 1.0 && three >= 90.0 {
            "  < 1 %, >= 90 %: met"
        } else {
            "  < 1 %, >= 90 %: MISSED"
        };
        let needs = if found.needed.1 == 0 { "-".to_owned() } else { format!("{:.1}", found.needed.0 as f64 / found.needed.1 as f64) };
        println!(
            "{name:<34} {regressed:>6.2} {improved:>8.2} {undecided:>8.1} {unchanged:>8.1} | {one:>13.1} {two:>5.1} {three:>5.1} %      | {:>4.1} % {needs}{target}",
            100.0 * found.mde / found.nights as f64
        );
    }
    others(rounds);
    side_by_side(rounds);
    coverage(rounds);
}

/// A fixed threshold of 5 %, and a t-test of tonight's launches against last night's.
fn others(rounds: usize) {
    println!("\ntonight against last night, {rounds} nights: false alarms, and a true regression of 2 % found within 3 nights, in %");
    for (name, device) in [("nights 0.3 % apart (usual)", USUAL), ("nights 1 % apart", Device { between: 0.01, ..USUAL })] {
        let mut random = Random::new(5);
        let (mut alarms, mut found) = ([0; 2], [0; 2]);
        for _ in 0..rounds {
            let last = device.session(&mut random, 0.0, LAUNCHES);
            let same = device.session(&mut random, 0.0, LAUNCHES);
            let worse: Vec<_> = (0..3).map(|_| device.session(&mut random, ASKED.ln_1p(), LAUNCHES)).collect();
            for (place, rule) in [threshold, welch].into_iter().enumerate() {
                alarms[place] += usize::from(rule(&last, &same));
                found[place] += usize::from(worse.iter().any(|night| rule(&last, night)));
            }
        }
        for (place, rule) in ["fixed threshold of 5 %", "t-test, p < 0.05"].into_iter().enumerate() {
            println!("{name:<34} {rule:<24} {:>6.2} {:>6.1}", percent(alarms[place], rounds), percent(found[place], rounds));
        }
    }
}

fn threshold(a: &[f64], b: &[f64]) -> bool {
    median(b).zip(median(a)).is_some_and(|(b, a)| b > 1.05 * a)
}

/// Welch's t-test that B is above A, one-sided at half of 5 %.
fn welch(a: &[f64], b: &[f64]) -> bool {
    let side = |values: &[f64]| (mean(values).expect("values"), standard_deviation(values).expect("values").powi(2) / values.len() as f64);
    let ((ma, va), (mb, vb)) = (side(a), side(b));
    let degrees = (va + vb).powi(2) / (va * va / (a.len() - 1) as f64 + vb * vb / (b.len() - 1) as f64);
    (mb - ma) / (va + vb).sqrt() > student(0.975, degrees)
}

/// Twice the same thing on a device that grows hot: all of A and then all of B, or pair by pair.
fn side_by_side(rounds: usize) {
    println!(
        "\nA/B on a device that drifts by 2 % in the session and is throttled by 6 % in one of four, {rounds} sessions: B said to be slower, in %"
    );
    let hot = Device { drift: 0.02, throttled: 0.25, ..USUAL };
    for (name, change) in [("B is the same", 0.0_f64), ("B is 2 % slower", 0.02), ("B is 5 % slower", 0.05)] {
        let mut random = Random::new(6);
        let (mut halves, mut pairs) = (0, 0);
        for _ in 0..rounds {
            let session = hot.session(&mut random, 0.0, 2 * LAUNCHES);
            let b = |value: &f64| value * (1.0 + change);
            let later: Vec<f64> = session[LAUNCHES..].iter().map(b).collect();
            halves += usize::from(welch(&session[..LAUNCHES], &later));
            // Either is first in turn.
            let paired: Vec<(f64, f64)> = session
                .chunks_exact(2)
                .enumerate()
                .map(|(i, pair)| if i % 2 == 0 { (pair[0], b(&pair[1])) } else { (pair[1], b(&pair[0])) })
                .collect();
            pairs += usize::from(paired_effect(&paired).and_then(|found| found.interval).is_some_and(|(lo, _)| lo > 0.0));
        }
        println!(
            "{name:<34} t-test, one after the other {:>5.1}   interleaved, paired {:>5.1}",
            percent(halves, rounds),
            percent(pairs, rounds)
        );
    }
}

/// How often 95 % intervals hold the truth.
fn coverage(rounds: usize) {
    println!(
        "\n95 % intervals that hold the truth, in % of {rounds} (93 to 97 is right; under 10 values order statistics can only cover in steps)"
    );
    let quiet = Device { between: 0.0, outliers: 0.0, ..USUAL };
    let held = |interval: Option<(f64, f64)>, truth: f64| interval.is_some_and(|(lo, hi)| lo <= truth && truth <= hi);
    for n in [6, 8, 10, 15, 20, 40] {
        let mut random = Random::new(7);
        let (mut of_median, mut of_effect, mut of_pairs) = (0, 0, 0);
        for _ in 0..rounds {
            let (a, b) = (quiet.session(&mut random, 0.0, n), quiet.session(&mut random, 0.0, n));
            of_median += usize::from(held(interval(&a, 1).map(|found| (found.lo, found.hi)), 100.0));
            of_effect += usize::from(held(log_effect(&a, &b).and_then(|found| found.interval), 0.0));
            let pairs: Vec<(f64, f64)> = a.into_iter().zip(b).collect();
            of_pairs += usize::from(held(paired_effect(&pairs).and_then(|found| found.interval), 0.0));
        }
        let [of_median, of_effect, of_pairs] = [of_median, of_effect, of_pairs].map(|n| percent(n, rounds));
        println!("n = {n:<30} median {of_median:>5.1}   effect {of_effect:>5.1}   paired {of_pairs:>5.1}");
    }
    for (min, max) in [(5, 20), (10, 40)] {
        for noise in [0.01, 0.02, 0.03, 0.04] {
            let device = Device { noise, ..quiet };
            let mut random = Random::new(8);
            let looks = checkpoints(min, max);
            let (mut hits, mut launches) = (0, 0);
            for _ in 0..rounds {
                let all = device.session(&mut random, 0.0, max);
                let stop = looks.iter().enumerate().find(|(look, n)| reached(&all[..**n], look + 1, looks.len(), 0.02));
                let n = stop.map_or(max, |(_, n)| *n);
                launches += n;
                hits += usize::from(held(interval(&all[..n], 1).map(|found| (found.lo, found.hi)), 100.0));
            }
            let name = format!("until-ci 2 %, {min} to {max}, noise {:.0} %", 100.0 * noise);
            println!("{name:<34} median {:>5.1}   after {:.1} launches", percent(hits, rounds), launches as f64 / rounds as f64);
        }
    }
}
