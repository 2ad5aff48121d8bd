//! Quirks of fuel gauges.

use super::*;

#[test]
fn a_sine_gives_its_integral() {
    // 4 V x 0.5 A x 150 s, the sine's 15 whole periods add nothing.
    let m = measured(&one_battery(&ABI, 160.0, &sine), 5.0, 155.0).unwrap();
    near(m.energy.joules, 300.0, m.energy.error_j);
    // The bound is no excuse: the trapezoids of a sine are far better than it.
    near(m.energy.joules, 300.0, 1.0);
    assert!(m.energy.error_j < 10.0, "{}", m.energy.error_j);
    near(m.energy.peak_w, 2.8, 0.01);
    near(m.energy.avg_w, 2.0, 0.01);
    near(1.0 / m.energy.period_s, 4.0, 0.05);
    assert_eq!(m.method, "battery");
    // Part of a period: W over [0, 122.5] is 4 (0.5 x 122.5 + 0.2 x 10 / 2 pi (1 - cos(2 pi 12.25))) = 245 + 4 x 0.31831.
    let m = measured(&one_battery(&ABI, 160.0, &sine), 0.0, 122.5).unwrap();
    near(m.energy.joules, 246.273, m.energy.error_j);
    near(m.energy.joules, 246.273, 0.6);
}

/// 0.3 A, from 40 s 1.1 A, from 100 s 0.5 A; a ripple of 1 mA is what real gauges show.
fn steps(t: f64) -> f64 {
    let level = if t < 40.0 {
        0.3
    } else if t < 100.0 {
        1.1
    } else {
        0.5
    };
    level + 0.001 * (t * 7.0).sin()
}

#[test]
fn steps_give_their_rectangles() {
    // 4 V x (0.3 x 40 + 1.1 x 60 + 0.5 x 60) = 432 J; the ripple adds less than 4 x 0.001 x 2 / 7 J.
    for update_s in [0.25, 1.0, 4.0] {
        let m = measured(&one_battery(&Gauge { update_s, ..ABI }, 170.0, &steps), 0.0, 160.0).unwrap();
        near(m.energy.joules, 432.0, m.energy.error_j + 0.01);
        // One update's worth of the steps (0.8 + 0.6 A), not more.
        near(m.energy.joules, 432.0, 4.0 * 1.4 * update_s);
        near(m.energy.period_s, update_s, 0.11);
        near(m.energy.peak_w, 4.4, 0.01);
    }
}

#[test]
fn a_gauge_that_really_repeats_itself_is_no_ramp() {
    // No ripple: three values in 160 s. Every 5 s a blip tells the period.
    let level = |t: f64| (if t < 80.0 { 0.4 } else { 0.8 }) + if (t / 5.0).floor() as i64 % 2 == 0 && t < 60.0 { 0.01 } else { 0.0 };
    let m = measured(&one_battery(&Gauge { update_s: 5.0, ..ABI }, 165.0, &level), 0.0, 160.0);
    // From 85 s to the end nothing changes: that is longer than ten of its periods and than 35 s.
    assert!(matches!(m, Err(Refusal::Stuck { .. })), "{m:?}");
    // Here it repeats itself for 30 s at most: those values were measured again, and there is no ramp of 20 or 30 s.
    let blip = |t: f64| if (t / 5.0).floor() as i64 % 2 == 0 && !(60.0..110.0).contains(&t) { 0.01 } else { 0.0 };
    let level = |t: f64| (if t < 80.0 { 0.4 } else { 0.8 }) + blip(t);
    let m = measured(&one_battery(&Gauge { update_s: 5.0, ..ABI }, 165.0, &level), 0.0, 150.0).unwrap();
    // 4 V x (0.4 x 80 + 0.8 x 70 + 0.01 x (30 + 20)); at most one update of the step.
    near(m.energy.joules, 354.0, m.energy.error_j);
    near(m.energy.joules, 354.0, 4.0 * 0.4 * 5.0);
}

