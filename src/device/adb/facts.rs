//! What a device says about itself, in one round trip. Best effort: what it does not say is absent, what it forbids is [`Reading::Denied`].
//! It serialises for the manifest of a run.

mod answers;
mod context;
mod script;
mod state;

pub use answers::Reading;
pub use context::{Access, Dsp, Launch};
pub use state::{Battery, CpuPolicy, Screen, ThermalStatus};

use answers::Answers;
use serde::Serialize;

use super::{AdbError, remote::Remote, shell::Limits};
use crate::device::identify::{MACHINE, PLATFORM, PROPERTY};

/// A value and where it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// As the device prints it, trimmed.
    pub value: String,
    /// Property, file or command.
    pub source: &'static str,
}

/// What is known of a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// `ro.product.model`.
    pub model: Option<String>,
    /// `ro.product.manufacturer`.
    pub manufacturer: Option<String>,
    /// The device's words for its chip, the best first: `ro.soc.model` (SM8650), the kernel's `soc0/machine`, and `ro.board.platform`
    /// (pineapple), a family only.
    pub chip: Vec<Known>,
    /// Android's version, `14`.
    pub android: Option<String>,
    /// API level.
    pub sdk: Option<u32>,
    /// `ro.build.version.security_patch`.
    pub security_patch: Option<String>,
    /// `ro.build.fingerprint`.
    pub build: Option<String>,
    /// `user`, `userdebug`, `eng`.
    pub build_type: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// The kernel's build: number, options, date.
    pub kernel_build: Option<String>,
    /// The kernel's machine (`aarch64`): what programs have to be built for, whatever the properties say.
    pub arch: Option<String>,
    /// `ro.product.cpu.abi`.
    pub abi: Option<String>,
    /// What says that this is a virtual machine of Android's (the SDK's emulator, Cuttlefish): on a computer with an ARM processor it runs a
    /// phone's programs and is none.
    pub virtual_machine: Option<String>,
    /// Processors that the kernel has, online or not.
    pub cores: Option<u32>,
    /// MemTotal in MB (10^6 bytes).
    pub memory_mb: Option<u64>,
    /// MemAvailable in MB (10^6 bytes).
    pub memory_available_mb: Option<u64>,
    /// Swap in MB (10^6 bytes), all and free; on Android it is compressed memory.
    pub swap_mb: Option<u64>,
    /// Free swap in MB (10^6 bytes).
    pub swap_free_mb: Option<u64>,
    /// Size of the compressed swap in MB (10^6 bytes), before compression.
    pub zram_mb: Option<u64>,
    /// The DRAM's highest clock in kHz, as the kernel votes for it.
    pub ddr_max_khz: Reading<u64>,
    /// Free for this user below the work root, in MB (10^6 bytes).
    pub storage_free_mb: Option<u64>,
    /// The user that commands run as: 2000 is `shell`, 0 root.
    pub uid: Option<u32>,
    /// Path of `su`, if this user sees one: the device is rooted, which does not say that `bench` may use it.
    pub su: Option<String>,
    /// `Enforcing`, `Permissive`, `Disabled`.
    pub selinux: Option<String>,
    /// The kernel's boot id.
    pub boot_id: Option<String>,
    /// The battery; a board has none.
    pub battery: Option<Battery>,
    /// Governor and caps of every cluster.
    pub cpu: Vec<CpuPolicy>,
    /// What Android does against the heat.
    pub thermal: Option<ThermalStatus>,
    /// The screen.
    pub screen: Screen,
    /// Airplane mode.
    pub airplane: Option<bool>,
    /// The battery saver.
    pub battery_saver: Option<bool>,
    /// The way to the compute DSP.
    pub dsp: Dsp,
    /// In what surroundings programs run.
    pub launch: Launch,
}

impl Facts {
    /// The best of the device's words for its chip.
    pub fn soc(&self) -> Option<&Known> {
        self.chip.first()
    }
}

/// Asks a device. `root` is the work root, which need not exist.
pub async fn ask(remote: &Remote, root: &str) -> Result<Facts, AdbError> {
    let output = remote.exec(&script::script(root), Limits { output: 1 << 20, ..Limits::default() }).await?;
    Ok(read(&output.text()))
}

