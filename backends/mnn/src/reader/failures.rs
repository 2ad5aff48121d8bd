//! What MNN's tools print when they fail. The exit status says little: `llm_bench` returns 0 after most failures, with a table of
//! absurd speeds, and a backend that is missing becomes the CPU with one line of log.

use bench_backend_api::{Failure, FailureKind};

/// A line that says that something went wrong.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// Place in the table of rules: the lower, the nearer to the cause.
    pub(super) rank: usize,
    /// Whether results printed beside it are void. A soft mark is a failure only where there are no results.
    pub(super) hard: bool,
    /// Whether the asked backend was replaced by the CPU.
    pub(super) fell_back: bool,
    /// What to tell.
    pub(super) failure: Failure,
}

struct Rule {
    /// Texts that a line must all hold.
    all: &'static [&'static str],
    kind: FailureKind,
    hard: bool,
    hint: &'static str,
}

const fn hard(all: &'static [&'static str], kind: FailureKind, hint: &'static str) -> Rule {
    Rule { all, kind, hard: true, hint }
}
const fn soft(all: &'static [&'static str], kind: FailureKind, hint: &'static str) -> Rule {
    Rule { all, kind, hard: false, hint }
}

const FALLBACK: &str = "Can't Find type=";
const ARGUMENTS: &str = "compare the arguments with `llm_bench --help`";
const FILES: &str = "push the whole model folder (config.json, llm.mnn, llm.mnn.weight, tokenizer) and give -m the path of its config.json";
const BROKEN: &str = "the model file is cut or of another MNN version: export or push it again and compare sizes";
const MEMORY: &str = "free memory, use -mmp 1 (use_mmap), a smaller context or a smaller model; \
    if there is memory enough, llm.mnn.weight is cut: compare its size with the original";
const LIBRARIES: &str =
    "put libMNN.so, libMNN_Express.so, libllm.so and the backend's library into one folder and name it in LD_LIBRARY_PATH";
const ADSP: &str = "quote the value: export ADSP_LIBRARY_PATH=\"a;b;c\" (the shell runs what follows an unquoted ';')";
const SHELL: &str = "check that the program is on the device, for this CPU, and executable (chmod 755; /sdcard allows no execution)";
const CPU_ONLY: &str = "build MNN with this backend and put its library beside libMNN.so (libMNN_CL.so, libMNN_htpops.so with its skel, the QNN \
    libraries) with LD_LIBRARY_PATH and ADSP_LIBRARY_PATH set; these numbers are the CPU's";
const QNN: &str = "the context binary must be of this device's Hexagon version and of the QAIRT version of the libraries; ADSP_LIBRARY_PATH must name \
    the folder of the skel alone, not a mix with the vendor's";
const STATE: &str = "look at the first error of the log; the model did not load";

