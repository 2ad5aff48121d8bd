//! Facts as phones tell them.

use std::collections::BTreeMap;

use super::*;
use crate::{
    device::{
        Stated,
        adb::{
            Known,
            facts::{Access, Battery, CpuPolicy, Dsp, Screen},
        },
        identify, phone_facts,
    },
    doctor::{ask::Refusal, examine},
};

fn access(may: &str) -> Reading<Access> {
    Reading::Value(Access { mode: "664".to_owned(), owner: "system".to_owned(), group: "system".to_owned(), may: may.to_owned() })
}

/// A Snapdragon 8 Gen 3 phone, full, cool and ready.
fn phone() -> Phone {
    let chip = vec![Known { value: "SM8650".to_owned(), source: "ro.soc.model" }];
    let policy = |name: &str, max| CpuPolicy {
        name: name.to_owned(),
        governor: Some("walt".to_owned()),
        min_khz: Some(300_000),
        max_khz: Some(max),
        hardware_max_khz: Some(3_302_400),
    };
    let facts = Facts {
        android: Some("15".to_owned()),
        selinux: Some("Enforcing".to_owned()),
        battery: Some(Battery {
            level_percent: Some(100),
            status: Some("Full".to_owned()),
            temperature_c: Some(29.0),
            ..Battery::default()
        }),
        cpu: vec![policy("policy0", 3_302_400)],
        thermal: Some(ThermalStatus::None),
        screen: Screen { wakefulness: Some("Awake".to_owned()), timeout_ms: Some(30_000), stay_on_while_plugged_in: Some(7) },
        airplane: Some(true),
        battery_saver: Some(false),
        dsp: Dsp {
            nodes: BTreeMap::from([("/dev/fastrpc-cdsp".to_owned(), access("rw"))]),
            library: access("r"),
            firmware: Reading::Value(Known { value: "CDSP.HT.2.9-00105-LANAI-1".to_owned(), source: "/sys/devices/soc0/images" }),
        },
        ..Facts::default()
    };
    Phone {
        device: DeviceFacts { name: "R5 CT".to_owned(), ..phone_facts(57, 75) },
        chip: identify(&chip, &Stated::default()),
        facts,
        asked: Asked::default(),
        agent: Ok("bench-agent".into()),
        runners: vec![("bench-genie-runner".to_owned(), true)],
    }
}

/// What is not as it should be.
fn bad(phone: &Phone) -> Vec<(&'static str, Severity)> {
    let found = examine(CHECKS, "x", phone).into_iter();
    found.filter(|f| f.severity > Severity::Ok).map(|f| (f.check, f.severity)).collect()
}

#[track_caller]
fn changed(change: impl FnOnce(&mut Phone)) -> Vec<(&'static str, Severity)> {
    let mut phone = phone();
    change(&mut phone);
    bad(&phone)
}

#[test]
fn a_good_phone_is_good_and_every_check_says_so() {
    let found = examine(CHECKS, "R5 CT", &phone());
    assert!(found.iter().all(|f| f.severity == Severity::Ok && f.fix.is_none()), "{found:?}");
    assert_eq!(found.iter().map(|f| f.check).collect::<Vec<_>>(), CHECKS.iter().map(|c| c.id).collect::<Vec<_>>());
    assert_eq!(found[0].what, "SM8650 (by ro.soc.model), Snapdragon 8 Gen 3: Hexagon v75, soc_model 57, 8 MB VTCM");
}

