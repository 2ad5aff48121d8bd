//! What llama.cpp's tools print when they fail, and what tells where a run happened.

use bench_backend_api::knowledge::Mark;

use crate::TABLE;

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
    TABLE.mark(line)
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

#[cfg(test)]
mod tests {
    use bench_backend_api::{FailureKind, knowledge::Weight};

    use super::*;

    #[test]
    fn lines_name_their_cause() {
        let cases = [
            ("ggml-hex: failed to open session 0 : error 0x80000406", Weight::Elsewhere, FailureKind::Runtime),
            ("ggml-hex: HTP0 failed to open session : error 0x80000406", Weight::Elsewhere, FailureKind::Runtime),
            ("ggml-hex: failed to get URI for session 0 : error 0x14", Weight::Elsewhere, FailureKind::Runtime),
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
