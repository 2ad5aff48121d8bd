//! Rails of a board, external meters, and the regression.

use super::*;

fn rail(telemetry: &mut Telemetry, name: &str, seconds: u32, watts: &dyn Fn(f64) -> f64) {
    for i in 0..=seconds * 10 {
        let t = f64::from(i) / 10.0;
        telemetry.push((t * 1e9) as u64, "power", name, watts(t));
    }
}

fn by(method: Method, rails: &[String], telemetry: &Telemetry, from: f64, to: f64) -> Result<Measured, Refusal> {
    let asked = Asked { method, rails, ..Asked::default() };
    method::power(telemetry, None, asked, Window::load(from, to), None).power
}

#[test]
fn rails_of_a_board() {
    let mut telemetry = Telemetry::default();
    rail(&mut telemetry, "ina231/system", 40, &|t| 4.0 * sine(t));
    // 2 W over 30 s: three whole periods. A rail has no 120 s of a gauge to wait for.
    let m = by(Method::Auto, &[], &telemetry, 5.0, 35.0).unwrap();
    near(m.energy.joules, 60.0, m.energy.error_j);
    near(m.energy.joules, 60.0, 0.1);
    assert_eq!((m.method.as_str(), m.unit), ("hwmon:ina231", None));
    assert!(matches!(by(Method::Auto, &[], &telemetry, 5.0, 6.5), Err(Refusal::Short { .. })));
    // A processor's rail is a part of the system's.
    rail(&mut telemetry, "ina231/processor", 40, &|t| 1.0 + 0.1 * t.sin());
    near(by(Method::Auto, &[], &telemetry, 5.0, 35.0).unwrap().energy.joules, 60.0, 0.1);
    let both = ["ina231/system".to_owned(), "ina231/processor".to_owned()];
    // 30 J more, and 0.1 x (cos 5 - cos 35).
    near(by(Method::Hwmon, &both, &telemetry, 5.0, 35.0).unwrap().energy.joules, 90.0 + 0.1 * (5.0_f64.cos() - 35.0_f64.cos()), 0.2);
    telemetry.rails.remove("ina231/system");
    rail(&mut telemetry, "ina231/memory", 40, &|t| 0.5 + 0.1 * t.sin());
    let e = by(Method::Auto, &[], &telemetry, 5.0, 35.0).unwrap_err();
    assert!(e.to_string().contains("ina231/memory, ina231/processor"), "{e}");
    assert!(by(Method::Hwmon, &both, &telemetry, 5.0, 35.0).unwrap_err().to_string().contains("no power rail ina231/system"));
}

#[test]
fn a_rail_that_vanishes_is_no_short_window() {
    // A value every 2 s for 8 s of 23 s: 20 periods would be 40 s, but no longer window mends a rail that is gone.
    let mut telemetry = Telemetry::default();
    rail(&mut telemetry, "ina231/system", 8, &|t| 1.0 + (t / 2.0).floor());
    let e = by(Method::Auto, &[], &telemetry, 0.0, 23.0).unwrap_err();
    assert_eq!(e.to_string(), "readings cover 8.0 s of a window of 23.0 s");
}

#[test]
fn the_kernels_copy_of_a_battery_is_no_rail() {
    let mut telemetry = one_battery(&ABI, 160.0, &sine);
    rail(&mut telemetry, "battery/power1", 160, &|t| 4.0 * sine(t));
    assert!(matches!(by(Method::Hwmon, &[], &telemetry, 5.0, 155.0), Err(Refusal::Missing(_))));
    assert_eq!(by(Method::Auto, &[], &telemetry, 5.0, 155.0).unwrap().method, "battery");
}

const PULSES: [(f64, f64); 2] = [(1002.0, 1005.0), (1007.3, 1008.4)];