#[test]
fn milliamperes_of_a_samsung() {
    let telemetry = one_battery(&Gauge { scale: 1e3, ..ABI }, 160.0, &sine);
    let m = measured(&telemetry, 5.0, 155.0).unwrap();
    near(m.energy.joules, 300.0, m.energy.error_j);
    near(m.energy.joules, 300.0, 1.0);
    assert_eq!(
        (m.current, m.unit.as_deref()),
        (Some(CurrentUnit::Milliampere), Some("current mA by size and charge counter; voltage uV by size"))
    );
}

#[test]
fn any_sign_while_discharging() {
    for scale in [-1e6, 1e6] {
        let m = measured(&one_battery(&Gauge { scale, ..ABI }, 160.0, &sine), 5.0, 155.0).unwrap();
        near(m.energy.joules, 300.0, 1.0);
    }
    // Signs that change under way are a charger that comes and goes.
    let charger = |t: f64| if (t / 20.0).floor() as i64 % 3 == 0 { -sine(t) } else { sine(t) };
    let e = measured(&one_battery(&ABI, 160.0, &charger), 5.0, 155.0).unwrap_err();
    assert!(e.to_string().contains("both signs"), "{e}");
}

#[test]
fn volts_and_millivolts() {
    for (factor, unit) in [(1e-6, "V"), (1e-3, "mV"), (1.0, "uV")] {
        let mut telemetry = one_battery(&ABI, 160.0, &sine);
        telemetry.batteries.get_mut("battery").unwrap().voltage.iter_mut().for_each(|p| p.value *= factor);
        let m = measured(&telemetry, 5.0, 155.0).unwrap();
        near(m.energy.joules, 300.0, 1.0);
        assert!(m.unit.unwrap().contains(&format!("voltage {unit} by size")));
    }
    let mut telemetry = one_battery(&ABI, 160.0, &sine);
    telemetry.batteries.get_mut("battery").unwrap().voltage.iter_mut().for_each(|p| p.value = 80.0);
    assert!(matches!(measured(&telemetry, 5.0, 155.0), Err(Refusal::Implausible(_))));
    telemetry.batteries.get_mut("battery").unwrap().voltage.clear();
    assert!(measured(&telemetry, 5.0, 155.0).unwrap_err().to_string().contains("no battery voltage"));
}

#[test]
fn four_second_gauge_polled_ten_times_a_second() {
    let m = measured(&one_battery(&Gauge { update_s: 4.0, ..ABI }, 200.0, &sine), 10.0, 190.0).unwrap();
    // 4 V x 0.5 A x 180 s.
    near(m.energy.joules, 360.0, m.energy.error_j);
    near(m.energy.period_s, 4.0, 0.11);
    assert!((44..=46).contains(&m.energy.updates), "{}", m.energy.updates);
}

#[test]
fn the_window_of_rule_r15() {
    let e = measured(&one_battery(&ABI, 160.0, &sine), 5.0, 124.0).unwrap_err();
    assert!(e.to_string().starts_with("window of 119.0 s, needed 120 s"), "{e}");
    // 20 updates of 10 s.
    let slow = one_battery(&Gauge { update_s: 10.0, ..ABI }, 260.0, &|t| sine(t * 0.77));
    let e = measured(&slow, 5.0, 190.0).unwrap_err();
    assert!(e.to_string().starts_with("window of 185.0 s, needed 200 s"), "{e}");
    assert!(measured(&slow, 5.0, 210.0).is_ok());
    assert!((shortest_window_s(0.25) - 120.0).abs() < 1e-9 && (shortest_window_s(30.0) - 600.0).abs() < 1e-9);
}

#[test]
fn a_stuck_gauge_is_no_gauge() {
    // It never changes.
    let e = measured(&one_battery(&ABI, 160.0, &|_| 0.5), 5.0, 155.0).unwrap_err();
    assert!(matches!(e, Refusal::Stuck { .. }), "{e}");
    // It stops following its load after 60 s.
    let e = measured(&one_battery(&ABI, 160.0, &|t| sine(t.min(60.0))), 5.0, 155.0).unwrap_err();
    assert!(matches!(e, Refusal::Stuck { gap_s, .. } if (94.0..96.0).contains(&gap_s)), "{e}");
}

