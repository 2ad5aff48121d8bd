//! Synthetic devices with a known end.

use std::collections::BTreeMap;

use super::*;
use crate::{device::zones::Domain, scenario::Policy};

fn wanted(bands: &[(&str, f64, f64)]) -> Settle {
    Settle {
        timeout_ms: 600_000,
        poll_ms: 3000,
        policy: Policy::Mark,
        battery_pct: None,
        charging: None,
        screen: None,
        free_mb: None,
        quiet_cpu_pct: None,
        contention: false,
        bands: bands.iter().map(|(zone, low_c, high_c)| Band { zone: (*zone).to_owned(), low_c: *low_c, high_c: *high_c }).collect(),
    }
}

fn skin(c: f64) -> State {
    State { domains: BTreeMap::from([(Domain::Skin, c)]), ..State::default() }
}

/// Waits with a look every 3 s until there is an end; when it came, and the decision.
fn wait(wanted: &Settle, of: impl Fn(f64) -> State) -> (f64, Decision) {
    let mut looks = Vec::new();
    for i in 0..1000 {
        let at_s = f64::from(i) * 3.0;
        looks.push(Look { at_s, state: of(at_s) });
        match decide(wanted, &looks) {
            Decision::Wait(_) => {}
            end => return (at_s, end),
        }
    }
    panic!("never ends");
}

/// Newton's law of cooling.
fn cooling(from: f64, ambient: f64, constant_s: f64) -> impl Fn(f64) -> State {
    move |t| skin(ambient + (from - ambient) * (-t / constant_s).exp())
}

#[test]
fn a_device_that_cools_down_is_waited_for() {
    // 45 to 36 C in air of 25 C with 120 s: 120 ln(20/11) = 71.7 s, the next look is at 72 s.
    let (at, end) = wait(&wanted(&[("skin", 28.0, 36.0)]), cooling(45.0, 25.0, 120.0));
    assert_eq!((at, end), (72.0, Decision::Ready));
    // A big one takes 300 ln(20/9) = 239.6 s, longer than the stretch in which trends are looked for.
    let (at, end) = wait(&wanted(&[("skin", 28.0, 34.0)]), cooling(45.0, 25.0, 300.0));
    assert_eq!((at, end), (240.0, Decision::Ready));
    // Nothing is wrong with whole degrees either.
    let smooth = cooling(45.0, 25.0, 300.0);
    let (at, end) = wait(&wanted(&[("skin", 28.0, 34.0)]), |t| skin(smooth(t).domains[&Domain::Skin].round()));
    assert!(end == Decision::Ready && (215.0..245.0).contains(&at), "{at} {end:?}");
}

#[test]
fn a_band_that_this_ambient_does_not_reach_is_told_early() {
    let (at, end) = wait(&wanted(&[("skin", 20.0, 30.0)]), cooling(45.0, 35.0, 60.0));
    let Decision::GiveUp(lacks, why) = end else { panic!("{end:?}") };
    // The curve's own limit is 35 C.
    assert!(at < 150.0 && why.starts_with("skin goes to 35.0 C and no further: the ambient is too warm"), "{at} {why}");
    assert!(lacks[0].words.starts_with("skin 3") && lacks[0].words.ends_with("wanted 20 to 30 C"), "{lacks:?}");
}

#[test]
fn too_cold_counts_as_well() {
    let (at, end) = wait(&wanted(&[("skin", 28.0, 36.0)]), |_| skin(21.0));
    let Decision::GiveUp(lacks, why) = end else { panic!("{end:?}") };
    assert!(at < 150.0 && why == "skin stays at 21.0 C", "{at} {why}");
    assert_eq!(lacks[0].words, "skin 21.0 C, colder than the wanted 28 to 36 C");
    // One that was carried in from the cold warms up to the room: 21 + 9 (1 - e^(-t/100)) is 28 after 100 ln(9/2) = 150.4 s.
    let (at, end) = wait(&wanted(&[("skin", 28.0, 36.0)]), cooling(21.0, 30.0, 100.0));
    assert_eq!((at, end), (153.0, Decision::Ready));
}

#[test]
fn what_moves_away_or_never_comes_ends() {
    let (_, end) = wait(&wanted(&[("skin", 28.0, 36.0)]), |t| skin(38.0 + t / 60.0));
    assert!(matches!(&end, Decision::GiveUp(_, why) if why == "skin moves away from its band"), "{end:?}");
    // Falling without an end in sight: the time-out decides.
    let mut slow = wanted(&[("skin", 28.0, 36.0)]);
    slow.timeout_ms = 200_000;
    let (at, end) = wait(&slow, |t| skin(60.0 - t / 20.0));
    assert!((at - 201.0).abs() < 1e-9 && matches!(&end, Decision::GiveUp(_, why) if why == "not within 200 s"), "{at} {end:?}");
}