/// Ordered from the cause to the consequence.
const RULES: &[Rule] = &[
    hard(&["invalid parameter for argument"], FailureKind::Usage, ARGUMENTS),
    hard(&["Parse arguments error"], FailureKind::Usage, ARGUMENTS),
    hard(
        &["sage: ", "llm_demo", "config.json"],
        FailureKind::Usage,
        "give a config.json and a prompt file: llm_demo config.json prompt.txt",
    ),
    hard(&["can't execute: Permission denied"], FailureKind::Infra, SHELL),
    hard(&[": Permission denied"], FailureKind::Infra, SHELL),
    hard(&[": not executable"], FailureKind::Infra, SHELL),
    hard(&["CANNOT LINK EXECUTABLE"], FailureKind::Infra, LIBRARIES),
    hard(&["error while loading shared libraries"], FailureKind::Infra, LIBRARIES),
    hard(&["dsp: inaccessible or not found"], FailureKind::Infra, ADSP),
    hard(&["dsp: not found"], FailureKind::Infra, ADSP),
    hard(&["can't execute: Is a directory"], FailureKind::Infra, ADSP),
    hard(&[": inaccessible or not found"], FailureKind::Infra, SHELL),
    hard(&["sh: ", ": not found"], FailureKind::Infra, SHELL),
    hard(&["ommand not found"], FailureKind::Infra, SHELL),
    hard(&["adb: "], FailureKind::Infra, "check `adb devices`"),
    hard(&["error: device ", "not found"], FailureKind::Infra, "check `adb devices`"),
    hard(&["reading the file: Is a directory"], FailureKind::Usage, "-m takes the path of the config.json, not of its folder"),
    hard(&["tokenizer file not found"], FailureKind::Model, FILES),
    hard(&["weight file not found"], FailureKind::Model, FILES),
    hard(&["not exist"], FailureKind::Model, FILES),
    hard(&["Load module failed"], FailureKind::Model, BROKEN),
    hard(&["Invalidate buffer to create MNN Module"], FailureKind::Model, BROKEN),
    hard(&["Create interpreter failed"], FailureKind::Model, BROKEN),
    hard(&["Not enought memory"], FailureKind::Runtime, MEMORY),
    hard(&["ot enough memory"], FailureKind::Runtime, MEMORY),
    hard(&["Memory not Enough"], FailureKind::Runtime, MEMORY),
    hard(&["Memory not enough"], FailureKind::Runtime, MEMORY),
    hard(&["Alloc buffer error"], FailureKind::Runtime, MEMORY),
    hard(&["weight acquire buffer error"], FailureKind::Runtime, MEMORY),
    hard(&["std::bad_alloc"], FailureKind::Runtime, MEMORY),
    hard(&["weightLength is 0"], FailureKind::Model, BROKEN),
    hard(&[FALLBACK], FailureKind::Runtime, CPU_ONLY),
    hard(
        &["onForward"],
        FailureKind::Runtime,
        "an operation failed while it ran: its output is void; try -a cpu to find out whether the model or the backend is at fault",
    ),
    hard(&["ERROR CODE :"], FailureKind::Runtime, "an OpenCL call failed: its output is void; update MNN or use another backend"),
    hard(&["QNN: Failed"], FailureKind::Runtime, QNN),
    hard(&["Error in file ", "error code"], FailureKind::Runtime, QNN),
    hard(&["Compute Shape Error"], FailureKind::Model, "the model's shapes don't fit together: export it again with this version of MNN"),
    hard(&["onCopyBuffer", "rror"], FailureKind::Runtime, "a copy from or to the GPU failed: its output is void"),
    hard(&["INTERNAL_ERROR"], FailureKind::Runtime, "the generation failed inside MNN: check the weights and the backend"),
    hard(&["failed due to internal error"], FailureKind::Runtime, "the generation failed inside MNN: check the weights and the backend"),
    hard(&["[Error]", "LLM in error state"], FailureKind::Model, STATE),
    hard(&["[Error]"], FailureKind::Runtime, STATE),
    hard(&["LLM init error"], FailureKind::Model, STATE),
    soft(&["QNN", "rror"], FailureKind::Runtime, QNN),
    soft(&["Qnn", "rror"], FailureKind::Runtime, QNN),
    soft(&["Qnn", "ailed"], FailureKind::Runtime, QNN),
    soft(&["QNN", "ailed"], FailureKind::Runtime, QNN),
    soft(&["Unable to open config file"], FailureKind::Model, FILES),
    soft(&["Unable to open llm_config file"], FailureKind::Model, FILES),
    soft(&["terminate called"], FailureKind::Runtime, STATE),
    soft(&["what(): "], FailureKind::Runtime, STATE),
    soft(&["Segmentation fault"], FailureKind::Runtime, "the tool crashed: look at `adb logcat -b crash`"),
    soft(&["Floating point exception"], FailureKind::Runtime, "llm_demo divides by zero with an empty prompt"),
    soft(&["Fatal signal"], FailureKind::Runtime, "the tool crashed: look at `adb logcat -b crash`"),
];

/// Short words that a shell prints alone on a line.
const ALONE: &[(&str, &str)] = &[
    ("Killed", "the system ended the process, mostly for lack of memory: look at `adb logcat` for lowmemorykiller"),
    ("Aborted", "the tool crashed: look at `adb logcat -b crash`"),
    ("Trap", "the tool crashed: look at `adb logcat -b crash`"),
    ("Bus error", "the tool crashed: look at `adb logcat -b crash`"),
    ("Illegal instruction", "the program was built for another CPU"),
];

