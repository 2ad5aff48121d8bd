//! Short commands, and what the phone says about itself.

use std::time::{Duration, Instant};

use bench::device::{
    Stated,
    adb::{
        AdbError, Facts,
        remote::Remote,
        shell::{Limits, line},
    },
    identify,
};

use crate::{
    common::{HOSTILE, long, open, processes},
    harness::{Lab, PATIENCE, expect_lost},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_command_tells_its_status_and_both_streams() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    for (script, status) in [("true", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("no-such-command", 127)] {
        assert_eq!(remote.exec(script, long()).await.unwrap().status, status, "{script}");
    }
    let both = remote.exec("printf 'a\\377\\000\\r\\n'; printf b >&2; exit 7", long()).await.unwrap();
    assert_eq!((both.status, &both.stdout[..], &both.stderr[..], both.merged), (7, &b"a\xff\0\r\n"[..], &b"b"[..], false));
    // Nobody will ever type anything.
    assert_eq!(remote.exec("cat; echo end", long()).await.unwrap().text(), "end\n");
    let start = Instant::now();
    let big = remote.exec("head -c 50000000 /dev/zero", long()).await.unwrap();
    println!("50 MB of output in {:?}", start.elapsed());
    assert_eq!(big.stdout.len(), 50_000_000);
    let endless = remote.exec("cat /dev/zero", Limits { output: 1 << 20, ..long() }).await;
    assert!(matches!(endless, Err(AdbError::TooMuch { .. })), "{endless:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_daemon_tells_its_status_too() {
    let Some(lab) = Lab::start().await else { return };
    let old = lab.remote().assuming(&[]);
    for (script, status) in [("true", 0), ("exit 3", 3), ("kill -9 $$", 137)] {
        assert_eq!(old.exec(script, long()).await.unwrap().status, status, "{script}");
    }
    let both = old.exec("printf 'a\\377\\000\\r\\n'; printf b >&2; exit 7", long()).await.unwrap();
    assert_eq!((both.status, &both.stdout[..], both.merged), (7, &b"a\xff\0\r\nb"[..], true));
    let words = ["it's", "$HOME `id`", HOSTILE];
    let echoed = old.exec(&format!("printf '%s|' {}", line(words)), long()).await.unwrap();
    assert_eq!(echoed.text(), words.map(|w| format!("{w}|")).concat());
    let stat = old.stat("/system/build.prop").await.unwrap().unwrap();
    assert!(stat.narrow && stat.is_file() && stat.size > 100);
    assert_eq!(old.stat("/no/such/file").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_words_survive_the_phones_shell() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let mut words: Vec<String> = (1..128_u8).map(|b| format!("<{}>", char::from(b))).collect();
    words.extend([HOSTILE, "", " ", "''", "'\"'\"'", "\\'", "$(reboot)", "~", "{a,b}", "-n", "=x", "é\u{301}😀"].map(str::to_owned));
    let script = format!("printf '%s\\0' {}", line(words.iter().map(String::as_str)));
    let said = remote.exec(&script, long()).await.unwrap().text();
    assert_eq!(said.split_terminator('\0').collect::<Vec<_>>(), words);
    assert!(remote.exec("echo a\0b", long()).await.is_err(), "a NUL would cut the command");
    assert!(remote.exec(&"#".repeat(70_000), long()).await.is_err());
    assert_eq!(remote.exec(&format!("echo {}", "x".repeat(60_000)), long()).await.unwrap().stdout.len(), 60_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_past_its_time_is_an_error() {
    let Some(lab) = Lab::start().await else { return };
    let start = Instant::now();
    let late = lab.remote().exec("sleep 30", Limits { time: Duration::from_millis(500), ..long() }).await;
    assert!(matches!(late, Err(AdbError::TimedOut { .. })), "{late:?}");
    assert!(start.elapsed() < Duration::from_secs(3));
    // Dropped: the daemon ends the direct child, here the shell's own `sleep`.
    let dropped = lab.remote();
    let _ = tokio::time::timeout(Duration::from_millis(300), dropped.exec("exec sleep 31", long())).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let left = processes(&lab.remote()).await;
    assert!(!left.iter().any(|p| p.contains("sleep 31")), "{left:?}");
}

/// Battery and clocks are what the phone's /sys was dressed with, the rest what its services print.
fn state_of_the_phone(said: &Facts) {
    let battery = said.battery.as_ref().unwrap();
    assert!(battery.level_percent.is_some() && battery.status.is_some() && battery.source == "sysfs", "{battery:?}");
    assert!(
        (20.0..60.0).contains(&battery.temperature_c.unwrap()) && (3000.0..5000.0).contains(&battery.voltage_mv.unwrap()),
        "{battery:?}"
    );
    assert!(battery.current_ma.unwrap().abs() < 10_000.0 && !battery.current_unit_inferred, "{battery:?}");
    assert!(said.cpu.iter().all(|p| p.governor.as_deref() == Some("walt") && p.hardware_max_khz.unwrap() > 1_000_000), "{:?}", said.cpu);
    assert!(!said.cpu.is_empty() && said.memory_available_mb.unwrap() < said.memory_mb.unwrap());
    // As its dumpsys and settings print it.
    assert_eq!(serde_json::to_value(said.thermal).unwrap(), "none");
    assert_eq!((said.screen.on(), said.airplane), (Some(true), Some(false)));
    assert_eq!(said.build_type.as_deref(), Some("user"));
    let launch = &said.launch;
    assert!(
        launch.nice.is_some() && launch.oom_score_adj.is_some() && launch.affinity.is_some() && !launch.cgroup.is_empty(),
        "{launch:?}"
    );
    assert!(said.dsp.firmware.value().is_none(), "{:?}", said.dsp.firmware);
    let json = serde_json::to_string(said).unwrap();
    assert!(json.len() < 20_000, "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_phone_says_what_it_is() {
    let Some(lab) = Lab::start().await else { return };
    let device = open(&lab).await;
    let said = device.said();
    assert_eq!(said.model.as_deref(), Some("bench test phone"));
    let soc = said.soc().unwrap();
    assert_eq!((soc.value.as_str(), soc.source), ("SM8650", "ro.soc.model"));
    assert_eq!((said.android.as_deref(), said.sdk, said.uid), (Some("14"), Some(34), Some(2000)));
    assert!(said.memory_mb.unwrap() > 500 && said.storage_free_mb.unwrap() > 100 && said.boot_id.is_some() && said.kernel.is_some());
    assert_eq!(said.arch.as_deref(), Some("x86_64"));
    let chip = identify(&said.chip, &Stated::default());
    assert_eq!(
        (chip.part.as_deref(), chip.soc_model, chip.htp_arch, chip.source),
        (Some("SM8650"), Some(57), Some(75), Some("ro.soc.model"))
    );
    state_of_the_phone(said);
    let features = lab.server.features(&lab.phone.address).await.unwrap();
    assert!(features.contains("shell_v2") && features.contains("stat_v2"), "{features:?}");
    let unknown = Remote::new(lab.server.clone(), "no such serial:1", PATIENCE);
    let error = expect_lost(unknown.sh("x", "true").await);
    assert!(error.to_string().contains("not found"), "{error}");
}