/// A meter at `rate` a second that began `lead` s before the first pulse; its clock is the device's plus `offset`. 1.5 W idle, 2.5 W more in
/// a pulse, a launch of 5 W from 1020 to 1080 s, a ripple, and noise from a fixed sequence.
fn meter(rate: f64, offset: f64, lead: f64, noise: f64) -> Vec<Point> {
    let mut state = 12345_u64;
    let begin = PULSES[0].0 - lead;
    (0..(rate * 120.0) as u64)
        .map(|i| {
            let t = begin + i as f64 / rate;
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = (state >> 33) as f64 / f64::from(1_u32 << 31) - 0.5;
            let load = if PULSES.iter().any(|p| (p.0..p.1).contains(&t)) {
                2.5
            } else if (1020.0..1080.0).contains(&t) {
                3.5
            } else {
                0.0
            };
            Point { t_s: t + offset, value: 1.5 + load + 0.05 * (t * 40.0).sin() + noise * random }
        })
        .collect()
}

#[test]
fn a_meters_clock_is_found_by_the_pulses() {
    for (rate, offset, lead, noise) in
        [(1000.0, -1000.0, 4.0, 0.2), (100.0, 12.345, 6.0, 1.0), (10.0, 0.77, 5.0, 0.4), (50.0, -977.123, 9.0, 2.0), (4.0, 5.5, 8.0, 0.2)]
    {
        let found = align(&meter(rate, offset, lead, noise), &PULSES, None).unwrap();
        near(found.offset_s, offset, found.error_s);
        assert!(found.error_s <= (1.5 / rate).max(0.05), "{found:?} at {rate} Hz");
        assert!(found.correlation > 0.6, "{found:?}");
    }
}

#[test]
fn a_meter_without_the_pulses_says_so() {
    let late: Vec<Point> = meter(100.0, 0.0, 4.0, 0.2).into_iter().filter(|p| p.t_s > 1010.0).collect();
    assert!(matches!(align(&late, &PULSES, None), Err(MeterError::NotFound { .. })), "{:?}", align(&late, &PULSES, None));
    let flat: Vec<Point> = (0..6000).map(|i| Point { t_s: f64::from(i) / 100.0, value: 1.5 }).collect();
    assert!(matches!(align(&flat, &PULSES, None), Err(MeterError::NotFound { .. })));
    assert_eq!(align(&flat, &[], None), Err(MeterError::NoPulse));
    // The same pulses twice.
    let mut twice = meter(100.0, 0.0, 4.0, 0.2);
    let again: Vec<Point> = twice.iter().filter(|p| p.t_s < 1015.0).map(|p| Point { t_s: p.t_s + 200.0, ..*p }).collect();
    twice.extend(again);
    assert!(matches!(align(&twice, &PULSES, None), Err(MeterError::Ambiguous { .. })));
}

/// A meter whose clock was set while it recorded: seconds since its start, then those of Unix. Every eighth of a second between would be 218 GB of
/// places to try.
#[test]
fn a_meter_whose_clock_was_set() {
    let mut samples = meter(100.0, 12.345, 6.0, 1.0);
    samples.insert(0, Point { t_s: 0.0, value: 1.5 });
    for end_s in [1.7e9, 1e300] {
        samples.push(Point { t_s: end_s, value: 1.5 });
        let found = align(&samples, &PULSES, None).unwrap();
        near(found.offset_s, 12.345, found.error_s);
        assert!(found.error_s <= 0.05, "{found:?}");
    }
    let far: Vec<Point> = [1.0, 1e300].map(|t_s| Point { t_s, value: 1.0 }).into();
    assert!(matches!(align(&far, &PULSES, None), Err(MeterError::NotFound { .. })));
}

