//! In what surroundings a program runs that the shell starts (rule R6: shell and app differ by 2 to 4 times in users' reports), and whether it
//! can reach the compute DSP.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Known,
    answers::{Answers, Reading},
    script,
};

/// Surroundings of a process that the device's shell starts. The agent and every command inherit them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Launch {
    /// `shell`: started over ADB, not by Android's activity manager.
    pub context: &'static str,
    /// Its cpuset, `/foreground` or `/` for instance: which processors it may use at all.
    pub cpuset: Option<String>,
    /// Its control groups, one `id:controllers:path` each.
    pub cgroup: Vec<String>,
    /// Its nice value, -20 to 19.
    pub nice: Option<i32>,
    /// Its bonus for Android's killer, -1000 (never) to 1000 (first).
    pub oom_score_adj: Option<i32>,
    /// Processors that it may run on, `0-7`.
    pub affinity: Option<String>,
    /// Its SELinux domain, `u:r:shell:s0` for instance.
    pub selinux_domain: Reading<String>,
}
impl Launch {
    pub(super) fn read(answers: &Answers<'_>) -> Self {
        Self {
            context: "shell",
            cpuset: answers.text("cpuset"),
            cgroup: answers.all("cgroup").iter().take(32).map(|g| (*g).to_owned()).collect(),
            nice: answers.get("stat").and_then(nice),
            oom_score_adj: answers.number("oom_score_adj"),
            affinity: answers.text("affinity"),
            selinux_domain: answers.reading("domain").and_then("", |domain| Some(domain.to_owned())),
        }
    }
}

/// The nice value in `/proc/PID/stat`, its field 19; the name in field 2 may hold anything, also `)`.
fn nice(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
}

/// A file that has to be reached, with its permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// Mode in octal, `664`.
    pub mode: String,
    /// Owner.
    pub owner: String,
    /// Group.
    pub group: String,
    /// What this user may do: `rw`, `r`, `w` or empty. SELinux can still refuse an ioctl.
    pub may: String,
}
impl Access {
    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [mode, owner, group, may] = words.as_slice() else { return None };
        let may = if *may == "-" { "" } else { may };
        Some(Self { mode: (*mode).to_owned(), owner: (*owner).to_owned(), group: (*group).to_owned(), may: may.to_owned() })
    }
}

/// The way to the compute DSP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Dsp {
    /// The device nodes of FastRPC by path. Those that are not there are absent here: every generation has its own names.
    pub nodes: BTreeMap<String, Reading<Access>>,
    /// `/vendor/lib64/libcdsprpc.so`, through which QNN and Genie call the DSP.
    pub library: Reading<Access>,
    /// Version of its firmware, `CDSP.HT.2.8-00906-KAILUA-1` for instance (rule R37).
    pub firmware: Reading<Known>,
}
impl Dsp {
    pub(super) fn read(answers: &Answers<'_>) -> Self {
        let mut dsp = Self { firmware: answers.reading("firmware").and_then("not a version", firmware), ..Self::default() };
        for path in script::NODES {
            let access = answers.reading(&format!("node.{path}")).and_then("not a file's permissions", Access::read);
            if path.starts_with("/dev/") {
                if !matches!(access, Reading::Absent(_)) {
                    dsp.nodes.insert(path.to_owned(), access);
                }
            } else {
                dsp.library = access;
            }
        }
        dsp
    }

    /// Whether this user may open some node for reading and writing.
    pub fn reachable(&self) -> bool {
        self.nodes.values().filter_map(Reading::value).any(|node| node.may == "rw")
    }
}

fn firmware(text: &str) -> Option<Known> {
    let (path, version) = text.split_once(' ')?;
    let source = script::FIRMWARE.iter().find(|known| **known == path)?;
    Some(Known { value: version.trim().to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launch_context_of_a_shell() {
        let text = "cpuset=/\nstat=4711 (my (odd) name) S 1 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 -10 1 0 99\noom_score_adj=-950\n\
                    cgroup=4:memory:/\ncgroup=0::/uid_2000/pid_4711\naffinity=0-7\ndomain=u:r:shell:s0\0\n";
        let launch = Launch::read(&Answers::read(text));
        assert_eq!((launch.context, launch.cpuset.as_deref(), launch.nice), ("shell", Some("/"), Some(-10)));
        assert_eq!((launch.oom_score_adj, launch.affinity.as_deref()), (Some(-950), Some("0-7")));
        assert_eq!(launch.cgroup, ["4:memory:/", "0::/uid_2000/pid_4711"]);
        assert_eq!(launch.selinux_domain, Reading::Value("u:r:shell:s0".to_owned()));
        let nothing = Launch::read(&Answers::read("stat=x) S\ndomain!head: /proc/1/attr/current: Invalid argument\n"));
        assert_eq!((nothing.nice, nothing.cgroup.len()), (None, 0));
        assert_eq!(nothing.selinux_domain, Reading::Absent("/proc/1/attr/current: Invalid argument".to_owned()));
    }

    #[test]
    fn nodes_of_a_recent_phone() {
        let text = "node./dev/fastrpc-cdsp=664 system system r\nnode./dev/fastrpc-cdsp-secure!stat: '/dev/fastrpc-cdsp-secure': Permission denied\n\
                    node./dev/adsprpc-smd!stat: '/dev/adsprpc-smd': No such file or directory\nnode./vendor/lib64/libcdsprpc.so=644 root root r\n\
                    firmware!grep: /vendor/firmware_mnt/verinfo/ver_info.txt: Permission denied\nfirmware!/sys/devices/soc0/images: names no CDSP version\n\
                    firmware!grep: /sys/kernel/debug/qcom_socinfo/cdsp/name: No such file or directory\n";
        let dsp = Dsp::read(&Answers::read(text));
        assert_eq!(dsp.nodes.keys().collect::<Vec<_>>(), ["/dev/fastrpc-cdsp", "/dev/fastrpc-cdsp-secure"]);
        assert_eq!(dsp.nodes["/dev/fastrpc-cdsp"].value().unwrap().may, "r");
        assert!(matches!(dsp.nodes["/dev/fastrpc-cdsp-secure"], Reading::Denied(_)) && !dsp.reachable());
        assert_eq!(dsp.library.value().unwrap().mode, "644");
        // Denied stands before absent: with more rights it would be known.
        assert_eq!(dsp.firmware, Reading::Denied("/vendor/firmware_mnt/verinfo/ver_info.txt: Permission denied".to_owned()));
    }

    #[test]
    fn the_firmware_names_its_source() {
        let text = "firmware!/vendor/firmware_mnt/verinfo/ver_info.txt: names no CDSP version\nfirmware=/sys/devices/soc0/images CDSP.HT.2.9-00105-LANAI-1\n\
                    node./dev/adsprpc-smd=666 system system rw\n";
        let dsp = Dsp::read(&Answers::read(text));
        let known = Known { value: "CDSP.HT.2.9-00105-LANAI-1".to_owned(), source: "/sys/devices/soc0/images" };
        assert_eq!(dsp.firmware, Reading::Value(known));
        assert!(dsp.reachable());
        let odd = Dsp::read(&Answers::read("firmware=/etc/passwd CDSP.1\nnode./dev/adsprpc-smd=666 system rw\n"));
        assert_eq!((odd.firmware, odd.nodes.len()), (Reading::Absent("not a version".to_owned()), 0));
    }
}