fn read(text: &str) -> Facts {
    // Facts are shown on terminals and pages and become names of files (the agent's): what could steer one is no part of any.
    let text = text.replace(|c: char| c.is_control() && c != '\n', " ");
    let answers = Answers::read(&text);
    let text = |key: &str| answers.text(key);
    let chip = [("ro.soc.model", PROPERTY), ("machine", MACHINE), ("ro.board.platform", PLATFORM)];
    // /proc/meminfo counts in KiB, whatever its `kB` says.
    let kib = |key: &str| answers.number::<u64>(key).and_then(|n| n.checked_mul(1024)).map(|b| b / 1_000_000);
    let free = answers.get("free").and_then(|v| {
        let (blocks, size) = v.split_once(' ')?;
        blocks.parse::<u64>().ok()?.checked_mul(size.parse().ok()?)
    });
    Facts {
        model: text("ro.product.model"),
        manufacturer: text("ro.product.manufacturer"),
        chip: chip.into_iter().filter_map(|(key, source)| Some(Known { value: text(key).filter(|v| v != "unknown")?, source })).collect(),
        android: text("ro.build.version.release"),
        sdk: answers.number("ro.build.version.sdk"),
        security_patch: text("ro.build.version.security_patch"),
        build: text("ro.build.fingerprint"),
        build_type: text("ro.build.type"),
        kernel: text("kernel"),
        kernel_build: text("kernel_build"),
        arch: text("arch"),
        abi: text("ro.product.cpu.abi"),
        virtual_machine: virtual_machine(&answers),
        cores: answers
            .get("present")
            .and_then(|v| v.rsplit(['-', ',']).next()?.parse::<u32>().ok()?.checked_add(1))
            .or_else(|| answers.number("nproc")),
        memory_mb: kib("MemTotal:"),
        memory_available_mb: kib("MemAvailable:"),
        swap_mb: kib("SwapTotal:"),
        swap_free_mb: kib("SwapFree:"),
        zram_mb: answers.number::<u64>("zram").map(|b| b / 1_000_000),
        ddr_max_khz: answers.number_reading("ddr"),
        storage_free_mb: free.map(|b| b / 1_000_000),
        uid: answers.number("uid"),
        su: text("su"),
        selinux: text("selinux"),
        boot_id: text("boot"),
        battery: Battery::read(&answers),
        cpu: answers.all("policy").iter().take(256).filter_map(|line| CpuPolicy::read(line)).collect(),
        thermal: ThermalStatus::read(&answers),
        screen: Screen::read(&answers),
        airplane: answers.flag("setting.airplane_mode_on"),
        battery_saver: answers.flag("setting.low_power"),
        dsp: Dsp::read(&answers),
        launch: Launch::read(&answers),
    }
}

