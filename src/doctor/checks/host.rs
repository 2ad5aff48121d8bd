//! This computer.

use std::path::PathBuf;

use crate::doctor::{Check, Said};

/// An adb server and what it said.
#[derive(Debug, Clone)]
pub struct AdbServer {
    /// Its address.
    pub address: String,
    /// Version of its protocol (41 is that of adb 1.0.41), or why it does not answer.
    pub version: Result<u32, String>,
    /// Devices that it knows.
    pub devices: usize,
}

/// What is known of this computer.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Phones are meant to be measured from here.
    pub phones: bool,
    /// The adb servers.
    pub servers: Vec<AdbServer>,
    /// The QAIRT SDK: its version, if it tells one, and its folder.
    pub sdk: Option<(Option<String>, PathBuf)>,
    /// Version of the Python of the pinned environment.
    pub python: Option<String>,
    /// Android's NDK.
    pub ndk: Option<PathBuf>,
}

/// The list.
pub static CHECKS: &[Check<Host>] = &[
    Check { id: "adb-server", why: "everything on a phone goes through an adb server", of: adb_server },
    Check { id: "qairt-sdk", why: "qnn, and Genie on phones, run the libraries and programs of your own QAIRT SDK", of: sdk },
    Check { id: "python", why: "the engines of a PC, and models made on the spot, come from a pinned Python environment", of: python },
    Check { id: "ndk", why: "our runners, which time single tokens on a phone, are linked by Android's NDK", of: ndk },
];

fn adb_server(host: &Host) -> Vec<Said> {
    let answers = host.servers.iter().any(|s| s.version.is_ok());
    let one = |server: &AdbServer| {
        let AdbServer { address, version, devices } = server;
        match version {
            Ok(version) => Said::ok(format!("{address}: version 1.0.{version}, {devices} device{}", if *devices == 1 { "" } else { "s" })),
            Err(words) => {
                let fix = "adb start-server, or name the right one with -H and -P, --adb-server or ADB_SERVER_SOCKET";
                if answers { Said::warning(words, fix) } else { Said::error(words, fix) }
            }
        }
    };
    if host.phones { host.servers.iter().map(one).collect() } else { Vec::new() }
}

fn sdk(host: &Host) -> Vec<Said> {
    vec![match &host.sdk {
        Some((Some(version), root)) => Said::ok(format!("{version} in {}", root.display())),
        Some((None, root)) => Said::note(format!("{}, which does not tell its version", root.display())),
        None => Said::warning("none", "set QAIRT_SDK_ROOT to its folder, or run `bench runtimes install qairt --accept-licence`"),
    }]
}

fn python(host: &Host) -> Vec<Said> {
    vec![match &host.python {
        Some(version) => Said::ok(format!("{version}, with the pinned packages")),
        None if host.phones => Said::note("not installed; phones do without it"),
        None => Said::warning("not installed", "bench runtimes install python"),
    }]
}

fn ndk(host: &Host) -> Vec<Said> {
    match &host.ndk {
        _ if !host.phones => Vec::new(),
        Some(path) => vec![Said::ok(path.display().to_string())],
        None => vec![Said::note("ANDROID_NDK_HOME is not set; it is needed only to build the runners (`bench runtimes build --ndk DIR`)")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Severity, examine};

    fn severities(host: &Host) -> Vec<(&'static str, Severity)> {
        examine(CHECKS, "this computer", host).into_iter().map(|f| (f.check, f.severity)).collect()
    }

    fn server(version: Result<u32, String>) -> AdbServer {
        AdbServer { address: "tcp:127.0.0.1:5037".to_owned(), version, devices: 1 }
    }

    #[test]
    fn one_silent_server_is_a_warning_and_all_silent_an_error() {
        let bare = Host { phones: true, servers: vec![server(Err("no adb server".to_owned()))], ..Host::default() };
        let expected =
            [("adb-server", Severity::Error), ("qairt-sdk", Severity::Warning), ("python", Severity::Note), ("ndk", Severity::Note)];
        assert_eq!(severities(&bare), expected);
        let two = Host { servers: vec![server(Err("no adb server".to_owned())), server(Ok(41))], ..bare };
        let found = examine(CHECKS, "this computer", &two);
        assert_eq!((found[0].severity, found[1].what.as_str()), (Severity::Warning, "tcp:127.0.0.1:5037: version 1.0.41, 1 device"));
    }

    #[test]
    fn this_computer_alone_needs_no_adb() {
        let host = Host { servers: vec![server(Err("none".to_owned()))], ..Host::default() };
        assert_eq!(severities(&host), [("qairt-sdk", Severity::Warning), ("python", Severity::Warning)]);
    }
}
