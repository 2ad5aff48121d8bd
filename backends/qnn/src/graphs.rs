//! The graphs that a launch times: described by the artifact's `meta.json`, and staged as `graphs.json` beside them, so that what was
//! run comes back with what it printed.

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::{Artifact, Failure, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::reader::ops::phase_of;

/// Name of the staged description.
pub const FILE: &str = "graphs.json";

/// The most bytes of input that are made for a launch. The KV cache of a long context is some hundred megabytes.
const MAX_INPUT: u64 = 1 << 30;

/// What a launch was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The graphs in the order in which they run.
    pub graphs: Vec<Graph>,
    /// Executions of each graph behind its average.
    pub executions: u32,
    /// Effective options that change times (rule R10); they become notes of the launch.
    pub options: BTreeMap<String, String>,
}

/// What a graph's file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Compiled for one chip.
    Context,
    /// A model library of the SDK's converter: compiled on the device.
    Library,
    /// A deep-learning container: compiled on the device.
    Dlc,
}
impl Code {
    /// The word of the command line that names such a file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Library => "model",
            Self::Dlc => "dlc",
        }
    }
}

/// One graph in a file of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Its name in the artifact's description.
    #[serde(default)]
    pub name: String,
    /// Name of its step: `prefill`, or `prefill-2` where the phase has several parts.
    pub step: String,
    /// `prefill` or `decode`.
    pub phase: String,
    /// Place among the phase's parts, from 1.
    pub part: u32,
    /// Parts of the phase.
    pub parts: u32,
    /// Tokens of one execution (AR).
    pub tokens: u32,
    /// Its context binary, model library or DLC in the artifact.
    pub binary: String,
    /// Input tensors with their sizes in bytes.
    pub inputs: Vec<(String, u64)>,
    /// The smallest output tensor: its file shows that there are results.
    pub output: Option<String>,
}

impl Graph {
    /// What its file is, by the end of its name.
    pub fn code(&self) -> Code {
        match self.binary.rsplit('.').next() {
            Some("so") => Code::Library,
            Some("dlc") => Code::Dlc,
            _ => Code::Context,
        }
    }

    /// The line of the input list. Times do not depend on the values, so that tensors of one size share a file of zeros.
    pub fn input_list(&self) -> String {
        let words: Vec<String> = self.inputs.iter().map(|(name, size)| format!("{name}:={}", zeros(*size))).collect();
        words.join(" ") + "\n"
    }

    /// Where the tool writes.
    pub fn folder(&self) -> String {
        format!("out_{}", self.step)
    }

    /// The profile that the tool leaves for the viewer.
    pub fn log(&self) -> String {
        format!("{}/qnn-profiling-data_0.log", self.folder())
    }

    /// The file that shows results, under both names that the tool gives it: native outputs carry the word.
    pub fn results(&self) -> Vec<String> {
        let name = |output: &String| ["_native", ""].map(|end| format!("{}/Result_0/{output}{end}.raw", self.folder()));
        self.output.iter().flat_map(name).collect()
    }
}

/// The file of zeros of a size.
pub fn zeros(size: u64) -> String {
    format!("inputs/zeros-{size}.raw")
}

/// The graphs of an artifact, every one of which must be there: figures are composed over all parts of both phases, or not at all.
///
/// # Errors
/// What is missing in the artifact, or in its `meta.json`.
pub fn from_artifact(artifact: &Artifact) -> Result<Vec<Graph>, Failure> {
    let described = artifact.meta.get("graphs").and_then(Value::as_object).ok_or_else(|| {
        let mut failure = usage("the artifact's meta.json has no `graphs`: qnn-net-run has to be told each graph's inputs");
        failure.hint = Some(
            "a Genie bundle alone can't be run: its parts do not tell their tensors. List a meta.json among the artifact's files, with `tokens`, \
             `binary` (a context binary, a model library *.so or a *.dlc of one graph), `inputs` and `outputs` of each graph of each part \
             (qnn-context-binary-utility shows them), as in those that bench makes"
                .to_owned(),
        );
        failure
    })?;
    let mut graphs = Vec::new();
    for (name, value) in described {
        graphs.push(graph(name, value, artifact)?);
    }
    for phase in ["prefill", "decode"] {
        number(phase, &mut graphs)?;
    }
    for (i, graph) in graphs.iter().enumerate() {
        if graphs[..i].iter().any(|g| g.binary == graph.binary) {
            let message =
                format!("{} holds more than one graph: qnn-net-run would run all of them; give each graph its own binary", graph.binary);
            return Err(usage(message));
        }
    }
    // One file of zeros is staged for each size.
    let sizes: BTreeSet<u64> = graphs.iter().flat_map(|g| g.inputs.iter().map(|(_, size)| *size)).collect();
    let total = sizes.into_iter().fold(0, u64::saturating_add);
    if total > MAX_INPUT {
        return Err(usage(format!(
            "meta.json: the inputs come to {total} bytes, and {MAX_INPUT} are the most: look at their `dtype` and `shape`"
        )));
    }
    Ok(graphs)
}

