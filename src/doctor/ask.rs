//! What only the doctor asks a device: processors that are online, what is staged, and what its log says of refusals.

use bench_backend_api::knowledge;

use crate::{
    device::adb::{
        AdbError,
        remote::Remote,
        shell::{Limits, quote},
    },
    run::logs,
    safe::printable,
};

/// The line between the small answers and the log.
const LOG: &str = "--------- doctor";
/// The entries of the knowledge table that tell of a refusal on the way to the compute DSP.
const REFUSALS: [&str; 2] = ["dsp-selinux", "dsp-shell-denied"];
/// The most refusals that are told.
const MOST: usize = 4;

/// A line of the device's log in which something was refused, and what the knowledge table says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The line.
    pub line: String,
    /// Cause and next step.
    pub hint: String,
}

/// The answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Processors that are online; empty when the device does not tell.
    pub online: Vec<u32>,
    /// What the store of `bench` holds, in bytes.
    pub staged_bytes: Option<u64>,
    /// Folders of the work root, or above it, in which this user can't make a file, with the device's words.
    pub unwritable: Vec<String>,
    /// What a bench has changed on the device and not put back yet.
    pub pinned: Option<String>,
    /// Refusals on the way to the compute DSP, in the log that the device still has.
    pub refusals: Vec<Refusal>,
}

/// Asks a device. `root` is the work root, which need not exist.
pub async fn ask(remote: &Remote, root: &str) -> Result<Asked, AdbError> {
    // The root need not exist: then it is made in the nearest folder that does.
    let script = format!(
        "r={root}; d=$r; while [ ! -e \"$d\" ] && [ -n \"$d\" ]; do d=${{d%/*}}; done\n\
         for d in \"${{d:-/}}\" \"$r/store\" \"$r/work\"; do [ -d \"$d\" ] || continue\n\
         t=\"$d/.bench-doctor.$$\"; x=$( (: > \"$t\") 2>&1) && rm -f -- \"$t\" || echo \"unwritable=$d: $x\"; done\n\
         echo \"online=$(cat /sys/devices/system/cpu/online 2>/dev/null)\"\n\
         echo \"staged=$(du -sk {root}/store 2>/dev/null)\"\n\
         echo \"pinned=$(head -c 500 {root}/pins/what.txt 2>/dev/null)\"\necho '{LOG}'\n{}",
        logs::command(&logs::Window { seconds: 86_400, start: None }),
        root = quote(root)
    );
    let output = remote.exec(&script, Limits { output: 3 * logs::LIMIT as u64, ..Limits::default() }).await?;
    Ok(read(&output.text()))
}

/// Reads the answers. Device output: nothing is trusted.
pub fn read(text: &str) -> Asked {
    let (small, log) = text.split_once(LOG).unwrap_or((text, ""));
    let value = |key: &str| small.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let kib = value("staged").and_then(|v| v.split_whitespace().next()?.parse::<u64>().ok());
    Asked {
        online: value("online").map(processors).unwrap_or_default(),
        staged_bytes: kib.and_then(|k| k.checked_mul(1024)),
        unwritable: small.lines().filter_map(|line| Some(short(line.strip_prefix("unwritable=")?))).take(MOST).collect(),
        pinned: value("pinned").map(short).filter(|what| !what.trim().is_empty()),
        refusals: refusals(log),
    }
}

/// A line, no longer than a reader needs it.
fn short(line: &str) -> String {
    printable(line).chars().take(200).collect()
}

fn refusals(log: &str) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = Vec::new();
    for line in log.lines() {
        let Some(entry) = knowledge::DEVICE.find(line).filter(|e| REFUSALS.contains(&e.entry.id.as_str())) else { continue };
        let hint = entry.hint();
        if found.len() < MOST && found.iter().all(|f| f.hint != hint) {
            found.push(Refusal { line: short(line), hint });
        }
    }
    found
}

/// `0-3,5` as the kernel lists processors; what is not such a list is empty.
pub fn processors(list: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let range = from.trim().parse().ok()?..=to.trim().parse().ok()?;
        (*range.end() < 4096).then_some(range)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_a_phone() {
        let denied = r#"1748850000.123  1000  1200  1200 W auditd: type=1400 audit(0.0:471631): avc:  denied  { read } for  name="adsprpc-smd-secure" dev="tmpfs" scontext=u:r:shell:s0 tclass=chr_file permissive=0"#;
        let harmless = r#"1748850001.000  1000  1200  1200 W auditd: type=1400 audit(0.0:9): avc: denied { read } for name="stat" dev="proc" tclass=file permissive=0"#;
        let text = format!(
            "unwritable=/data/bench/store: sh: can't create: Permission denied\nonline=0-5,7\nstaged=2048\t/data/local/tmp/bench/store\npinned=stay-on to 0\n{LOG}\n{harmless}\n{denied}\n{denied}\n"
        );
        let asked = read(&text);
        assert_eq!((asked.online, asked.staged_bytes), (vec![0, 1, 2, 3, 4, 5, 7], Some(2048 * 1024)));
        assert_eq!(asked.unwritable, ["/data/bench/store: sh: can't create: Permission denied"]);
        assert_eq!(asked.pinned.as_deref(), Some("stay-on to 0"));
        assert_eq!(asked.refusals.len(), 1, "the same refusal is told once: {:?}", asked.refusals);
        assert!(asked.refusals[0].line.contains("adsprpc-smd-secure") && asked.refusals[0].hint.contains("SELinux refused"));
    }

    #[test]
    fn garbage_is_no_answer() {
        assert_eq!(read(""), Asked::default());
        assert_eq!(read("online=x-\nstaged=18446744073709551615 /x\npinned=\n"), Asked::default());
        assert_eq!(processors("0-4294967295"), Vec::<u32>::new());
        assert_eq!(processors("3,1-2"), [3, 1, 2]);
    }
}
