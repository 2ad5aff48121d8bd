//! What llama.cpp's tools print when they fail, and what tells where a run happened.

use bench_backend_api::{Failure, FailureKind};

/// A line that says that something went wrong.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// Place in the table of rules: the lower, the nearer to the cause.
    pub(super) rank: usize,
    /// How much it weighs.
    pub(super) weight: Weight,
    /// What to tell.
    pub(super) failure: Failure,
}

/// How much a line weighs beside results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// A failed run.
    Hard,
    /// A failure only if there are no results.
    Soft,
    /// The NPU's session did not open: what ran, ran elsewhere.
    Session,
}

struct Rule {
    /// Texts that a line must all hold.
    all: &'static [&'static str],
    kind: FailureKind,
    weight: Weight,
    hint: &'static str,
}

const fn rule(all: &'static [&'static str], kind: FailureKind, hint: &'static str) -> Rule {
    Rule { all, kind, weight: Weight::Hard, hint }
}
const fn soft(all: &'static [&'static str], kind: FailureKind, hint: &'static str) -> Rule {
    Rule { all, kind, weight: Weight::Soft, hint }
}
const fn session(all: &'static [&'static str]) -> Rule {
    Rule { all, kind: FailureKind::Runtime, weight: Weight::Session, hint: "" }
}

const ARGUMENTS: &str = "compare the arguments with --help: they change from build to build (--mmap 0 became --load-mode none)";
const DEVICES: &str = "`llama-bench --list-devices` shows the devices; HTP0 needs libggml-hexagon.so and libggml-htp-v*.so, GPUOpenCL the vendor's libOpenCL.so";
const MODEL: &str = "check the path, that the GGUF is complete (compare its size), and that this build is new enough for its architecture";
const MEMORY: &str =
    "use a smaller context (-c, -d), batch (-b, -ub) or model; on the NPU more sessions (GGML_HEXAGON_NDEV, about 3.5 GB each)";
const BACKEND: &str = "put libggml-cpu*.so and the other backends beside the executable (or into lib/ with LD_LIBRARY_PATH)";
const LIBRARIES: &str = "put lib/*.so on the device and name the folder in LD_LIBRARY_PATH";
const SHELL: &str = "check that the program is on the device, for this CPU, and executable (chmod 755; /sdcard allows no execution)";
const ADSP: &str = "quote the value: export ADSP_LIBRARY_PATH=\"a;b;c\" (the shell runs what follows an unquoted ';')";
const DSP: &str = "the DSP's process was lost: fewer sessions (GGML_HEXAGON_NDEV) or a smaller batch; `adb logcat -s adsprpc` says why";
const CRASH: &str = "the tool crashed: `adb logcat -b crash` has the trace";
const DECODE: &str = "the computation failed on the device: try --device none to find out whether the model or the backend is at fault";
const LOG: &str = "run it with -v and look at the first error";

