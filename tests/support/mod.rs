//! What the end-to-end tests share: running `bench` with a limit, scenarios for the stand-in runner, reading a run folder, and
//! looking for processes that should be gone. Nothing here uses the code under test.

#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

pub mod python;
pub mod runs;

/// The most that a single command of a test may take on a busy machine.
pub const LIMIT: Duration = Duration::from_mins(2);

/// The folder of this repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The stand-in runner.
pub fn runner() -> PathBuf {
    root().join("tests/standins/runner.py")
}

/// `bench` in a folder of the test, with a cache of its own and no SDK.
pub fn bench(dir: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_bench"));
    assert!(program.with_file_name("bench-agent").is_file(), "bench-agent is not built: run `cargo build --workspace` before the tests");
    let mut command = Command::new(program);
    command.current_dir(dir).env("BENCH_CACHE", dir.join("cache")).stdin(Stdio::null());
    for name in ["QAIRT_SDK_ROOT", "QNN_SDK_ROOT", "BENCH_LIBEXEC", "BENCH_LANG"] {
        command.env_remove(name);
    }
    command
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}
impl Ran {
    /// The exit code; a signal is a failure of the test.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }
    /// Insists on an exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
    /// Insists on words in standard error.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in:\n{}", self.stderr);
        }
        self
    }
}

/// Runs a command to its end; one that hangs is killed and is a failed test.
#[track_caller]
pub fn run(command: &mut Command) -> Ran {
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn"))
}

/// Waits for a spawned command (see [`run`]).
#[track_caller]
pub fn finish(mut child: Child) -> Ran {
    fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let until = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().expect("wait") {
            break status;
        }
        if Instant::now() > until {
            let _ = child.kill();
            panic!("did not end within {LIMIT:?}: {}", stderr.join().unwrap_or_default());
        }
        thread::sleep(Duration::from_millis(2));
    };
    Ran { status, stdout: stdout.join().expect("stdout"), stderr: stderr.join().expect("stderr") }
}

