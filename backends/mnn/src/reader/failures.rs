//! What MNN's tools print when they fail. The exit status says little: `llm_bench` returns 0 after most failures, with a table of
//! absurd speeds, and a backend that is missing becomes the CPU with one line of log. What the lines mean stands in `failures.toml`.

use bench_backend_api::{
    Failure,
    knowledge::{Mark, Weight},
};

use crate::TABLE;

/// What a line of log says about a failure. An entry that is [`Weight::Elsewhere`] says that the asked backend was replaced by the CPU.
pub(super) fn mark(line: &str) -> Option<Mark> {
    let line = line.trim();
    // Help texts speak of files that may be missing.
    if line.starts_with(['|', '{']) || line.contains("if the file does not exist") {
        return None;
    }
    let mut mark = TABLE.mark(line)?;
    if mark.weight == Weight::Elsewhere {
        mark.failure.message = fallback(line);
    }
    Some(mark)
}

/// A failure that voids results like a fallback that the log reports.
pub(super) fn fell_back(failure: Failure) -> Mark {
    Mark { rank: 0, weight: Weight::Elsewhere, failure }
}

/// Names the backend that was asked for; the log has only its number in MNN's `MNNForwardType`.
fn fallback(line: &str) -> String {
    let number = line.split("Can't Find type=").nth(1).unwrap_or("").chars().take_while(char::is_ascii_digit).collect::<String>();
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

#[cfg(test)]
mod tests {
    use bench_backend_api::FailureKind;

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
            assert_eq!((mark.weight != Weight::Soft, mark.failure.kind), (hard, kind), "{line}");
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
}