/// Ordered from the cause to the consequence.
const RULES: &[Rule] = &[
    rule(&["can't execute: Permission denied"], FailureKind::Infra, SHELL),
    rule(&[": Permission denied"], FailureKind::Infra, SHELL),
    rule(&["CANNOT LINK EXECUTABLE"], FailureKind::Infra, LIBRARIES),
    rule(&["error while loading shared libraries"], FailureKind::Infra, LIBRARIES),
    rule(&["dsp: inaccessible or not found"], FailureKind::Infra, ADSP),
    rule(&["can't execute: Is a directory"], FailureKind::Infra, ADSP),
    rule(&[": inaccessible or not found"], FailureKind::Infra, SHELL),
    rule(&["sh: ", ": not found"], FailureKind::Infra, SHELL),
    rule(&["ommand not found"], FailureKind::Infra, SHELL),
    rule(&["adb: "], FailureKind::Infra, "check `adb devices`"),
    rule(&["error: invalid device"], FailureKind::Usage, DEVICES),
    rule(&["Device '", "' not found"], FailureKind::Usage, DEVICES),
    rule(&["error: device ", "not found"], FailureKind::Infra, "check `adb devices`"),
    rule(&["backend is not loaded"], FailureKind::Infra, BACKEND),
    rule(&["no backends are loaded"], FailureKind::Infra, BACKEND),
    rule(&["failed to load backend"], FailureKind::Infra, BACKEND),
    rule(&["dspqueue_", "failed"], FailureKind::Runtime, DSP),
    rule(&["dspqueue_", "error 0x"], FailureKind::Runtime, DSP),
    session(&["ggml-hex", "failed to open session"]),
    session(&["ggml-hex", "failed to get URI"]),
    session(&["ggml-hex", "failed to get-uri"]),
    session(&["ggml-hex", "get-uri failed"]),
    session(&["ggml-hex", "failed to get CDSP domain"]),
    session(&["ggml-hex", "unable to get domain struct"]),
    session(&["ggml-hex", "failed to dlsym"]),
    session(&["ggml-hex", "failed to load"]),
    session(&["ggml-hex", "failed to start"]),
    session(&["ggml-hex", "failed to reserve"]),
    session(&["ggml-hex", "failed to create device"]),
    session(&["ggml-hex", "failed to create session"]),
    session(&["ggml-hex", "ession", "error 0x"]),
    rule(&["ggml-hex", "error 0x"], FailureKind::Runtime, DSP),
    rule(&["std::bad_alloc"], FailureKind::Runtime, MEMORY),
    rule(&["out of memory"], FailureKind::Runtime, MEMORY),
    rule(&["failed to allocate"], FailureKind::Runtime, MEMORY),
    rule(&["unable to allocate"], FailureKind::Runtime, MEMORY),
    rule(&["ErrorOutOfDeviceMemory"], FailureKind::Runtime, MEMORY),
    rule(&["CL_MEM_OBJECT_ALLOCATION_FAILURE"], FailureKind::Runtime, MEMORY),
    rule(&["CL_OUT_OF_"], FailureKind::Runtime, MEMORY),
    rule(&["ErrorDeviceLost"], FailureKind::Device, DECODE),
    rule(&["invalid magic"], FailureKind::Model, MODEL),
    rule(&["not within the file bounds"], FailureKind::Model, MODEL),
    rule(&["unknown model architecture"], FailureKind::Model, MODEL),
    rule(&["error loading model"], FailureKind::Model, MODEL),
    rule(&["failed to load model"], FailureKind::Model, MODEL),
    rule(&["unable to load model"], FailureKind::Model, MODEL),
    rule(&["failed to open GGUF file"], FailureKind::Model, MODEL),
    rule(&["failed to create context"], FailureKind::Runtime, MEMORY),
    rule(&["failed to create llama_context"], FailureKind::Runtime, MEMORY),
    rule(&["failed to initialize the context"], FailureKind::Runtime, MEMORY),
    rule(&["unable to create context"], FailureKind::Runtime, MEMORY),
    rule(&["GGML_ASSERT("], FailureKind::Runtime, CRASH),
    rule(&["GGML_ABORT"], FailureKind::Runtime, CRASH),
    rule(&["fatal error"], FailureKind::Runtime, CRASH),
    rule(&["failed to decode"], FailureKind::Runtime, DECODE),
    rule(&["failed to eval"], FailureKind::Runtime, DECODE),
    rule(&["failed to run prompt"], FailureKind::Runtime, DECODE),
    rule(&["failed to run gen"], FailureKind::Runtime, DECODE),
    rule(&["llama_decode() failed"], FailureKind::Runtime, DECODE),
    rule(&["graph_compute: ", "failed with error"], FailureKind::Runtime, DECODE),
    rule(&["invalid parameter for argument"], FailureKind::Usage, ARGUMENTS),
    rule(&["error: unknown argument"], FailureKind::Usage, ARGUMENTS),
    rule(&["error: invalid argument"], FailureKind::Usage, ARGUMENTS),
    rule(&["error while handling argument"], FailureKind::Usage, ARGUMENTS),
    rule(&["llama_bench: error:"], FailureKind::Runtime, LOG),
    rule(&["llama-bench: error:"], FailureKind::Runtime, LOG),
    rule(&["main: error:"], FailureKind::Runtime, LOG),
    soft(&["error: "], FailureKind::Usage, ARGUMENTS),
    soft(&["terminate called"], FailureKind::Runtime, CRASH),
    soft(&["what(): "], FailureKind::Runtime, CRASH),
    soft(&["Segmentation fault"], FailureKind::Runtime, CRASH),
    soft(&["Fatal signal"], FailureKind::Runtime, CRASH),
];

