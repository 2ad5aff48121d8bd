//! What a device says about itself, in one round trip. Best effort: what it does not say is absent.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    AdbError,
    remote::Remote,
    shell::{Limits, quote},
};

/// A value and where it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// As the device prints it, trimmed.
    pub value: String,
    /// Property, file or command.
    pub source: &'static str,
}

/// What is known of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// `ro.product.model`.
    pub model: Option<String>,
    /// `ro.product.manufacturer`.
    pub manufacturer: Option<String>,
    /// The chip: `ro.soc.model` (SM8650), else the kernel's `soc0/machine`, else `ro.board.platform` (pineapple), a family only.
    pub soc: Option<Known>,
    /// Android's version, `14`.
    pub android: Option<String>,
    /// API level.
    pub sdk: Option<u32>,
    /// `ro.build.fingerprint`.
    pub build: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// The kernel's machine (`aarch64`): what programs have to be built for, whatever the properties say.
    pub arch: Option<String>,
    /// `ro.product.cpu.abi`.
    pub abi: Option<String>,
    /// Processors that the kernel has, online or not.
    pub cores: Option<u32>,
    /// MemTotal in MB (10^6 bytes).
    pub memory_mb: Option<u64>,
    /// Free for this user below the work root, in MB (10^6 bytes).
    pub storage_free_mb: Option<u64>,
    /// The user that commands run as: 2000 is `shell`, 0 root.
    pub uid: Option<u32>,
    /// `Enforcing`, `Permissive`, `Disabled`.
    pub selinux: Option<String>,
    /// The kernel's boot id.
    pub boot_id: Option<String>,
}

/// The properties that are asked for.
const PROPERTIES: [&str; 8] = [
    "ro.product.model",
    "ro.product.manufacturer",
    "ro.soc.model",
    "ro.board.platform",
    "ro.build.version.release",
    "ro.build.version.sdk",
    "ro.build.fingerprint",
    "ro.product.cpu.abi",
];

/// The rest, one `key=value` a line. A board without Android has no `getprop`; every failure leaves an empty value.
const OTHERS: &str = r#"
echo "kernel=$(uname -r 2>/dev/null)"
echo "arch=$(uname -m 2>/dev/null)"
echo "machine=$(cat /sys/devices/soc0/machine 2>/dev/null)"
echo "present=$(cat /sys/devices/system/cpu/present 2>/dev/null)"
echo "nproc=$(nproc 2>/dev/null)"
echo "uid=$(id -u 2>/dev/null)"
echo "selinux=$(getenforce 2>/dev/null)"
echo "boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
while read -r k v u; do [ "$k" = MemTotal: ] && echo "memory=$v"; done < /proc/meminfo
"#;

/// Asks a device. `root` is the work root, which need not exist.
pub async fn ask(remote: &Remote, root: &str) -> Result<Facts, AdbError> {
    let mut script = String::new();
    for name in PROPERTIES {
        let _ = writeln!(script, "echo \"{name}=$(getprop {name} 2>/dev/null)\"");
    }
    script.push_str(OTHERS);
    // Available blocks and their size; the nearest folder that exists.
    let _ = writeln!(
        script,
        "d={}; while [ ! -e \"$d\" ] && [ -n \"$d\" ]; do d=${{d%/*}}; done; echo \"free=$(stat -f -c '%a %S' \"${{d:-/}}\" 2>/dev/null)\"",
        quote(root)
    );
    let output = remote.exec(&script, Limits { output: 1 << 20, ..Limits::default() }).await?;
    Ok(read(&output.text()))
}

fn read(text: &str) -> Facts {
    let lines = text.lines().filter_map(|l| l.split_once('='));
    let values: BTreeMap<_, _> = lines.map(|(k, v)| (k, v.trim())).filter(|(_, v)| !v.is_empty()).collect();
    let get = |key: &str| values.get(key).map(|v| (*v).to_owned());
    let first = |names: &[(&str, &'static str)]| {
        names.iter().find_map(|(key, source)| get(key).filter(|v| v != "unknown").map(|value| Known { value, source }))
    };
    let free = get("free").and_then(|v| {
        let (blocks, size) = v.split_once(' ')?;
        blocks.parse::<u64>().ok()?.checked_mul(size.parse().ok()?)
    });
    Facts {
        model: get("ro.product.model"),
        manufacturer: get("ro.product.manufacturer"),
        soc: first(&[
            ("ro.soc.model", "ro.soc.model"),
            ("machine", "/sys/devices/soc0/machine"),
            ("ro.board.platform", "ro.board.platform"),
        ]),
        android: get("ro.build.version.release"),
        sdk: get("ro.build.version.sdk").and_then(|v| v.parse().ok()),
        build: get("ro.build.fingerprint"),
        kernel: get("kernel"),
        arch: get("arch"),
        abi: get("ro.product.cpu.abi"),
        cores: get("present")
            .and_then(|v| v.rsplit(['-', ',']).next()?.parse::<u32>().ok()?.checked_add(1))
            .or(get("nproc").and_then(|v| v.parse().ok())),
        memory_mb: get("memory").and_then(|v| v.parse::<u64>().ok()?.checked_mul(1024)).map(|b| b / 1_000_000),
        storage_free_mb: free.map(|b| b / 1_000_000),
        uid: get("uid").and_then(|v| v.parse().ok()),
        selinux: get("selinux"),
        boot_id: get("boot"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chip_comes_from_the_best_source() {
        let all = "ro.soc.model=SM8650\nmachine=Snapdragon 8 Gen 3\nro.board.platform=pineapple\n";
        assert_eq!(read(all).soc, Some(Known { value: "SM8650".to_owned(), source: "ro.soc.model" }));
        assert_eq!(read(&all.replace("SM8650", "")).soc.unwrap().source, "/sys/devices/soc0/machine");
        assert_eq!(read("ro.soc.model=unknown\nro.board.platform=lahaina\n").soc.unwrap().value, "lahaina");
        assert_eq!(read("machine=\n").soc, None);
    }

    #[test]
    fn numbers_have_units_and_garbage_is_absent() {
        let facts = read("memory=11723456\nfree=1000000 4096\npresent=0-7\nuid=2000\nro.build.version.sdk=34\n");
        assert_eq!((facts.memory_mb, facts.storage_free_mb, facts.cores), (Some(12_004), Some(4096), Some(8)));
        assert_eq!((facts.uid, facts.sdk), (Some(2000), Some(34)));
        let odd = read("memory=18446744073709551615\nfree=x 1\npresent=-\nuid=\n=\n\u{fffd}\nnproc=4\n");
        assert_eq!((odd.memory_mb, odd.storage_free_mb, odd.cores, odd.uid), (None, None, Some(4), None));
    }
}