#[test]
fn a_device_that_slept() {
    let mut telemetry = one_battery(&ABI, 160.0, &sine);
    for t in 0..160 {
        // 30 s of sleep at 70 s.
        telemetry.push(t * 1_000_000_000, "clock", "suspended_ms", if t < 70 { 500.0 } else { 30_500.0 });
    }
    assert_eq!(measured(&telemetry, 5.0, 155.0).unwrap_err(), Refusal::Suspended { ms: 30_000.0 });
    // What was before the window is no matter of it: 120 s without one need more trace.
    telemetry.suspended_ms.iter_mut().for_each(|p| p.value = if p.t_s < 3.0 { 0.0 } else { 30_000.4 });
    assert!(measured(&telemetry, 5.0, 155.0).is_ok());
    // Under 100 ms is the reading of two clocks.
    telemetry.suspended_ms.iter_mut().for_each(|p| p.value = if p.t_s < 80.0 { 0.0 } else { 99.0 });
    assert!(measured(&telemetry, 5.0, 155.0).is_ok());
}

#[test]
fn external_power_is_refused() {
    let good = one_battery(&ABI, 160.0, &sine);
    let mut usb = good.clone();
    for t in 0..160 {
        usb.push(t * 1_000_000_000, "battery", "usb/online", if t == 80 { 1.0 } else { 0.0 });
    }
    let e = measured(&usb, 5.0, 155.0).unwrap_err();
    assert!(e.to_string().starts_with("on external power (usb is online)"), "{e}");
    let mut charging = good.clone();
    charging.batteries.get_mut("battery").unwrap().status.iter_mut().filter(|p| p.t_s < 20.0).for_each(|p| p.value = 1.0);
    let report = method::power(&charging, None, Asked::default(), Window::load(5.0, 155.0), None);
    assert_eq!(report.charge_state.as_deref(), Some("charging>discharging"));
    assert!(report.power.unwrap_err().to_string().contains("battery is charging"));
    // The user says that the supply is what is read: a battery replaced by a lab supply, say.
    let asked = Asked { measured: true, ..Asked::default() };
    let m = method::power(&charging, None, asked, Window::load(5.0, 155.0), None).power.unwrap();
    near(m.energy.joules, 300.0, 1.0);
    // Nobody says anything.
    let mut silent = good;
    silent.batteries.get_mut("battery").unwrap().status.clear();
    assert!(matches!(measured(&silent, 5.0, 155.0), Err(Refusal::External(_))));
}

#[test]
fn size_and_charge_counter_have_to_agree() {
    // 1 A by the current; the counter falls a tenth as fast.
    let mut telemetry = one_battery(&ABI, 160.0, &|t| 2.0 * sine(t));
    let counter = &mut telemetry.batteries.get_mut("battery").unwrap().charge;
    for p in counter.iter_mut() {
        p.value = 4_000_000.0 - (4_000_000.0 - p.value) / 10.0;
    }
    let e = measured(&telemetry, 5.0, 155.0).unwrap_err();
    assert!(matches!(&e, Refusal::Contradiction(_)), "{e}");
    // It rises.
    let counter = &mut telemetry.batteries.get_mut("battery").unwrap().charge;
    for p in counter.iter_mut() {
        p.value = 8_000_000.0 - p.value;
    }
    assert!(measured(&telemetry, 5.0, 155.0).unwrap_err().to_string().contains("rises"));
    // Without a counter the size has to do, and the unit says so.
    telemetry.batteries.get_mut("battery").unwrap().charge.clear();
    let m = measured(&telemetry, 5.0, 155.0).unwrap();
    assert_eq!(m.unit.as_deref(), Some("current uA by size; voltage uV by size"));
    assert_eq!(m.percent_j, None);
}