/// What a line of log says about a failure.
pub(super) fn mark(line: &str) -> Option<Mark> {
    let line = line.trim();
    if line.starts_with(['|', '{']) {
        return None;
    }
    // Help texts speak of files that may be missing.
    if line.contains("if the file does not exist") {
        return None;
    }
    let found = RULES.iter().enumerate().find(|(_, rule)| rule.all.iter().all(|text| line.contains(text)));
    if let Some((rank, rule)) = found {
        let fell_back = rule.all == [FALLBACK];
        let message = if fell_back { fallback(line) } else { line.to_owned() };
        let failure = Failure { kind: rule.kind, message, hint: Some(rule.hint.to_owned()) };
        return Some(Mark { rank, hard: rule.hard, fell_back, failure });
    }
    let (_, hint) =
        ALONE.iter().find(|(word, _)| line == *word || line.strip_prefix(word).is_some_and(|rest| rest.trim() == "(core dumped)"))?;
    let failure = Failure { kind: FailureKind::Runtime, message: line.to_owned(), hint: Some((*hint).to_owned()) };
    Some(Mark { rank: RULES.len(), hard: false, fell_back: false, failure })
}

/// Names the backend that was asked for; the log has only its number in MNN's `MNNForwardType`.
fn fallback(line: &str) -> String {
    let number = line.split(FALLBACK).nth(1).unwrap_or("").chars().take_while(char::is_ascii_digit).collect::<String>();
    let name = forward_type(&number).map_or_else(|| format!("backend {number}"), |(name, _)| format!("the {name} backend"));
    format!("{name} was asked for and the CPU ran instead ({line})")
}

/// Name and unit of a number of `MNNForwardType`.
pub(super) fn forward_type(number: &str) -> Option<(&'static str, Option<&'static str>)> {
    Some(match number.trim() {
        "0" => ("CPU", Some("cpu")),
        "13" => ("CPU extension", Some("cpu")),
        "1" => ("Metal", Some("gpu")),
        "2" => ("CUDA", Some("gpu")),
        "3" => ("OpenCL", Some("gpu")),
        "5" => ("NN (QNN)", Some("npu")),
        "6" => ("OpenGL", Some("gpu")),
        "7" => ("Vulkan", Some("gpu")),
        "8" => ("USER_0 (HIAI)", Some("npu")),
        "9" => ("USER_1 (TensorRT or Hexagon)", None),
        _ => return None,
    })
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
            ("Can't Find type=3 backend, use 0 instead", true, FailureKind::Runtime, "OpenCL"),
            ("[Error]: tokenizer file not found: /m/tokenizer.txt", true, FailureKind::Model, "tokenizer"),
            ("E/MNNJNI: [Error]: something new", true, FailureKind::Runtime, "something new"),
            ("/system/bin/sh: ./llm_bench: can't execute: Permission denied", true, FailureKind::Infra, "Permission"),
            ("/system/bin/sh: /vendor/lib/rfsa/adsp: can't execute: Is a directory", true, FailureKind::Infra, "rfsa"),
            ("Segmentation fault (core dumped)", false, FailureKind::Runtime, "Segmentation"),
            ("QNN: Failed to validate binary: 1002", true, FailureKind::Runtime, "1002"),
            (
                "2023-05-24 11:41:18.930 10551-11073 I/MNNJNI: Can't Find type=7 backend, use 0 instead",
                true,
                FailureKind::Runtime,
                "Vulkan",
            ),
            ("Killed", false, FailureKind::Runtime, "Killed"),
            ("[QNN] graph finalize error code 6000", false, FailureKind::Runtime, "6000"),
        ];
        for (line, hard, kind, part) in cases {
            let mark = mark(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((mark.hard, mark.failure.kind), (hard, kind), "{line}");
            assert!(mark.failure.message.contains(part) && mark.failure.hint.is_some(), "{line}: {}", mark.failure.message);
        }
    }

    #[test]
    fn usual_lines_are_no_failures() {
        for line in
            ["The device supports: i8sdot:1, fp16:1", "Can't open file:tmp/mnn_cachefile.bin", "Load Cache file error.", "Killed time", ""]
        {
            assert!(mark(line).is_none(), "{line}");
        }
    }

    #[test]
    fn statuses_of_transcripts() {
        assert_eq!(exit_status("RC=139"), Some(139));
        assert_eq!(exit_status(" exit status: 1 "), Some(1));
        assert_eq!(exit_status("rc"), None);
        assert_eq!(exit_status("exit"), None);
    }
}
