//! The table of phases.

use super::{
    Table,
    Type::{Float, Int, Text},
    c,
};

/// `phases.csv`.
pub const PHASES: Table = Table {
    file: "phases.csv",
    row: "one part of one stage of one cell: where the time of a load, of a prompt and of a decode step goes. Parts without a `/` sum to their stage; what nothing tells apart is one part",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, false, "phone, board, pc or emulator: classes never mix"),
        c("cell", Text, false, "id of the cell"),
        c("backend", Text, false, "id of the backend"),
        c(
            "pass",
            Text,
            false,
            "measure; or profile, one launch in which the runtime's profiling slows what it times: its times stand beside those of measure, never among them",
        ),
        c(
            "stage",
            Text,
            false,
            "load (load_begin to load_end; the first launch of each segment is in it, which load_ms of cells.csv leaves out), load_cold (the same where the model was not in the page cache), prefill (submission to first token), decode (first token to last); discarded queries do not count",
        ),
        c("i", Int, false, "place of the part in its stage, from 0"),
        c(
            "phase",
            Text,
            false,
            "read, library, init, prepare, allocate; preprocess, tokenise, h2d, execute, d2h, sample, detokenise, postprocess; a name of the program's own; unaccounted = what is left; load, query = the stage in one piece. `a/b` is part b of part a: execute/runtime (ONNX Runtime's Run or qnn-net-run around QNN), execute/host (QNN's call on the host), execute/rpc (the round trip over FastRPC), execute/dsp (QNN on the DSP's side), execute/accelerator (the graph), and the same of prepare; parts that a profile does not separate are joined by `+`",
        ),
        c("n", Int, false, "launches that have the part"),
        c("ms", Float, false, "of one load, one prompt or one decode step: median of the launches, each the mean of its own"),
        c("ms_lo", Float, true, "interval of that median; empty with one launch"),
        c("ms_hi", Float, true, "interval of that median; empty with one launch"),
        c("ms_coverage", Float, true, "how often such an interval holds the median"),
        c("share", Float, false, "of the stage, over all of the launches' time: the sum over the parts without a `/` is 1"),
        c(
            "method",
            Text,
            false,
            "events (the runner timed each stretch), sums (the runner's sums of a query), rest (the stage less its parts), whole (only the stage's own events), runtime_reported (the runtime's own figure), composed (rule R11: an upper bound of speed); a profile's name = derived: the phase's time by the profile's shares over all executions of the launch, those of discarded queries too",
        ),
    ],
};