/// Short words that a shell prints alone on a line.
const ALONE: &[(&str, &str)] = &[
    ("Killed", "the system ended the process, mostly for lack of memory: look at `adb logcat` for lowmemorykiller"),
    ("Aborted", CRASH),
    ("Bus error", CRASH),
    ("Illegal instruction", "the program was built for another CPU: build without GGML_NATIVE, or with all CPU variants"),
];

/// Lines of `ggml-hex` that are no harm.
const HARMLESS: &[&str] = &["alling back", "defaulting", "ETM", "experimental"];

/// What a line of log says about a failure.
pub(super) fn mark(line: &str) -> Option<Mark> {
    let line = line.trim();
    // Lines of JSON, tables, CSV and SQL.
    if line.starts_with(['"', '{', '}', ']', '|']) || line == "[" || line.starts_with("INSERT INTO") {
        return None;
    }
    if line.contains("ggml-hex") && HARMLESS.iter().any(|word| line.contains(word)) {
        return None;
    }
    if let Some((rank, rule)) = RULES.iter().enumerate().find(|(_, rule)| rule.all.iter().all(|text| line.contains(text))) {
        let hint = if rule.weight == Weight::Session { session_hint(line) } else { rule.hint };
        let failure = Failure { kind: rule.kind, message: line.to_owned(), hint: Some(hint.to_owned()) };
        return Some(Mark { rank, weight: rule.weight, failure });
    }
    let (_, hint) =
        ALONE.iter().find(|(word, _)| line == *word || line.strip_prefix(word).is_some_and(|rest| rest.trim() == "(core dumped)"))?;
    let failure = Failure { kind: FailureKind::Runtime, message: line.to_owned(), hint: Some((*hint).to_owned()) };
    Some(Mark { rank: RULES.len(), weight: Weight::Soft, failure })
}

/// The remedy for a session that did not open, by its AEE code.
fn session_hint(line: &str) -> &'static str {
    if line.contains("0x80000406") {
        "0x80000406 is AEE_EUNABLETOLOAD: the DSP found no skel. Put libggml-htp-v*.so of the device's Hexagon version into the folder of \
         ADSP_LIBRARY_PATH (quoted, that folder alone); some vendors refuse unsigned code on the DSP"
    } else if line.contains("0x14") {
        "0x14 is AEE_EUNSUPPORTED: the FastRPC driver of this device lacks this call; take an older build or a newer device image"
    } else {
        "the NPU was not reached: check ADSP_LIBRARY_PATH, libcdsprpc.so in the vendor's libraries, the Hexagon version and the rights on /dev/fastrpc-cdsp"
    }
}

/// Whether a line has the form of the tools' own log, so that it is not a sentence of a model.
pub(super) fn is_log(line: &str) -> bool {
    const STARTS: &[&str] = &[
        "ggml",
        "llama_",
        "llama-",
        "main:",
        "common_",
        "gguf_",
        "load_",
        "srv ",
        "slot ",
        "terminate called",
        "what():",
        "CANNOT LINK",
        "/system/bin/sh",
        "sh:",
        "bash:",
        "graph_",
        "process_ubatch",
        "decode:",
    ];
    let line = line.trim_start();
    // `0.02.432.302 I llama_...` and `E ggml-hex: ...`
    let bare = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
    let bare = bare.strip_prefix(['D', 'I', 'W', 'E']).and_then(|rest| rest.strip_prefix(' ')).unwrap_or(bare).trim_start();
    STARTS.iter().any(|start| bare.starts_with(start)) || line.contains("GGML_ASSERT(") || line.contains(".cpp:")
}