#[test]
fn a_meters_energy_through_its_offset() {
    let samples = meter(100.0, 250.25, 5.0, 0.2);
    let clock = Clock::find(&samples, &PULSES, &[]);
    let meter = Meter { samples, clock };
    let power = |telemetry: &Telemetry, asked| method::power(telemetry, Some(&meter), asked, Window::load(1015.0, 1075.0), None).power;
    // 1.5 W x 60 s and 3.5 W x 55 s; the edge at 1020 s is inside, wherever the clock stands within its error.
    let m = power(&Telemetry::default(), Asked::default()).unwrap();
    near(m.energy.joules, 282.5, m.energy.error_j);
    near(m.energy.joules, 282.5, 0.7);
    assert_eq!(m.method, "meter");
    // Beside a charger a meter at the battery's place does not see everything, unless the user says so.
    let mut telemetry = Telemetry::default();
    for t in 1000..1100_u64 {
        telemetry.push(t * 1_000_000_000, "battery", "battery/status", 1.0);
        telemetry.push(t * 1_000_000_000, "battery", "battery/current_now", 5e5);
    }
    assert!(matches!(power(&telemetry, Asked::default()), Err(Refusal::External(_))));
    assert!(power(&telemetry, Asked { measured: true, ..Asked::default() }).is_ok());
    let lost = Meter { clock: Err(MeterError::NoPulse), ..meter.clone() };
    let none = method::power(&Telemetry::default(), Some(&lost), Asked::default(), Window::load(1015.0, 1075.0), None).power;
    assert_eq!(none, Err(Refusal::Meter(MeterError::NoPulse)));
}

/// A clock that runs 2000 ppm fast for an hour and a half: 10.8 s, of which the first pulses alone know nothing.
#[test]
fn a_meters_clock_that_runs_fast() {
    const LAST: [(f64, f64); 2] = [(6400.0, 6401.0), (6402.5, 6404.5)];
    let shown = |t: f64| 40.0 + 1.002 * t;
    let samples: Vec<Point> = (990 * 20..6420 * 20)
        .map(|i| f64::from(i) / 20.0)
        .map(|t| {
            let busy = PULSES.iter().chain(&LAST).any(|p| (p.0..p.1).contains(&t)) || (6000.0..6060.0).contains(&t);
            Point { t_s: shown(t), value: if busy { 5.0 } else { 1.5 } }
        })
        .collect();
    let clock = Clock::find(&samples, &PULSES, &LAST).unwrap();
    near(clock.drift().unwrap(), 0.002, 2e-5);
    near(clock.offset_s(6030.0), shown(6030.0) - 6030.0, clock.error_s(6030.0));
    near(clock.device_s(shown(6030.0)), 6030.0, clock.error_s(6030.0));
    assert!(clock.error_s(6030.0) < 0.15, "{clock:?}");
    let joules = |last: &[(f64, f64)]| {
        let meter = Meter { clock: Clock::find(&samples, &PULSES, last), samples: samples.clone() };
        let window = Window::load(6000.0, 6060.0);
        method::power(&Telemetry::default(), Some(&meter), Asked::default(), window, None).power.unwrap().energy
    };
    // 5 W for 60 s. Without the last pulses it is 10 s beside the truth, and its bound has 5 s of 3.5 W for a clock of which nothing is known.
    let (known, alone) = (joules(&LAST), joules(&[]));
    near(known.joules, 300.0, known.error_j);
    assert!(known.error_j < 1.0, "{known:?}");
    near(alone.error_j, 3.5 * 5.0, 1.0);
    assert_eq!(Clock::find(&samples, &PULSES, &[]).unwrap().drift(), None);
    // Pulses that are in no sample any more tell nothing.
    let died: Vec<Point> = samples.iter().copied().filter(|p| p.t_s < shown(6200.0)).collect();
    assert_eq!(Clock::find(&died, &PULSES, &LAST).unwrap().end, None);
}

