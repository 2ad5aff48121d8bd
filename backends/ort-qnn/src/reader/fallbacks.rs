//! Nodes that the QNN provider did not take, as ONNX Runtime's log names them. Seen with onnxruntime-qnn 2.7.0:
//! - errors, when the fallback is forbidden: `Unsupported nodes in QNN EP: { name: N, type: T }{ name: ...`
//! - verbose: `Validation FAILED for 1 nodes in OrtNodeUnit (T) :`, then `Operator type: T Node name: N Node index: I` and `REASON : ...`
//! - verbose: `Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2`, then a line `T (N)` for each.

use std::collections::{HashMap, HashSet};

use bench_backend_api::Fallback;

use super::trace;

/// The most nodes that are named: a network has tens of thousands at most, a damaged log any number.
const MAX: usize = 20_000;
const SOURCE: &str = "ort-log";

/// Nodes that another provider got, or that nobody could run; each once, in the order of the log.
pub fn of_log(log: &str) -> Vec<Fallback> {
    let mut found: Vec<Fallback> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut node = |found: &mut Vec<Fallback>, name: &str, kind: &str| -> Option<usize> {
        if let Some(&at) = places.get(name) {
            return Some(at);
        }
        let fallback = Fallback { op: name.to_owned(), op_type: Some(kind.to_owned()), source: SOURCE.to_owned(), ..Fallback::default() };
        (found.len() < MAX).then(|| {
            found.push(fallback);
            places.insert(name.to_owned(), found.len() - 1);
            found.len() - 1
        })
    };
    // What the lines that follow are about: nodes that failed a validation, or those of a provider.
    let (mut failed, mut failing, mut provider) = (false, Vec::new(), None);
    let mut all_placed = false;
    for line in log.lines().map(|line| line.trim_end().trim_end_matches("\u{1b}[m")) {
        if let Some((_, nodes)) = line.split_once("Unsupported nodes in QNN EP:") {
            for (name, kind) in nodes.split("{ name: ").filter_map(|node| node.rsplit_once(" }")?.0.rsplit_once(", type: ")) {
                node(&mut found, name, kind);
            }
        } else if line.contains("] Validation ") {
            (failed, failing) = (line.contains("FAILED"), Vec::new());
        } else if let Some((_, named)) = line.split_once("Operator type: ").filter(|_| failed) {
            let named = named.split_once(" Node name: ").and_then(|(kind, name)| Some((name.rsplit_once(" Node index: ")?.0, kind)));
            failing.extend(named.and_then(|(name, kind)| node(&mut found, name, kind)));
        } else if let Some((_, reason)) = line.split_once("REASON : ").filter(|_| failed) {
            for at in failing.drain(..) {
                found[at].reason.get_or_insert_with(|| reason.trim().to_owned());
            }
        } else if let Some((_, named)) = line.split_once("Node(s) placed on [") {
            all_placed = true;
            provider = named.split_once(']').map(|(provider, _)| provider).filter(|provider| *provider != trace::QNN);
        } else if let (Some(provider), Some((_, named))) = (provider, line.split_once("VerifyEachNodeIsAssignedToAnEp]   ")) {
            let named = named.strip_suffix(')').and_then(|named| named.split_once(" ("));
            if let Some(at) = named.and_then(|(kind, name)| node(&mut found, name, kind)) {
                found[at].unit = trace::unit(provider).map(str::to_owned);
            }
        }
    }
    // What failed a first look can be taken in a second one.
    found.retain(|op| !all_placed || op.unit.is_some());
    found
}

/// Nodes that our runner found on the CPU: `prefill: 2 nodes: a, b; decode: 30 nodes: a, ...`, the first twenty by name.
pub fn of_note(note: &str) -> Vec<Fallback> {
    let mut ops: Vec<String> = Vec::new();
    for graph in note.split("; ") {
        let Some((graph, (count, names))) = graph.split_once(": ").and_then(|(graph, rest)| Some((graph, rest.split_once(" nodes: ")?)))
        else {
            continue;
        };
        let names: Vec<&str> = names.split(", ").collect();
        let more = count.parse::<usize>().unwrap_or(0).saturating_sub(names.len());
        ops.extend(names.into_iter().map(str::to_owned));
        ops.extend((more > 0).then(|| format!("({more} more nodes of {graph})")));
    }
    let mut seen = HashSet::new();
    ops.retain(|op| seen.insert(op.clone()));
    let of = |op| Fallback { op, unit: Some("cpu".to_owned()), source: "ort-session".to_owned(), ..Fallback::default() };
    ops.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::{of_log, of_note};

    #[test]
    fn nodes_that_the_runner_counted() {
        let ops = |note: &str| of_note(note).into_iter().map(|f| (f.op, f.unit)).collect::<Vec<_>>();
        let on_cpu = |op: &str| (op.to_owned(), Some("cpu".to_owned()));
        assert_eq!(ops("prefill: 2 nodes: a, b; decode: 1 nodes: a"), [on_cpu("a"), on_cpu("b")]);
        assert_eq!(ops("decode: 30 nodes: a, b"), [on_cpu("a"), on_cpu("b"), on_cpu("(28 more nodes of decode)")]);
        assert_eq!(ops("x nodes"), []);
    }

    fn read(text: &str) -> Vec<(String, String, Option<String>, Option<String>)> {
        of_log(text).into_iter().map(|f| (f.op, f.op_type.unwrap_or_default(), f.unit, f.reason)).collect()
    }

    /// A graph of MatMul, Mod, Hardmax and MatMul in a session of our own, with the fallback allowed and forbidden.
    #[test]
    fn two_of_four_nodes_fell_back() {
        let row = |op: &str, op_type: &str, unit: Option<&str>, reason: Option<&str>| {
            (op.to_owned(), op_type.to_owned(), unit.map(str::to_owned), reason.map(str::to_owned))
        };
        let allowed = read(include_str!("../../fixtures/fallback-two-nodes.txt"));
        let reason =
            "Operators of type `Hardmax` are not supported by QNN EP.Hardmax node `/block/Hardmax` will not be assigned to QNN EP.";
        assert_eq!(
            allowed,
            [
                row("/block/mod, odd/Mod", "Mod", Some("cpu"), Some("QNN Mod Op only support fmod == 0 for now.")),
                row("/block/Hardmax", "Hardmax", Some("cpu"), Some(reason))
            ]
        );
        let forbidden = read(include_str!("../../fixtures/fallback-forbidden.txt"));
        assert_eq!(forbidden, [row("/block/mod, odd/Mod", "Mod", None, None), row("/block/Hardmax", "Hardmax", None, None)]);
    }

    #[test]
    fn damaged_lines_are_no_nodes() {
        for text in [
            "Unsupported nodes in QNN EP: { name: x, type",
            "Unsupported nodes in QNN EP:",
            "x] Validation FAILED\nOperator type: \nREASON : ",
            "Node(s) placed on [",
            "Node(s) placed on [CPUExecutionProvider]\nVerifyEachNodeIsAssignedToAnEp]   x",
            "REASON : alone",
        ] {
            assert_eq!(read(text), [], "{text}");
        }
    }
}