/// The property that the images of Android's virtual machines have. Source: AOSP's device/generic/goldfish (`ro.boot.qemu`, before Android 12
/// `ro.kernel.qemu`; hardware goldfish, ranchu) and device/google/cuttlefish (hardware cutf_cvm, vsoc).
fn virtual_machine(answers: &Answers<'_>) -> Option<String> {
    let qemu = ["ro.boot.qemu", "ro.kernel.qemu"].into_iter().find(|key| answers.get(key) == Some("1")).map(|key| format!("{key}=1"));
    let named = |hardware: &&str| ["goldfish", "ranchu", "cutf", "vsoc"].iter().any(|name| hardware.starts_with(name));
    qemu.or_else(|| answers.get("ro.hardware").filter(named).map(|hardware| format!("ro.hardware={hardware}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chip_comes_from_the_best_source() {
        let all = "ro.soc.model=SM8650\nmachine=PINEAPPLE\nro.board.platform=pineapple\n";
        let facts = read(all);
        assert_eq!(facts.soc(), Some(&Known { value: "SM8650".to_owned(), source: "ro.soc.model" }));
        assert_eq!(facts.chip.iter().map(|k| k.value.as_str()).collect::<Vec<_>>(), ["SM8650", "PINEAPPLE", "pineapple"]);
        assert_eq!(read(&all.replace("SM8650", "")).soc().unwrap().source, "/sys/devices/soc0/machine");
        assert_eq!(read("ro.soc.model=unknown\nro.board.platform=lahaina\n").soc().unwrap().value, "lahaina");
        assert_eq!(read("machine=\n").soc(), None);
    }

    #[test]
    fn virtual_machines_give_themselves_away() {
        let of = |text: &str| read(text).virtual_machine;
        assert_eq!(of("ro.boot.qemu=1\nro.hardware=ranchu\n").as_deref(), Some("ro.boot.qemu=1"));
        assert_eq!(of("ro.kernel.qemu=1\n").as_deref(), Some("ro.kernel.qemu=1"));
        assert_eq!(of("ro.hardware=cutf_cvm\n").as_deref(), Some("ro.hardware=cutf_cvm"));
        assert_eq!(of("ro.boot.qemu=0\nro.kernel.qemu=\nro.hardware=qcom\n"), None);
    }

    #[test]
    fn nothing_that_steers_a_terminal_is_a_fact() {
        let facts = read("ro.product.model=\u{1b}[31mred\u{7} 1\rx\narch=aarch64\u{9b}2J\nro.soc.model=SM\t8650\u{0}\n");
        assert_eq!(
            (facts.model.as_deref(), facts.arch.as_deref(), facts.chip[0].value.as_str()),
            (Some("[31mred  1 x"), Some("aarch64 2J"), "SM 8650")
        );
    }

    #[test]
    fn numbers_have_units_and_garbage_is_absent() {
        let facts = read(
            "MemTotal:=11723456\nMemAvailable:=5000000\nSwapTotal:=8388604\nSwapFree:=0\nzram=8589934592\nfree=1000000 4096\npresent=0-7\nuid=2000\nro.build.version.sdk=34\nddr=4224000\n",
        );
        assert_eq!((facts.memory_mb, facts.storage_free_mb, facts.cores), (Some(12_004), Some(4096), Some(8)));
        assert_eq!(
            (facts.memory_available_mb, facts.swap_mb, facts.swap_free_mb, facts.zram_mb),
            (Some(5120), Some(8589), Some(0), Some(8589))
        );
        assert_eq!((facts.uid, facts.sdk, facts.ddr_max_khz.value()), (Some(2000), Some(34), Some(&4_224_000)));
        let odd = read("MemTotal:=18446744073709551615\nfree=x 1\npresent=-\nuid=\n=\n\u{fffd}\nnproc=4\nddr!head: x: Permission denied\n");
        assert_eq!((odd.memory_mb, odd.storage_free_mb, odd.cores, odd.uid), (None, None, Some(4), None));
        assert_eq!(odd.ddr_max_khz, Reading::Denied("x: Permission denied".to_owned()));
    }

    #[test]
    fn it_serialises_with_its_reasons() {
        let facts = read(
            "ro.soc.model=SM8650\nthermal=1\nsetting.low_power=1\nsetting.airplane_mode_on=null\npolicy=policy0 walt 1 2 3\nsu=/sbin/su\n",
        );
        let json = serde_json::to_value(&facts).unwrap();
        assert_eq!(json["chip"][0]["source"], "ro.soc.model");
        assert_eq!(
            (&json["thermal"], &json["battery_saver"], &json["airplane"]),
            (&"light".into(), &true.into(), &serde_json::Value::Null)
        );
        assert_eq!((&json["cpu"][0]["hardware_max_khz"], &json["su"]), (&3.into(), &"/sbin/su".into()));
        assert_eq!(json["dsp"]["firmware"]["absent"], "the device says nothing");
        assert_eq!(json["launch"]["context"], "shell");
    }

    #[test]
    fn no_output_makes_it_panic() {
        use proptest::prelude::*;
        proptest!(ProptestConfig::with_cases(300), |(keys in proptest::collection::vec("(policy|stat|free|supply\\.b\\.temp|firmware|node\\./dev/adsprpc-smd|thermal|ddr)[=!][^\n]{0,30}\n", 0..8), tail in ".{0,40}")| {
            let _ = serde_json::to_string(&read(&(keys.concat() + &tail))).unwrap();
        });
    }

    /// The script is a shell's: this machine's shell, with only its own tools, has to carry it out to the end.
    #[cfg(target_os = "linux")]
    #[test]
    fn any_shell_carries_the_script_out() {
        let output = std::process::Command::new("sh").arg("-c").arg(script::script("/no such/root it's")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let facts = read(&String::from_utf8_lossy(&output.stdout));
        assert!(facts.memory_mb.unwrap() > facts.memory_available_mb.unwrap() && facts.storage_free_mb.is_some());
        assert!(facts.launch.nice.is_some() && facts.launch.affinity.is_some() && facts.launch.oom_score_adj.is_some());
        assert!(facts.android.is_none() && facts.screen.wakefulness.is_none());
    }
}
