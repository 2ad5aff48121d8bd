//! The test phone and a private adb server for a test. Both end with the test, however it ends: they live as long as a pipe from it.

#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use bench::device::adb::{
    AdbError, Address, DeviceState, Server, connect,
    remote::{Patience, Remote},
};

/// Whether this machine can have a test phone. `BENCH_REQUIRE_PHONE=1` (CI) makes a missing one a failure.
pub fn possible() -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    let adb = Command::new("adb").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    let missing = match (root, adb) {
        (true, true) => return true,
        (false, _) => "root (namespaces of its own)",
        (true, false) => "adb (apt-get install adb)",
    };
    assert!(std::env::var_os("BENCH_REQUIRE_PHONE").is_none(), "the test phone needs {missing}");
    eprintln!("skipped: the test phone needs {missing}");
    false
}

/// A phone; see tests/device/start.sh for its commands.
pub struct Phone {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// `HOST:PORT`, its serial.
    pub address: String,
}

impl Phone {
    pub fn start() -> Self {
        Self::start_as("x86_64")
    }

    /// A phone that says that it is `machine`: with `aarch64` it runs such programs through qemu-user, see tests/device/README.md.
    pub fn start_as(machine: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/start.sh");
        let script = std::env::var_os("BENCH_TEST_DEVICE").map_or(script, |d| PathBuf::from(d).join("start.sh"));
        let mut child = Command::new(script)
            .env("BENCH_PHONE_MACHINE", machine)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start.sh");
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut phone = Self { child, commands, answers, address: String::new() };
        let line = phone.answer();
        let address = line.strip_prefix("ready ").unwrap_or_else(|| panic!("the phone said {line:?}"));
        address.clone_into(&mut phone.address);
        phone
    }

    /// What the simulated chip really did: seconds of `CLOCK_MONOTONIC`, then temperatures of CPU, NPU, skin and battery in C, the highest
    /// frequency of the prime core in MHz, and the step of throttling.
    pub fn truth(&self) -> Vec<[f64; 7]> {
        self.known("truth.csv")
            .into_iter()
            .map(|f: [f64; 7]| [f[0], f[1] / 1e3, f[2] / 1e3, f[3] / 1e3, f[4] / 1e3, f[5] / 1e3, f[6]])
            .collect()
    }

    /// What its power rails showed, after `board`: seconds of `CLOCK_MONOTONIC`, W of the whole board and of its processor.
    pub fn rails(&self) -> Vec<[f64; 3]> {
        self.known("rails.csv").into_iter().map(|f: [f64; 3]| [f[0], f[1] / 1e6, f[2] / 1e6]).collect()
    }

    /// The whole lines of a file beside the phone's folders: the last one may be on its way.
    fn known<const N: usize>(&self, file: &str) -> Vec<[f64; N]> {
        let last: u32 = self.address.split([':', '.']).nth(3).and_then(|n| n.parse().ok()).expect("an address");
        let state = std::env::var_os("BENCH_PHONES").map_or_else(|| PathBuf::from("/var/tmp/bench-phones"), PathBuf::from);
        let text = std::fs::read_to_string(state.join(((last - 2) / 4).to_string()).join(file)).expect("what the phone knows");
        let line = |l: &str| l.split(',').map(|f| f.parse::<f64>().ok()).collect::<Option<Vec<f64>>>()?.try_into().ok();
        text.split_inclusive('\n').filter(|l| l.ends_with('\n')).filter_map(|l| line(l.trim_end())).collect()
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line.trim_end().to_owned()
    }

    /// Gives a command and waits until it is carried out.
    pub fn tell(&mut self, command: &str) {
        writeln!(self.commands.as_ref().expect("open"), "{command}").expect("the phone listens");
        assert_eq!(self.answer(), format!("ok {command}"));
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.child.wait();
    }
}

/// An adb server of the test alone: another port, another home, no USB devices of this machine.
pub struct Adbd {
    child: Child,
    life: Option<ChildStdin>,
    pub address: Address,
}

impl Adbd {
    pub fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        Self::start_at(port)
    }

    pub fn start_at(port: u16) -> Self {
        let script = "[ ! -d /dev/bus/usb ] || mount -t tmpfs none /dev/bus/usb\n\
             adb -L tcp:localhost:$1 nodaemon server >/dev/null 2>&1 & p=$!\n\
             read -r _; kill -9 $p; wait $p; rm -rf \"$HOME\"";
        let home = std::env::temp_dir().join(format!("bench-adb-{port}"));
        std::fs::create_dir_all(&home).expect("a folder");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh", &port.to_string()]);
        command.env("HOME", home).env("ADB_LOCAL_TRANSPORT_MAX_PORT", "5554").env_remove("ADB_SERVER_SOCKET");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("unshare");
        let life = child.stdin.take();
        let until = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "the adb server does not come up");
            thread::sleep(Duration::from_millis(20));
        }
        Self { child, life, address: Address::Tcp("127.0.0.1".to_owned(), port) }
    }
}

impl Drop for Adbd {
    fn drop(&mut self) {
        drop(self.life.take());
        let _ = self.child.wait();
    }
}

/// A phone and a server that knows it.
pub struct Lab {
    pub phone: Phone,
    pub adb: Adbd,
    pub server: Server,
    pub folder: tempfile::TempDir,
}

/// Short limits: a test that waits for a hung device waits this long.
pub const PATIENCE: Patience = Patience { answer: Duration::from_secs(3), stall: Duration::from_secs(3) };

impl Lab {
    /// `None` (and words) where a phone is not possible.
    pub async fn start() -> Option<Self> {
        if !possible() {
            return None;
        }
        let (phone, adb) = (Phone::start(), Adbd::start());
        let server = Server::reach(adb.address.clone()).await.expect("the server");
        let lab = Self { phone, adb, server, folder: tempfile::tempdir().expect("a folder") };
        connect::connect(&lab.server, &lab.phone.address).await.expect("adb connect");
        lab.ready().await;
        Some(lab)
    }

    /// Waits until the server calls the phone usable.
    pub async fn ready(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let devices = self.server.devices().await.unwrap_or_default();
            if devices.iter().any(|d| d.serial == self.phone.address && d.state == DeviceState::Device)
                && self.remote().sh("hello", "true").await.is_ok()
            {
                return;
            }
            assert!(Instant::now() < until, "the phone does not come back: {devices:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub fn remote(&self) -> Remote {
        Remote::new(self.server.clone(), &self.phone.address, PATIENCE)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The agent for the phone, static; built once. `BENCH_TEST_AGENT` names one that is there.
pub fn agent() -> &'static Path {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    AGENT.get_or_init(|| std::env::var_os("BENCH_TEST_AGENT").map_or_else(|| static_agent("x86_64"), Into::into))
}

/// Builds the static agent for a processor.
pub fn static_agent(arch: &str) -> PathBuf {
    let target = format!("{arch}-unknown-linux-musl");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("agent");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "bench-agent", "--target", &target, "--target-dir"])
        .arg(&folder)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", "-C linker=rust-lld -C link-self-contained=yes")
        .status();
    assert!(status.is_ok_and(|s| s.success()), "the static agent can't be built: rustup target add {target}");
    folder.join(target).join("debug/bench-agent")
}

/// Insists on a lost device, told by somebody or found out by our own limit.
#[track_caller]
pub fn expect_lost<T: std::fmt::Debug>(result: Result<T, AdbError>) -> AdbError {
    match result {
        Err(e) if e.is_lost() => e,
        other => panic!("not lost: {other:?}"),
    }
}