#[test]
fn the_csv_of_a_meter() {
    let good = "# Otii\nt_s,w\n0,1.5\n0.5,1.75\n\n1.0 , 2\n1.5,2.2";
    let points = read_meter(good).unwrap();
    // The unfinished last line is dropped.
    assert_eq!(points, [(0.0, 1.5), (0.5, 1.75), (1.0, 2.0)].map(|(t_s, value)| Point { t_s, value }));
    for (text, line) in [
        ("t_s,w\n0,1\n0,2\n", 3),
        ("0,1\nnan,2\n", 2),
        ("0;1\n1;2\n0,1,2\n", 2),
        ("0,1\n1,1,2\n", 2),
        ("t_s,w\nx,y\n", 2),
        ("0,1\n2,1e999\n", 2),
    ] {
        assert!(matches!(read_meter(text), Err(MeterError::Line { line: l, .. }) if l == line), "{text:?} {:?}", read_meter(text));
    }
    for text in ["", "t_s,w\n", "1,2"] {
        assert_eq!(read_meter(text), Err(MeterError::Empty), "{text:?}");
    }
    for end in 0..good.len() {
        let _ = read_meter(&good[..end]);
    }
}

#[test]
fn joules_by_regression() {
    // 0.02 J a prompt token, 0.3 J a generated one, exactly.
    let rows = [(128.0, 32.0), (512.0, 32.0), (128.0, 128.0), (512.0, 128.0)];
    let design: Vec<Vec<f64>> = rows.iter().map(|(p, g)| vec![*p, *g]).collect();
    let y: Vec<f64> = rows.iter().map(|(p, g)| 0.02 * p + 0.3 * g).collect();
    let fit = least_squares(&design, &y).unwrap();
    near(fit.coefficients[0], 0.02, 1e-9);
    near(fit.coefficients[1], 0.3, 1e-9);
    assert_eq!(fit.degrees, 2);
    // By hand: x = (1, 0), (1, 0), (0, 1), (0, 1), y = 1, 3, 5, 9: means 2 and 7, residual sum 2 + 8 = 10, variance 5, error of each
    // sqrt(5 / 2) = 1.58114, t for 2 degrees 4.302653 (R: qt(.975, 2)).
    let unit = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]].map(|r| r.to_vec());
    let fit = least_squares(&unit, &[1.0, 3.0, 5.0, 9.0]).unwrap();
    near(fit.coefficients[0], 2.0, 1e-12);
    near(fit.coefficients[1], 7.0, 1e-12);
    near(fit.errors[0], 1.581_139, 1e-6);
    near(fit.intervals[1].0, 7.0 - 4.302_653 * 1.581_139, 1e-5);
}

#[test]
fn a_design_that_says_nothing_is_refused() {
    let rows = |list: &[(f64, f64)]| list.iter().map(|(p, g)| vec![*p, *g]).collect::<Vec<_>>();
    // Four times as many prompt tokens as generated ones, everywhere.
    let together = rows(&[(128.0, 32.0), (512.0, 128.0), (1024.0, 256.0)]);
    assert!(matches!(least_squares(&together, &[1.0, 2.0, 3.0]), Err(FitError::Degenerate { .. })));
    let nearly = rows(&[(128.0, 32.0), (512.0, 128.1), (1024.0, 256.0)]);
    assert!(matches!(least_squares(&nearly, &[1.0, 2.0, 3.0]), Err(FitError::Degenerate { .. })));
    assert!(matches!(least_squares(&rows(&[(1.0, 2.0), (2.0, 1.0)]), &[1.0, 2.0]), Err(FitError::TooFew { .. })));
    assert!(matches!(least_squares(&[], &[]), Err(FitError::TooFew { .. })));
    assert!(matches!(least_squares(&rows(&[(0.0, 2.0), (0.0, 1.0), (0.0, 3.0)]), &[1.0, 2.0, 3.0]), Err(FitError::Degenerate { .. })));
    assert!(matches!(least_squares(&rows(&[(f64::NAN, 2.0), (2.0, 1.0), (1.0, 3.0)]), &[1.0, 2.0, 3.0]), Err(FitError::NotFinite)));
}
