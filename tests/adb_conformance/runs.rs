//! Runs under the agent, which survive their connection, and what a repetition costs.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bench::device::{
    Device,
    adb::{Adb, Options},
};
use bench_agent::spec::{Done, Reason};

use crate::{
    common::{big_file, never, open, processes, sh, spec},
    harness::{Adbd, Lab, PATIENCE, agent},
};

/// Waits until the command of a run is there.
async fn started(lab: &Lab) {
    let until = Instant::now() + Duration::from_secs(30);
    let script = "cat /data/local/tmp/bench/work/w.out*/child.pid 2>/dev/null; true";
    while lab.remote().sh("looking for the run", script).await.unwrap().is_empty() {
        assert!(Instant::now() < until, "the run does not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What a run of three seconds is exposed to, while it is on its way.
async fn disturbed(lab: &mut Lab, disturb: impl AsyncFnOnce(&mut Lab)) -> Result<(Done, PathBuf), bench::device::DeviceError> {
    let device = open(lab).await;
    let work = device.work_folder("w").await.unwrap();
    let out = lab.file("out");
    let spec = spec(&work, &out, &["/bin/sh", "-c", "echo start; sleep 3; echo end"]);
    let run = tokio::spawn(async move { device.run(&spec, never()).await });
    started(lab).await;
    disturb(lab).await;
    run.await.unwrap().map(|done| (done, out))
}

fn whole(done: &Done, out: &Path) {
    assert_eq!((done.ended.reason, done.ended.code), (Reason::Exited, Some(0)));
    assert_eq!(fs::read_to_string(out.join("stdout.txt")).unwrap(), "start\nend\n");
    assert!(out.join("done.json").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_survives_its_connection() {
    let Some(mut lab) = Lab::start().await else { return };
    // The daemon dies and comes back, the run lives on.
    let (done, out) = disturbed(&mut lab, async |lab| lab.phone.tell("kill")).await.unwrap();
    whole(&done, &out);
    // The same, and the run ends while nobody can see it.
    let away = async |lab: &mut Lab| {
        lab.phone.tell("down");
        tokio::time::sleep(Duration::from_secs(4)).await;
        lab.phone.tell("up");
    };
    let (done, out) = disturbed(&mut lab, away).await.unwrap();
    whole(&done, &out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_survives_a_hung_daemon_and_an_unplugged_cable() {
    let Some(mut lab) = Lab::start().await else { return };
    let hang = async |lab: &mut Lab| {
        lab.phone.tell("stop");
        tokio::time::sleep(Duration::from_secs(4)).await;
        lab.phone.tell("cont");
    };
    let (done, out) = disturbed(&mut lab, hang).await.unwrap();
    whole(&done, &out);
    lab.ready().await;
    let unplug = async |lab: &mut Lab| {
        lab.phone.tell("unplug");
        tokio::time::sleep(Duration::from_secs(4)).await;
        lab.phone.tell("plug");
    };
    let (done, out) = disturbed(&mut lab, unplug).await.unwrap();
    whole(&done, &out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_survives_the_server() {
    let Some(mut lab) = Lab::start().await else { return };
    let bench::device::adb::Address::Tcp(_, port) = lab.adb.address.clone() else { unreachable!() };
    let restart = async |lab: &mut Lab| {
        let old = std::mem::replace(&mut lab.adb, Adbd::start());
        drop(old);
        tokio::time::sleep(Duration::from_secs(1)).await;
        lab.adb = Adbd::start_at(port);
    };
    let (done, out) = disturbed(&mut lab, restart).await.unwrap();
    whole(&done, &out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_android_ends_with_adbd_is_told_as_that() {
    let Some(mut lab) = Lab::start().await else { return };
    let error = disturbed(&mut lab, async |lab| lab.phone.tell("r18")).await.unwrap_err();
    assert!(error.to_string().contains("adbd is restarted") && !error.is_lost(), "{error}");
    let error = disturbed(&mut lab, async |lab| lab.phone.tell("reboot")).await.unwrap_err();
    assert!(error.to_string().contains("restarted during the run"), "{error}");
    lab.ready().await;
    assert_eq!(processes(&lab.remote()).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_is_gone_for_good_is_lost() {
    let Some(mut lab) = Lab::start().await else { return };
    let mut options = Options::new(agent());
    options.patience = PATIENCE;
    options.reconnect = Duration::from_secs(3);
    let device = Adb::open(lab.server.clone(), &lab.phone.address, options).await.unwrap();
    let work = device.work_folder("w").await.unwrap();
    let spec = spec(&work, &lab.file("out"), &["/bin/sh", "-c", "sleep 60"]);
    let run = tokio::spawn(async move { device.run(&spec, never()).await });
    started(&lab).await;
    lab.phone.tell("down");
    let start = Instant::now();
    let error = run.await.unwrap().unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert!(start.elapsed() < Duration::from_secs(12));

    // The next contact ends what was left behind.
    lab.phone.tell("up");
    lab.ready().await;
    let device = open(&lab).await;
    assert_eq!(device.end_orphans(&[]).await.unwrap().len(), 2, "agent and command");
    assert_eq!(processes(&lab.remote()).await, Vec::<String>::new());
    assert_eq!(device.end_orphans(&[]).await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overhead_of_a_repetition_is_small() {
    let Some(lab) = Lab::start().await else { return };
    let device = open(&lab).await;
    let file = lab.file("model.bin");
    big_file(&file, 1);
    let mut times = Vec::new();
    let mut requests = 0;
    for i in 0..6 {
        let (before, start) = (device.remote().requests(), Instant::now());
        let work = device.work_folder(&format!("w{i}")).await.unwrap();
        device.stage(&file, &work, "model.bin").await.unwrap();
        device.write(&work, "config.json", b"{}").await.unwrap();
        sh(&device, &work, &lab.file("out"), "true").await;
        device.fetch(&work, "events.jsonl", &lab.file("events"), 1 << 20).await.unwrap();
        device.remove(&work).await;
        times.push(start.elapsed());
        requests = device.remote().requests() - before;
    }
    times.remove(0);
    times.sort();
    println!("overhead of a repetition: median {:?}, {requests} connections", times[times.len() / 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_evidence_can_not_be_read_does_not_go_on() {
    let Some(lab) = Lab::start().await else { return };
    let device = open(&lab).await;
    let work = device.work_folder("w").await.unwrap();
    // The second sleeper has left the command's group; the agent alone knows it.
    let script = "setsid sleep 300 & for d in ../w.out*; do echo {} > $d/done.json; done; sleep 300";
    let error = device.run(&spec(&work, &lab.file("out"), &["/bin/sh", "-c", script]), never()).await.unwrap_err();
    assert!(error.to_string().contains("done.json can't be read"), "{error}");
    assert_eq!(processes(&lab.remote()).await, [""; 0]);
}