fn usage(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Usage, message)
}

fn graph(name: &str, value: &Value, artifact: &Artifact) -> Result<Graph, Failure> {
    let bad = |what: &str| usage(format!("meta.json, graph {name}: {what}"));
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let phase = text("phase").unwrap_or_else(|| phase_of(name));
    if !matches!(phase, "prefill" | "decode") {
        return Err(bad("neither `prefill` nor `decode`: say which in `phase`"));
    }
    let tokens = value.get("tokens").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    let tokens = tokens.ok_or_else(|| bad("no `tokens` (AR)"))?;
    let binary = text("binary").ok_or_else(|| bad("no `binary`"))?;
    if !artifact.files.iter().any(|f| f == binary) {
        return Err(usage(format!("the artifact has no {binary}: figures are composed over all parts of both phases, or not at all")));
    }
    let sizes = |key: &str| -> Result<Vec<(String, u64)>, Failure> {
        let tensors = value.get(key).and_then(Value::as_object).into_iter().flatten();
        tensors
            .map(|(name, tensor)| Ok((name.clone(), bytes_of(tensor).ok_or_else(|| bad(&format!("{name}: no usable dtype and shape")))?)))
            .collect()
    };
    let inputs = sizes("inputs")?;
    if inputs.is_empty() {
        return Err(bad("no `inputs`"));
    }
    if let Some((name, _)) = inputs.iter().find(|(name, _)| name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()))
    {
        return Err(bad(&format!("an input list can't hold the name {name:?}")));
    }
    let output = sizes("outputs")?.into_iter().filter(|(name, _)| !name.contains('/')).min_by_key(|(_, size)| *size).map(|(name, _)| name);
    Ok(Graph {
        name: name.to_owned(),
        step: name.to_owned(),
        phase: phase.to_owned(),
        part: 0,
        parts: 0,
        tokens,
        binary: binary.to_owned(),
        inputs,
        output,
    })
}

/// Numbers the parts of a phase: by `2_of_5` in the names where there is such a thing, else as they stand.
fn number(phase: &str, graphs: &mut [Graph]) -> Result<(), Failure> {
    let mut parts: Vec<&mut Graph> = graphs.iter_mut().filter(|g| g.phase == phase).collect();
    let count = parts.len() as u32;
    if count == 0 {
        return Err(usage(format!("meta.json describes no {phase} graph: figures are composed over both phases, or not at all")));
    }
    let named: Vec<Option<(u32, u32)>> = parts.iter().map(|g| of_parts(&g.step).or_else(|| of_parts(&g.binary))).collect();
    for (place, (graph, named)) in parts.iter_mut().zip(&named).enumerate() {
        (graph.part, graph.parts) = named.unwrap_or((place as u32 + 1, count));
    }
    let (whole, last) = (parts[0].parts, parts.len());
    let missing = (1..=whole).find(|n| !parts.iter().any(|g| g.part == *n));
    if whole != count || missing.is_some() || parts.iter().any(|g| g.parts != whole) {
        let which = missing.map_or_else(|| "some".to_owned(), |n| format!("part {n} of {whole}"));
        return Err(usage(format!("{phase}: {last} graphs are described, and {which} is not among them")));
    }
    for graph in parts {
        // From our own words: a step's name becomes a folder's.
        graph.step = if whole == 1 { phase.to_owned() } else { format!("{phase}-{}", graph.part) };
    }
    Ok(())
}

/// `2_of_5` in a name.
fn of_parts(name: &str) -> Option<(u32, u32)> {
    let (before, after) = name.split_once("_of_")?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let tail: String = before.chars().rev().take_while(char::is_ascii_digit).collect::<Vec<_>>().into_iter().rev().collect();
    Some((tail.parse().ok()?, digits(after).parse().ok()?))
}