#[test]
fn a_single_absurd_reading_gives_nothing_up() {
    // 45 to 36 C in air of 25 C with 120 s takes 72 s (above); once, at any look of them, the zone says 140 C or -40 C.
    let smooth = cooling(45.0, 25.0, 120.0);
    let band = wanted(&[("skin", 28.0, 36.0)]);
    for absurd in [140.0, -40.0] {
        for n in 0..24 {
            let (at, end) = wait(&band, |t| if (t - f64::from(n) * 3.0).abs() < 0.1 { skin(absurd) } else { smooth(t) });
            assert_eq!((at, end), (72.0, Decision::Ready), "{absurd} C in look {n}");
        }
    }
    // A big body cools for longer than a trend needs: 140 C in its last third is no trend away.
    let slow = cooling(45.0, 25.0, 300.0);
    for n in 1..80 {
        let (at, end) =
            wait(&wanted(&[("skin", 28.0, 34.0)]), |t| if (t - f64::from(n) * 3.0).abs() < 0.1 { skin(140.0) } else { slow(t) });
        assert_eq!((at, end), (240.0, Decision::Ready), "look {n}");
    }
    // At the very end of the time, or in the only look: the next one decides.
    let mut short = wanted(&[("skin", 28.0, 36.0)]);
    short.timeout_ms = 30_000;
    assert_eq!(
        wait(&short, |t| skin(if t < 30.0 {
            37.0
        } else if t < 33.0 {
            140.0
        } else {
            35.0
        })),
        (33.0, Decision::Ready)
    );
    let (at, end) = wait(&short, |t| skin(if t < 30.0 { 37.0 } else { 140.0 }));
    assert!(
        (at - 33.0).abs() < 1e-9 && matches!(&end, Decision::GiveUp(lacks, _) if lacks[0].words.starts_with("skin 140.0 C")),
        "two are believed: {end:?}"
    );
    short.timeout_ms = 0;
    assert_eq!(wait(&short, |t| skin(if t < 3.0 { 140.0 } else { 35.0 })), (3.0, Decision::Ready));
}

#[test]
fn what_the_device_does_not_tell_is_not_waited_for() {
    let (at, end) = wait(&wanted(&[("skin", 28.0, 36.0)]), |_| State::default());
    assert!((at - 6.0).abs() < 1e-9 && matches!(&end, Decision::GiveUp(lacks, _) if lacks[0].unseen), "{at} {end:?}");
    // Missing in one look only: it goes on.
    let (_, end) = wait(&wanted(&[("skin", 28.0, 36.0)]), |t| if t == 0.0 { State::default() } else { skin(30.0) });
    assert_eq!(end, Decision::Ready);
    // A zone by its own name.
    let state = State { zones: BTreeMap::from([("sys-therm-3".to_owned(), 40.0)]), ..State::default() };
    assert_eq!(wait(&wanted(&[("sys-therm-3", 20.0, 41.0)]), |_| state.clone()), (0.0, Decision::Ready));
}

#[test]
fn everything_else_that_can_be_asked_for() {
    let asked = Settle {
        battery_pct: Some(30.0),
        charging: Some(false),
        screen: Some(true),
        free_mb: Some(4000.0),
        quiet_cpu_pct: Some(20.0),
        contention: true,
        ..wanted(&[])
    };
    let good = State {
        battery_pct: Some(31.0),
        charging: Some(false),
        screen: Some(true),
        free_mb: Some(4001.0),
        cpu_pct: Some(20.0),
        contenders: Some(Vec::new()),
        ..State::default()
    };
    assert!(lacks(&asked, &good).is_empty());
    // Nobody to be seen is nothing to wait for.
    assert!(lacks(&asked, &State { contenders: None, ..good.clone() }).is_empty());
    let bad = State {
        battery_pct: Some(29.0),
        charging: Some(true),
        screen: Some(false),
        free_mb: Some(3999.0),
        cpu_pct: Some(21.0),
        contenders: Some(vec!["camera: x".to_owned()]),
        ..State::default()
    };
    let words: Vec<String> = lacks(&asked, &bad).into_iter().map(|l| l.words).collect();
    assert_eq!(
        words,
        [
            "battery 29 %, wanted 30 % and more",
            "is charging",
            "the screen is off",
            "3999 MB of memory available, wanted 4000 MB and more",
            "CPU 21 % busy, wanted 20 % at most",
            "in use by camera: x",
        ]
    );
    // A battery that is not being charged never gets there.
    let low = State { battery_pct: Some(29.0), ..good };
    let (at, end) = wait(&asked, |_| low.clone());
    assert!((at - 0.0).abs() < 1e-9 && matches!(&end, Decision::GiveUp(_, why) if why == "the battery is not charging"), "{end:?}");
}

#[test]
fn one_reading_far_below_the_others_is_no_cool_device() {
    // 80 C, and once 30 C. Cooled down it is when two looks say so.
    let (at, end) = wait(&wanted(&[("skin", 28.0, 36.0)]), |t| skin(if (t - 3.0).abs() < 0.1 { 30.0 } else { 80.0 }));
    assert!(matches!(&end, Decision::GiveUp(_, why) if why == "skin stays at 80.0 C"), "{at} {end:?}");
    let (at, end) = wait(&wanted(&[("skin", 28.0, 36.0)]), |t| skin(if t >= 3.0 { 30.0 } else { 80.0 }));
    assert_eq!((at, end), (6.0, Decision::Ready));
    // The first look has none before it.
    assert_eq!(wait(&wanted(&[("skin", 28.0, 36.0)]), |_| skin(30.0)), (0.0, Decision::Ready));
}