/// Waits until something is true; panics after 20 s.
#[track_caller]
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !happened() {
        assert!(Instant::now() < until, "never happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Tokens of the prompts that the stand-in scenarios ask for, and of the answers.
pub const PROMPT: u32 = 16;
/// Tokens of the answers.
pub const GENERATED: u32 = 8;
const VOCAB: u32 = 64;

/// A scenario for the stand-in runner, and how it deviates from the usual.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub command: Vec<String>,
    pub variants: Vec<&'static str>,
    pub launches: u32,
    pub timeout: &'static str,
    pub seed: u32,
    /// What stands in `[device]`.
    pub device: String,
    /// Bytes of a file that is the model; none when 0.
    pub model_bytes: usize,
}
impl Default for Scenario {
    fn default() -> Self {
        let command = vec!["python3".to_owned(), runner().display().to_string()];
        Self {
            name: "faults",
            command,
            variants: vec!["ok"],
            launches: 1,
            timeout: "60s",
            seed: 1,
            device: "local = true".to_owned(),
            model_bytes: 0,
        }
    }
}
impl Scenario {
    /// Writes the scenario and its geometry into a folder.
    pub fn write(&self, dir: &Path) -> PathBuf {
        let Self { name, command, variants, launches, timeout, seed, device, model_bytes } = self;
        // Files of a model that bench makes would need Python.
        let own = if *model_bytes == 0 { "seed = 1\n" } else { "" };
        let geometry = format!(
            "name = \"tiny\"\nlayers = 1\nhidden = 8\nheads = 1\nkv-heads = 1\nhead-dim = 8\nffn = 8\nvocab = {VOCAB}\nrope-theta = 10000.0\n\
             norm-eps = 1e-5\ntied-embeddings = false\nexperts = 0\nlm-head-bits = 8\nembedding-bits = 16\n{own}bos = 0\neos = 1\npad = 2\n"
        );
        fs::write(dir.join("tiny.toml"), geometry).expect("write");
        let text = format!(
            "name = \"{name}\"\n[device]\n{device}\n[models.tiny]\ncontext = 64\nchunk = 16\ngeometry = \"tiny.toml\"\n\
             [backends.standin]\ncommand = {command:?}\n\
             [matrix]\nbackend = \"standin\"\nmodel = \"tiny\"\nquant = \"fp32\"\nprompt-tokens = {PROMPT}\ngen-tokens = {GENERATED}\nvariant = {variants:?}\n\
             [measure]\nqueries = 2\nwarmup = {{ min = 1, max = 1 }}\nrepetitions = {{ min = {launches}, max = {launches} }}\n\
             timeout = \"{timeout}\"\nseed = {seed}\n[verify]\nreference = \"none\"\n"
        );
        let mut text = text;
        if *model_bytes > 0 {
            fs::write(dir.join("weights.bin"), vec![7; *model_bytes]).expect("write");
            text.push_str("[[artifact]]\nmodel = \"tiny\"\nquant = \"fp32\"\nbackend = \"standin\"\nfiles = [\"weights.bin\"]\n");
        }
        let path = dir.join(format!("{name}.toml"));
        fs::write(&path, text).expect("write");
        path
    }
}

/// The only run folder in `out`.
#[track_caller]
pub fn only_run(out: &Path) -> PathBuf {
    let mut all: Vec<PathBuf> = fs::read_dir(out).expect("run folders").map(|e| e.expect("entry").path()).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// A row of a table by column.
pub type Row = BTreeMap<String, String>;

/// All rows of a table.
#[track_caller]
pub fn table(run: &Path, name: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(run.join(name)).unwrap_or_else(|e| panic!("{name} of {}: {e}", run.display()));
    let rows: Result<Vec<Row>, _> = reader.deserialize().collect();
    rows.unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The events of a journal; every line must be JSON.
#[track_caller]
pub fn journal(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("journal.jsonl")).expect("journal");
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

/// Events of a kind.
pub fn events<'a>(journal: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    journal.iter().filter(move |e| e["event"] == kind)
}

/// A number of a row; an empty field is `None`.
#[track_caller]
pub fn number(row: &Row, column: &str) -> Option<f64> {
    let text = row.get(column).unwrap_or_else(|| panic!("no column {column}"));
    (!text.is_empty()).then(|| text.parse().unwrap_or_else(|e| panic!("{column} {text:?}: {e}")))
}

/// Command lines of living processes that have a text in their command line or work in a folder that has it in its name.
pub fn processes_with(text: &str) -> Vec<String> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid == me || !pid.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let cwd = fs::read_link(entry.path().join("cwd")).map(|p| p.display().to_string()).unwrap_or_default();
        // A zombie has neither.
        if line.contains(text) || cwd.contains(text) {
            found.push(format!("{pid}: {line} in {cwd}"));
        }
    }
    found
}

/// Bytes of all files below a folder, as allocated on the disk.
pub fn disk_use(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut sum = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        sum += if meta.is_dir() { disk_use(&entry.path()) } else { meta.blocks() * 512 };
    }
    sum
}

/// Wraps a command line in new namespaces; `None` where this machine does not let us.
pub fn unshare(flags: &str) -> Option<Vec<String>> {
    [vec![flags.to_owned()], vec!["-r".to_owned(), flags.to_owned()]].into_iter().find_map(|options| {
        let works = Command::new("unshare").args(&options).arg("true").stderr(Stdio::null()).status().is_ok_and(|s| s.success());
        works.then(|| ["unshare".to_owned()].into_iter().chain(options).collect())
    })
}

/// The browser.
pub fn chromium() -> &'static str {
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .into_iter()
        .find(|p| fs::exists(p).unwrap_or(false))
        .expect("no Chromium: run `apt-get install chromium` (tests/run.sh does)")
}