/// Where a log says that the run happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// A session of the NPU was opened, or weights or operations were there.
    pub(super) npu: bool,
    /// Weights were on the GPU.
    pub(super) gpu: bool,
    /// No layer left the CPU.
    pub(super) none_offloaded: bool,
}
impl Evidence {
    /// Takes in a line.
    pub(super) fn note(&mut self, line: &str) {
        self.npu |= line.contains("ggml-hex") && line.contains("new session") && line.contains("session-id");
        if line.contains("model buffer size") {
            self.npu |= line.contains("HTP");
            self.gpu |= ["OpenCL", "Vulkan", "CUDA", "Metal"].iter().any(|name| line.contains(name));
        }
        self.npu |= line.contains("profile-op ");
        self.none_offloaded |= line.contains("offloaded 0/");
    }

    /// Joins that of two files.
    pub(super) fn join(self, other: Self) -> Self {
        Self { npu: self.npu || other.npu, gpu: self.gpu || other.gpu, none_offloaded: self.none_offloaded || other.none_offloaded }
    }
}

/// The exit status that a shell transcript holds: a line `RC=139`, `exit status: 1`.
pub(super) fn exit_status(line: &str) -> Option<i32> {
    let lower = line.trim().to_ascii_lowercase();
    let rest = ["rc", "exit code", "exit status", "exit"].iter().find_map(|word| lower.strip_prefix(word))?;
    rest.trim_start().strip_prefix(['=', ':'])?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_their_cause() {
        let cases = [
            ("ggml-hex: failed to open session 0 : error 0x80000406", Weight::Session, FailureKind::Runtime),
            ("ggml-hex: HTP0 failed to open session : error 0x80000406", Weight::Session, FailureKind::Runtime),
            ("ggml-hex: failed to get URI for session 0 : error 0x14", Weight::Session, FailureKind::Runtime),
            ("ggml-hexagon.cpp:1819: ggml-hex: dspqueue_read failed: 0x0000002e", Weight::Hard, FailureKind::Runtime),
            ("llama_bench: error: failed to load model '/nope.gguf'", Weight::Hard, FailureKind::Model),
            ("error: invalid device: GPUOpenCL", Weight::Hard, FailureKind::Usage),
            ("error: invalid parameter for argument: -p", Weight::Hard, FailureKind::Usage),
            ("ggml/src/ggml-backend.cpp:476: GGML_ASSERT(device) failed", Weight::Hard, FailureKind::Runtime),
            ("Aborted (core dumped)", Weight::Soft, FailureKind::Runtime),
        ];
        for (line, weight, kind) in cases {
            let mark = mark(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((mark.weight, mark.failure.kind), (weight, kind), "{line}");
            assert!(mark.failure.hint.is_some_and(|hint| !hint.is_empty()), "{line}");
        }
    }

    #[test]
    fn usual_lines_are_no_failures() {
        for line in [
            "ggml-hex: Hexagon backend (experimental) : allocating new registry : ndev 1",
            "ggml-hex: failed to get URI for session 0 : error 0x14. Falling back to single session URI: x",
            "load_backend: loaded CPU backend from /x/libggml-cpu-zen4.so",
            "",
        ] {
            assert!(mark(line).is_none(), "{line}");
        }
    }

    #[test]
    fn logs_and_sentences() {
        for line in ["llama_decode: x", "0.02.432.302 E llama_decode: x", "E ggml-hex: x", "/a/b.cpp:12: x"] {
            assert!(is_log(line), "{line}");
        }
        for line in ["He said: out of memory", "I failed to load model trains", "error: invalid argument: x"] {
            assert!(!is_log(line), "{line}");
        }
    }
}