#[test]
fn each_trouble_is_one_finding() {
    use Severity::{Error, Note, Warning};
    type Change = fn(&mut Phone);
    let troubles: [(Change, (&str, Severity)); 19] = [
        (|p| p.agent = Err("no bench-agent".to_owned()), ("agent", Error)),
        (|p| p.runners[0].1 = false, ("runners", Warning)),
        (|p| p.facts.android = Some("14".to_owned()), ("android", Warning)),
        (|p| p.facts.dsp.library = Reading::Absent("no such file".to_owned()), ("dsp-library", Warning)),
        (|p| p.facts.dsp.firmware = Reading::Denied("Permission denied".to_owned()), ("dsp-firmware", Note)),
        (|p| p.asked.refusals = vec![Refusal { line: "avc: denied".to_owned(), hint: "do".to_owned() }], ("selinux", Warning)),
        (|p| p.facts.battery.as_mut().unwrap().level_percent = Some(19), ("battery", Warning)),
        (|p| p.facts.battery.as_mut().unwrap().status = Some("Charging".to_owned()), ("battery", Note)),
        (|p| p.facts.battery.as_mut().unwrap().temperature_c = Some(40.0), ("heat", Warning)),
        (|p| p.facts.thermal = Some(ThermalStatus::Light), ("heat", Note)),
        (|p| p.facts.thermal = Some(ThermalStatus::Severe), ("heat", Warning)),
        (|p| p.facts.cpu[0].max_khz = Some(2_016_000), ("clocks", Warning)),
        (|p| p.facts.cpu[0].governor = Some("powersave".to_owned()), ("clocks", Warning)),
        (|p| p.facts.battery_saver = Some(true), ("battery-saver", Warning)),
        (|p| p.facts.screen.stay_on_while_plugged_in = Some(0), ("screen", Warning)),
        (|p| p.asked.pinned = Some("stay-on to 0".to_owned()), ("pins", Warning)),
        (|p| p.facts.airplane = Some(false), ("radios", Note)),
        (|p| p.device.class = DeviceClass::Emulator, ("class", Note)),
        (|p| p.chip.no_llm = Some("2 MB of VTCM".to_owned()), ("chip", Warning)),
    ];
    for (number, (change, expected)) in troubles.into_iter().enumerate() {
        assert_eq!(changed(change), [expected], "trouble {number}");
    }
}

#[test]
fn the_way_to_the_dsp() {
    use Severity::{Error, Warning};
    let nodes = |list: &[(&str, &str)]| list.iter().map(|(path, may)| ((*path).to_owned(), access(may))).collect();
    assert_eq!(changed(|p| p.facts.dsp.nodes = nodes(&[])), [("fastrpc", Error)]);
    assert_eq!(changed(|p| p.facts.dsp.nodes = nodes(&[("/dev/fastrpc-cdsp", "r")])), [("fastrpc", Error)]);
    let signed = changed(|p| p.facts.dsp.nodes = nodes(&[("/dev/adsprpc-smd", ""), ("/dev/adsprpc-smd-secure", "rw")]));
    assert_eq!(signed, [("unsigned-pd", Warning)]);
    // Without a Hexagon there is nothing to reach.
    let emulated = changed(|p| {
        p.device.arch = "x86_64".to_owned();
        p.facts.dsp = Dsp::default();
    });
    assert_eq!(emulated, []);
}

#[test]
fn the_command_that_mends_it_names_the_device_and_is_quoted() {
    let mut phone = phone();
    phone.facts.battery_saver = Some(true);
    let found = examine(CHECKS, "x", &phone);
    let fix = found.iter().find_map(|f| f.fix.as_deref()).unwrap();
    assert_eq!(fix, "adb -s 'R5 CT' shell settings put global low_power 0");
}

#[test]
fn a_device_that_tells_nothing_is_survived() {
    let mut phone = phone();
    phone.facts = Facts::default();
    phone.chip = identify(&[], &Stated::default());
    let found = bad(&phone);
    assert!(found.contains(&("chip", Severity::Warning)) && found.contains(&("fastrpc", Severity::Error)), "{found:?}");
}

#[test]
fn a_work_root_of_somebody_else_is_an_error() {
    let mut phone = phone();
    let of = |phone: &Phone| {
        let all = examine(CHECKS, "x", phone).into_iter().filter(|f| f.check == "work-root");
        all.map(|f| (f.severity, f.what)).collect::<Vec<_>>()
    };
    assert_eq!(of(&phone), [(Severity::Ok, "this user can write there".to_owned())]);
    phone.asked.unwritable.push("/data/local/tmp/bench/store: Permission denied".to_owned());
    assert_eq!(of(&phone), [(Severity::Error, "no file can be made in /data/local/tmp/bench/store: Permission denied".to_owned())]);
}
