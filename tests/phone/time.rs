//! Clocks that stand still or jump: a computer that sleeps, a phone whose wall clock is set; and a log that never comes.

use super::*;
use support::events;

/// Longer than a silent device is waited for (10 s an answer, 30 s a transfer) and than `--reconnect` of these runs (20 s).
const SLEEP: Duration = Duration::from_secs(35);

/// The adb server of a lab.
fn server(lab: &Lab) -> String {
    let named = format!("adb\0-L\0{}\0nodaemon", lab.adb.address.to_string().replace("127.0.0.1", "localhost"));
    let is = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&named));
    let mut all = fs::read_dir("/proc").unwrap().flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    all.find(|pid| is(pid)).expect("the adb server")
}

fn signal(name: &str, pids: &[&str]) {
    assert!(Command::new("kill").arg(name).args(pids).status().unwrap().success());
}

/// What happens to the phone while the computer sleeps.
#[derive(Clone, Copy, PartialEq)]
enum Meanwhile {
    Nothing,
    /// Its link is cut and restored.
    Unplugged,
    /// It was gone before, so that bench was waiting for it already, and comes back.
    Gone,
}

/// The computer sleeps while a launch runs on the phone, and the launch ends meanwhile.
fn a_suspended_host(meanwhile: Meanwhile) {
    let Some(mut lab) = Lab::start() else { return };
    let scenario = lab.scenario(&["ok"], 2, 1500);
    let child = lab.spawn(&scenario);
    let (bench, server) = (child.id().to_string(), server(&lab));
    lab.wait_for_launch(1);
    if meanwhile == Meanwhile::Gone {
        lab.phone.tell("down");
        // It asks four times a second and more.
        thread::sleep(Duration::from_secs(3));
    }
    signal("-STOP", &[&bench, &server]);
    if meanwhile == Meanwhile::Unplugged {
        lab.phone.tell("unplug");
    }
    thread::sleep(SLEEP);
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::Unplugged => lab.phone.tell("plug"),
        Meanwhile::Gone => lab.phone.tell("up"),
    }
    signal("-CONT", &[&server, &bench]);
    finish(child).expect(0);
    let folder = lab.folder();
    let cell = &table(&folder, "cells.csv")[0];
    let words = ["status", "launches", "launches_failed", "ttft_ms"].map(|column| cell[column].as_str());
    assert_eq!(words, ["ok", "2", "0", "5"], "{}", cell["reason"]);
    assert_eq!(table(&folder, "samples.csv").len(), 2 * 3, "a query that is thrown away and two that count, each launch");
    let journal = journal(&folder);
    assert_eq!(events(&journal, "launch_begin").count(), 2, "nothing was repeated");
    assert_eq!(lab.left_running(), "");
    assert_eq!(lab.adb_shell("ls /data/local/tmp/bench/work"), "");
}

#[test]
fn a_computer_that_sleeps_picks_its_run_up() {
    a_suspended_host(Meanwhile::Nothing);
}

#[test]
fn a_computer_that_sleeps_and_loses_its_cable_picks_its_run_up() {
    a_suspended_host(Meanwhile::Unplugged);
}

#[test]
fn a_computer_that_sleeps_while_it_waits_for_the_phone_has_not_waited() {
    a_suspended_host(Meanwhile::Gone);
}

fn warnings(folder: &Path) -> Vec<String> {
    table(folder, "launches.csv").iter().map(|row| row["warnings"].clone()).collect()
}

#[test]
fn a_wall_clock_that_jumps_neither_hides_nor_invents_a_cause() {
    const CRASH: &str = "remoteproc remoteproc2: crash detected in cdsp: type fatal error";
    let Some(mut lab) = Lab::start() else { return };
    let crash = format!("log main 1 E kernel: {CRASH}");
    // Ten hours ago: with a clock that is set back by a day it seems to be of now.
    lab.phone.tell("clock -36000");
    lab.phone.tell(&crash);
    lab.phone.tell("clock 0");
    let scenario = lab.scenario(&["ok"], 3, 1000);
    let child = lab.spawn(&scenario);
    lab.wait_for_launch(1);
    lab.phone.tell("clock -86400");
    lab.wait_for_launch(2);
    lab.phone.tell("clock 0");
    lab.phone.tell("log main 1 I first: said before the clock was set forward");
    lab.phone.tell("clock 31536000");
    lab.wait_for_launch(3);
    lab.phone.tell("clock 0");
    // With a clock that runs as it should, such a line is told.
    lab.phone.tell(&crash);
    finish(child).expect(0);
    let folder = lab.folder();
    assert_eq!(table(&folder, "cells.csv")[0]["launches"], "3");
    let said = warnings(&folder);
    let seconds = |text: &str| text.split_once("clock was set by ").and_then(|(_, rest)| rest.split_once(" s ")?.0.parse::<i64>().ok());
    let (back, forward) = (seconds(&said[0]).unwrap(), seconds(&said[1]).unwrap());
    assert!((back + 86_400).abs() <= 1 && (forward - 31_536_000).abs() <= 1, "{said:?}");
    assert_eq!(seconds(&said[2]), None);
    assert_eq!([0, 1, 2].map(|n: usize| said[n].contains("crash detected")), [false, false, true], "{said:?}");
    let log = |launch: u32| {
        let found = glob::glob(&format!("{}/logs/*/*/measure-{launch:03}/logcat.txt", folder.display())).unwrap();
        fs::read_to_string(found.flatten().next().expect("the log is kept")).unwrap()
    };
    assert!(log(0).contains(CRASH), "nothing is taken away from what is kept");
    assert!(log(1).contains("said before the clock was set forward"));
}

#[test]
fn a_log_that_never_comes_costs_two_launches_a_moment() {
    let Some(mut lab) = Lab::start() else { return };
    lab.phone.tell("logd-hangs");
    let scenario = lab.scenario(&["ok"], 3, 0);
    run(&mut lab.run(&scenario)).expect(0);
    let said = warnings(&lab.folder());
    assert_eq!(statuses(&lab.folder()), ["ok"]);
    let told = |text: &str| said.iter().map(|w| w.contains(text)).collect::<Vec<_>>();
    assert_eq!(told("the device's log is missing"), [true, true, false], "{said:?}");
    assert_eq!(told("not asked for"), [false, true, false], "{said:?}");
}
