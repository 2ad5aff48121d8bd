//! `[settle]`, `[environment]` and `[pin]`.

use super::*;
use crate::scenario::{Assumptions, Band, Environment, Pin, Policy, Settle, estimate};

fn with_sections(sections: &str) -> String {
    format!("{GOOD}{sections}\n")
}

/// The good scenario, on a phone.
fn on_a_phone(sections: &str) -> String {
    format!("{}{sections}\n", GOOD.replace("local = true", "serial = \"R58\""))
}

#[test]
fn everything_that_can_be_waited_for() {
    let text = with_sections(
        "[settle]\ntimeout = \"10m\"\npolicy = \"abort\"\npoll = \"5s\"\nbattery = \"30%\"\ncharging = \"no\"\nscreen = \"on\"\nfree-memory = \"4GB\"\n\
         quiet-cpu = \"20%\"\ncontention = true\n[settle.zones]\nskin = [\"28C\", \"36.5 C\"]\nsys-therm-3 = [\"-5C\", \"60C\"]\n\
         [environment]\nambient = \"22C\"\nsupply = \"bench supply 4.2 V\"\ncase = \"none\"",
    );
    let scenario = check(&text).expect("good");
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    let band = |zone: &str, low_c, high_c| Band { zone: zone.to_owned(), low_c, high_c };
    assert_eq!(
        scenario.settle,
        Some(Settle {
            timeout_ms: 600_000,
            poll_ms: 5000,
            policy: Policy::Abort,
            battery_pct: Some(30.0),
            charging: Some(false),
            screen: Some(true),
            free_mb: Some(4000.0),
            quiet_cpu_pct: Some(20.0),
            contention: true,
            bands: vec![band("skin", 28.0, 36.5), band("sys-therm-3", -5.0, 60.0)],
        })
    );
    let text = |s: &str| Some(s.to_owned());
    let environment = Environment { ambient_c: Some(22.0), supply: text("bench supply 4.2 V"), case: text("none") };
    assert_eq!(scenario.environment, environment);
}

#[test]
fn what_is_left_out_is_not_waited_for() {
    let scenario = check(&with_sections("[settle]")).expect("good");
    let settle = scenario.settle.unwrap();
    assert_eq!((settle.timeout_ms, settle.policy, settle.contention), (300_000, Policy::Mark, false));
    assert_eq!((settle.battery_pct, settle.charging, settle.screen, settle.bands.len()), (None, None, None, 0));
    let plain = check(GOOD).expect("good");
    assert_eq!((plain.settle, plain.environment, plain.pins), (None, Environment::default(), Vec::new()));
}

#[test]
fn words_for_what_can_not_be_meant() {
    let settle = |line: &str| with_sections(&format!("[settle]\n{line}"));
    let cases = [
        (settle("poll = \"10m\""), "16:8 `poll` is longer than `timeout` / the device would be looked at once"),
        (settle("policy = \"wait\""), "16:10 `wait` is not a value of `policy` / known: skip, mark, abort"),
        (settle("charging = \"maybe\""), "16:12 `maybe` is not a value of `charging` / known: yes, no, any"),
        (settle("free-memory = \"much\""), "16:15 `much` is not an amount of memory / write for instance \"4000MB\" or \"4GB\""),
        (settle("zones = { skin = [\"36C\"] }"), "16:18 a band has two ends, not 1 / lowest and highest, for instance [\"28C\", \"36C\"]"),
        (
            settle("zones = { skin = [\"82F\", \"97F\"] }"),
            "16:19 `82F` is not a temperature / write for instance \"36C\"; it lies between -40C and 125C",
        ),
        (settle("zones = { skin = [\"36C\", \"28C\"] }"), "16:18 the band is empty: its lowest is not below its highest temperature / -"),
        (
            with_sections("[environment]\nambient = \"warm\""),
            "16:11 `warm` is not a temperature / write for instance \"36C\"; it lies between -40C and 125C",
        ),
        (with_sections("[environment]\ncase = \"\""), "16:8 `` is not a few words / one line of up to 80 characters"),
    ];
    for (text, expected) in cases {
        assert_eq!(only(&text), expected);
    }
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let warning = |text: &str| check(text).expect("good").warnings.to_string();
    let skn = warning(&with_sections("[settle.zones]\nskni = [\"28C\", \"36C\"]"));
    assert!(skn.contains("`skni` is no part of a device") && skn.contains("did you mean `skin`?"), "{skn}");
    let hot = warning(&with_sections("[settle.zones]\nskin = [\"28C\", \"36C\"]\n[environment]\nambient = \"37C\""));
    assert!(hot.contains("air of 37C does not get down to 36C"), "{hot}");
}

#[test]
fn pins_in_the_devices_words() {
    let scenario = check(&on_a_phone("[pin]\nstay-on = \"on\"\nfixed-performance = \"on\"\nscreen-timeout = \"30m\"")).expect("good");
    let pin = |name: &str, value: &str| Pin { name: name.to_owned(), value: value.to_owned() };
    // In the order of the list, whatever the file's.
    assert_eq!(scenario.pins, [pin("fixed-performance", "true"), pin("screen-timeout", "1800000"), pin("stay-on", "15")]);
    assert_eq!(only(&on_a_phone("[pin]\nstay-onn = \"on\"")), "16:1 unknown pin `stay-onn` / did you mean `stay-on`?");
    assert_eq!(only(&on_a_phone("[pin]\nstay-on = \"perhaps\"")), "16:11 `perhaps` is no value of `stay-on` / write \"on\" or \"off\"");
    let here = only(&with_sections("[pin]\ngovernor = \"performance\""));
    assert!(here.starts_with("16:1 `governor` can't be pinned on this computer / "), "{here}");
}

#[test]
fn the_longest_wait_is_in_the_plan() {
    let worst = |text: &str| {
        let scenario = check(text).expect("good");
        let plan = scenario.plan(&BACKENDS, &crate::device::local_facts(57, 75));
        estimate(&plan, &BACKENDS, &Assumptions::default()).worst.as_secs()
    };
    // Three blocks of one launch a cell, each with a wait of ten minutes at most.
    assert_eq!(worst(&with_sections("[settle]\ntimeout = \"10m\"")) - worst(GOOD), 3 * 600);
}

#[test]
fn idle_baselines_are_in_the_plan() {
    let of = |text: &str| {
        let plan = check(text).expect("good").plan(&BACKENDS, &crate::device::local_facts(57, 75));
        let estimate = estimate(&plan, &BACKENDS, &Assumptions::default());
        (estimate.expected.as_secs_f64(), estimate.cells)
    };
    let (with, cells) = of(&with_sections("[power]\nbaseline = \"2m\""));
    let (without, _) = of(&with_sections("[power]\nbaseline = \"off\""));
    // One without a model, and one of each cell.
    assert!((with - without - 120.0 * (cells as f64 + 1.0)).abs() < 1e-6 && cells > 0, "{with} {without}");
}