/// Size of a tensor, in bytes.
fn bytes_of(described: &Value) -> Option<u64> {
    let size = match described.get("dtype").and_then(Value::as_str)? {
        "int64" | "uint64" => 8,
        "int32" | "uint32" | "float32" => 4,
        "int16" | "uint16" | "float16" => 2,
        "int8" | "uint8" | "bool" => 1,
        _ => return None,
    };
    let shape = described.get("shape").and_then(Value::as_array)?;
    shape.iter().try_fold(size, |n: u64, d| n.checked_mul(d.as_u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn artifact(graphs: &Value, files: &[&str]) -> Artifact {
        Artifact { files: files.iter().map(|f| (*f).to_owned()).collect(), meta: json!({"graphs": graphs}) }
    }

    fn described(tokens: u32, binary: &str) -> Value {
        json!({"tokens": tokens, "binary": binary, "inputs": {"input_ids": {"dtype": "int32", "shape": [1, tokens]},
            "past_key": {"dtype": "uint8", "shape": [2, 1, 4, 8]}, "past_value": {"dtype": "uint8", "shape": [2, 1, 8, 4]}},
            "outputs": {"logits": {"dtype": "float16", "shape": [1, 512]}, "key": {"dtype": "uint8", "shape": [4]}}})
    }

    #[test]
    fn a_made_artifact_has_two_graphs() {
        let artifact = artifact(
            &json!({"prefill": described(32, "prefill.bin"), "decode": described(1, "decode.bin")}),
            &["prefill.bin", "decode.bin"],
        );
        let graphs = from_artifact(&artifact).unwrap();
        let said: Vec<_> = graphs.iter().map(|g| (g.step.as_str(), g.part, g.parts, g.tokens)).collect();
        assert_eq!(said, [("prefill", 1, 1, 32), ("decode", 1, 1, 1)]);
        // 32 int32 are 128 bytes; 2 x 1 x 4 x 8 uint8 are 64, and both halves of the cache share the file.
        let list = "input_ids:=inputs/zeros-128.raw past_key:=inputs/zeros-64.raw past_value:=inputs/zeros-64.raw\n";
        assert_eq!(graphs[0].input_list(), list);
        assert_eq!(graphs[1].results(), ["out_decode/Result_0/key_native.raw", "out_decode/Result_0/key.raw"]);
    }

    #[test]
    fn parts_are_numbered_by_their_names_and_a_missing_one_is_refused() {
        let mut meta = json!({
            "prompt_ar128_cl4096_2_of_2": described(128, "p2.bin"), "prompt_ar128_cl4096_1_of_2": described(128, "p1.bin"),
            "token_ar1_cl4096_1_of_2": described(1, "t1.bin"), "token_ar1_cl4096_2_of_2": described(1, "t2.bin"),
        });
        let files = ["p1.bin", "p2.bin", "t1.bin", "t2.bin"];
        let steps: Vec<_> = from_artifact(&artifact(&meta, &files)).unwrap().into_iter().map(|g| (g.step, g.binary)).collect();
        let wanted = [("prefill-2", "p2.bin"), ("prefill-1", "p1.bin"), ("decode-1", "t1.bin"), ("decode-2", "t2.bin")];
        assert_eq!(steps, wanted.map(|(a, b)| (a.to_owned(), b.to_owned())));

        let refused = |meta: &Value, files: &[&str]| from_artifact(&artifact(meta, files)).unwrap_err().message;
        assert!(refused(&meta, &files[..3]).contains("the artifact has no t2.bin"));
        meta.as_object_mut().unwrap().remove("token_ar1_cl4096_1_of_2");
        assert!(refused(&meta, &files).contains("part 1 of 2"), "{}", refused(&meta, &files));
        meta.as_object_mut().unwrap().remove("token_ar1_cl4096_2_of_2");
        assert!(refused(&meta, &files).contains("no decode graph"));
        let shared = json!({"prefill": described(32, "both.bin"), "decode": described(1, "both.bin")});
        assert!(refused(&shared, &["both.bin"]).contains("more than one graph"));
        let unknown = json!({"vae": described(1, "both.bin")});
        assert!(refused(&unknown, &["both.bin"]).contains("`phase`"));
        assert!(from_artifact(&Artifact::default()).unwrap_err().hint.is_some());
        let odd = json!({"decode": {"tokens": 1, "binary": "both.bin", "inputs": {"x": {"dtype": "int4", "shape": [1]}}}});
        assert!(refused(&odd, &["both.bin"]).contains("dtype"));
        for shape in [json!([1_u64 << 31]), json!([u64::MAX]), json!([1 << 20, 2048])] {
            let mut huge = json!({"prefill": described(32, "p1.bin"), "decode": described(1, "t1.bin")});
            huge["decode"]["inputs"]["past_key"]["shape"] = shape;
            let failure = from_artifact(&artifact(&huge, &files)).unwrap_err();
            assert!(failure.kind == FailureKind::Usage && failure.message.contains("bytes, and 1073741824 are the most"), "{failure}");
        }
    }
}
