//! Tables of the operations of a model.

use super::{
    Table,
    Type::{Float, Int, Text},
    c,
};

/// `layers.csv`.
pub const LAYERS: Table = Table {
    file: "layers.csv",
    row: "one operation of one graph, from the profile pass",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, false, "phone, board, pc or emulator"),
        c("cell", Text, false, "id of the cell"),
        c("backend", Text, false, "id of the backend"),
        c("graph", Text, true, "name of the graph"),
        c("phase", Text, true, "prefill or decode"),
        c("index", Int, false, "place in the profile"),
        c("name", Text, false, "name of the operation as printed"),
        c("op_type", Text, true, "its type, when printed"),
        c("block", Int, true, "number of the transformer block that its name tells, as the name counts"),
        c(
            "part",
            Text,
            true,
            "part of the language model, told by the rules in src/analysis/layers/parts.toml: embedding, norm, q_proj, k_proj, v_proj, qkv_proj (one matrix for all three), rope, kv_cache (old keys and values joined with the new ones), attention (scores, softmax, weighted sum), o_proj, residual (the sums around attention and feed-forward), mlp, lm_head, sampling, io (inputs and outputs of the accelerator), subgraph (a compiled part of the graph whose operations the profile does not tell), or other (no rule knows it); empty for other networks",
        ),
        c(
            "part_by",
            Text,
            true,
            "what told the part: name, type, or neighbour (a guess: a name that a compiler made up, taken to belong to the operation before it)",
        ),
        c(
            "op_kind",
            Text,
            true,
            "the same word for every framework: matmul, conv, attention, softmax, norm, rope, elementwise, reduce, pool, resize, gather, select, loop; or of movement: transpose, reshape, quantise, convert, spill_fill, copy, io; empty when unknown",
        ),
        c("op_class", Text, true, "compute, or movement (data laid out anew, copied, or in another number format); empty when unknown"),
        c("unit", Text, true, "processor, when known"),
        c("value", Float, true, "time or cycles; empty when the tool says it does not know"),
        c("value_unit", Text, false, "us or cycles; cycles are never turned into time, those of the emulator least of all"),
        c(
            "value_means",
            Text,
            true,
            "thread-cycles: of all threads of the accelerator together, work and not a length of time; critical-path-cycles: added to the longest chain; elapsed-cycles: from begin to end on one core's counter; wall-time: from begin to end; wall-time-of-type: all operations of one type together. A value is the mean of `count` executions. Empty: the tool does not say",
        ),
        c("folded", Int, true, "1 when the tool gives 0 cycles: the compiler made the operation part of another one"),
        c("share", Float, true, "of the sum of its graph and method, 0 to 1"),
        c("count", Int, true, "executions behind the value"),
        c(
            "graph_total",
            Float,
            true,
            "what the tool prints for the whole graph, in value_unit; the sum of the graph's values over it is what the operations account for",
        ),
        c("details", Text, true, "what else the tool says of it, as key=value;... with the unit in the key"),
        c("method", Text, false, "where the value comes from"),
    ],
};

/// `placement.csv`.
pub const PLACEMENT: Table = Table {
    file: "placement.csv",
    row: "the operations of one phase of a cell on one unit, by one method of the profile pass",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, true, "phone, board, pc or emulator"),
        c("cell", Text, false, "id of the cell"),
        c("backend", Text, false, "id of the backend"),
        c("phase", Text, true, "prefill or decode; empty when the profile does not tell them apart"),
        c("unit_requested", Text, false, "cpu, gpu, npu or hybrid"),
        c("unit", Text, true, "processor; empty when the profile does not say"),
        c("ops", Int, true, "operations, over all graphs of the phase; empty for a profile by types of operations"),
        c("ops_folded", Int, false, "of these, operations that the compiler made part of others (0 cycles)"),
        c("value", Float, true, "sum of the known values of layers.csv: per execution of each graph"),
        c("value_unit", Text, false, "us or cycles; cycles of different units are no parts of one time"),
        c("share", Float, true, "of the phase's sum over all units, 0 to 1"),
        c(
            "accounted",
            Float,
            true,
            "sum of the phase's operations over what the tool prints for its graphs: what is missing to 1 was spent in no operation of the profile; empty when the tool prints no total",
        ),
        c("method", Text, false, "where the values come from"),
    ],
};

/// `fallbacks.csv`.
pub const FALLBACKS: Table = Table {
    file: "fallbacks.csv",
    row: "one operation of a cell that did not run on the unit asked for, as a log, a trace or a profile of any of its launches says",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, true, "phone, board, pc or emulator"),
        c("cell", Text, false, "id of the cell"),
        c("backend", Text, false, "id of the backend"),
        c("unit_requested", Text, false, "cpu, gpu, npu or hybrid"),
        c("op", Text, true, "its name; empty when the whole model fell back; in brackets how many more there are than are named"),
        c("op_type", Text, true, "its type, when told"),
        c("unit", Text, true, "where it ran instead; empty when nothing ran it, so that the launch failed"),
        c("reason", Text, true, "why, in the runtime's own words, when it says"),
        c("source", Text, false, "what said so"),
    ],
};

/// `support.csv`.
pub const SUPPORT: Table = Table {
    file: "support.csv",
    row: "one model in one quantisation on one unit through one backend: whether it runs at all",
    columns: &[
        c("format_version", Int, false, "version of this format"),
        c("run", Text, false, "id of the run"),
        c("device", Text, false, "name of the device"),
        c("device_class", Text, true, "phone, board, pc or emulator"),
        c("model", Text, false, "name of the model"),
        c("quant", Text, false, "class of the quantisation"),
        c("backend", Text, false, "id of the backend"),
        c("unit", Text, false, "processor asked for"),
        c(
            "support",
            Text,
            false,
            "runs (some cell of it is ok), runs-with-fallback (but operations ran on another unit), fails-at-op (the runtime names an operation that it can't run on this unit), fails (no cell is ok, for another reason; the whole model on another unit is one), not-tried (no cell was launched, or only the surroundings failed)",
        ),
        c("op", Text, true, "of fails-at-op and runs-with-fallback: the first such operation, as far as it has a name"),
        c("op_type", Text, true, "its type, when told"),
        c("cells", Int, false, "cells of it"),
        c("cells_ok", Int, false, "of these, cells that are ok"),
        c("reason", Text, true, "of the first cell that is not ok; of fallbacks, the runtime's reason"),
    ],
};