#[test]
fn two_batteries_are_added_and_two_names_of_one_are_not() {
    let mut telemetry = one_battery(&ABI, 160.0, &sine);
    battery(&mut telemetry, "second", &Gauge { update_s: 1.0, poll_s: 0.1, scale: 1e6 }, 160.0, &|t| 0.25 + 0.01 * (t * 3.0).sin());
    // 2 W and 1 W over 150 s; 0.01 x 4 / 3 x 2 J at most of the ripple.
    let m = measured(&telemetry, 5.0, 155.0).unwrap();
    near(m.energy.joules, 450.0, m.energy.error_j);
    near(m.energy.joules, 450.0, 1.5);
    let mut telemetry = one_battery(&ABI, 160.0, &sine);
    battery(&mut telemetry, "bms", &ABI, 160.0, &sine);
    near(measured(&telemetry, 5.0, 155.0).unwrap().energy.joules, 300.0, 1.0);
    // One that rests while the other gives.
    let mut telemetry = one_battery(&ABI, 160.0, &sine);
    battery(&mut telemetry, "BAT1", &ABI, 160.0, &|_| 0.0);
    telemetry.batteries.get_mut("BAT1").unwrap().status.iter_mut().for_each(|p| p.value = 3.0);
    near(measured(&telemetry, 5.0, 155.0).unwrap().energy.joules, 300.0, 1.0);
    telemetry.batteries.get_mut("BAT1").unwrap().status.iter_mut().for_each(|p| p.value = 1.0);
    assert!(measured(&telemetry, 5.0, 155.0).unwrap_err().to_string().contains("BAT1 is charging"));
}

#[test]
fn readings_have_to_cover_the_window() {
    let mut telemetry = one_battery(&ABI, 160.0, &sine);
    assert!(matches!(measured(&telemetry, 5.0, 175.0), Err(Refusal::Uncovered { .. })));
    let supply = telemetry.batteries.get_mut("battery").unwrap();
    supply.current.retain(|p| !(60.0..80.0).contains(&p.t_s));
    assert!(matches!(measured(&telemetry, 5.0, 155.0), Err(Refusal::Uncovered { .. })));
    assert!(matches!(measured(&Telemetry::default(), 0.0, 150.0), Err(Refusal::Missing(_))));
}

#[test]
fn a_timeline_of_thinned_out_readings() {
    let mut telemetry = one_battery(&Gauge { update_s: 2.0, ..ABI }, 160.0, &sine);
    // As in a soak: changes alone.
    let supply = telemetry.batteries.get_mut("battery").unwrap();
    for list in [&mut supply.current, &mut supply.voltage, &mut supply.status] {
        list.dedup_by(|b, a| b.value.to_bits() == a.value.to_bits());
    }
    let found = series(&telemetry, Asked::default(), (10.0, 20.0)).unwrap();
    // 10, 12, ... 20 s: 4 V x (0.5 + 0.2 sin(2 pi t / 10)) A; at 12 s sin(2 pi 0.2) = 0.95106.
    assert_eq!(found.len(), 6);
    assert_eq!(found[1].0, 12_000_000_000);
    near(found[1].1, 2.0 + 0.8 * 0.951_06, 1e-4);
    telemetry.batteries.get_mut("battery").unwrap().status.iter_mut().for_each(|p| p.value = 1.0);
    assert!(matches!(series(&telemetry, Asked::default(), (10.0, 20.0)), Err(Refusal::External(_))));
}

#[test]
fn repeats_stand_and_are_no_samples() {
    let telemetry = one_battery(&Gauge { update_s: 2.0, ..ABI }, 160.0, &sine);
    let asked = Asked::default();
    let (samples, all) = (series(&telemetry, asked, (10.0, 20.0)).unwrap(), standing(&telemetry, asked, (10.0, 20.0)).unwrap());
    assert!(samples.len() == 6 && all.len() > 6 && samples.iter().all(|s| all.contains(s)), "{} of {}", samples.len(), all.len());
    // Between two samples the value of the first one stands.
    assert!(all.iter().filter(|(t, _)| (12_000_000_000..14_000_000_000).contains(t)).all(|(_, w)| (w - samples[1].1).abs() < 1e-9));
    // Who asks for a meter gets no battery's watts in its place.
    let meter = Asked { method: Method::Meter, ..asked };
    assert!(matches!(standing(&telemetry, meter, (10.0, 20.0)), Err(Refusal::Missing(_))));
}
