//! The quantised operators of an ONNX model: their names and attributes, how many weights each has, and nothing of the weights themselves, which are
//! passed over.
//!
//! Sources: `onnx.proto` of the ONNX project for the numbers of the types; the contrib operators of ONNX Runtime (`MatMulNBits`,
//! `GatherBlockQuantized`) for the attributes.

mod file;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::{error::ImportError, quantisation::Quantisation};
use file::{Graph, Node, Tensor, read};

/// A product whose weights are integers with a scale a block, and the look-up of such an embedding.
const PRODUCT: &str = "MatMulNBits";
const TABLE: &str = "GatherBlockQuantized";
/// Operators whose weights are of the type of their initializer.
const PLAIN: [&str; 6] = ["MatMul", "Gemm", "MatMulInteger", "DynamicQuantizeMatMul", "QLinearMatMul", "DequantizeLinear"];

const UINT8: u64 = 2;
/// Types of such weights: number, name, bits.
const TYPES: [(u64, &str, u64); 9] = [
    (1, "float32", 32),
    (UINT8, "uint8", 8),
    (3, "int8", 8),
    (10, "float16", 16),
    (16, "bfloat16", 16),
    (17, "float8", 8),
    (19, "float8", 8),
    (21, "uint4", 4),
    (22, "int4", 4),
];

/// What weights are. The narrowest are first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Integers with a scale a block, and how exactly their product is made.
    Blocks { bits: u64, block: Option<u64>, level: Option<u64> },
    /// As they are.
    Plain { bits: u64, name: &'static str },
}

impl Kind {
    fn bits(self) -> f64 {
        let (Self::Blocks { bits, .. } | Self::Plain { bits, .. }) = self;
        bits as f64
    }

    fn words(self) -> String {
        match self {
            Self::Plain { name, .. } => name.to_owned(),
            Self::Blocks { bits, block, level } => {
                let block = block.map(|block| format!(" block {block}")).unwrap_or_default();
                let level = level.filter(|level| *level > 0).map(|level| format!(", accuracy level {level}")).unwrap_or_default();
                format!("int{bits}{block}{level}")
            }
        }
    }
}

impl Node {
    fn number(&self, key: &str) -> Option<u64> {
        self.numbers.get(key).copied()
    }

    /// Bits as ONNX Runtime takes them (2 to 8): others are not believed.
    fn bits(&self) -> Option<u64> {
        Some(self.number("bits").unwrap_or(4)).filter(|bits| (2..=8).contains(bits))
    }
}

impl Graph {
    /// The weights of an operator; its scales are fewer.
    fn weights(&self, node: &Node) -> Option<&Tensor> {
        let known = node.inputs.iter().filter_map(|name| self.tensors.get(name));
        known.max_by_key(|tensor| tensor.elements())
    }

    /// What the weights of an operator are, and how many as far as the file tells it; `None` of one that has none.
    fn part(&self, node: &Node) -> Option<Part> {
        let head = node.name.contains("lm_head");
        let own = self.weights(node);
        if node.op_type == PRODUCT {
            // They are packed into bytes; where they are no initializer the attributes say how many there are.
            let packed = || Some(own.filter(|tensor| tensor.kind == UINT8)?.elements()? as f64 * 8.0 / node.bits()? as f64);
            let stated = || node.number("K")?.checked_mul(node.number("N")?).map(|n| n as f64);
            let weights = packed().or_else(stated);
            let block = node.number("block_size").filter(|block| block.is_power_of_two());
            let kind = node.bits().map(|bits| Kind::Blocks { bits, block, level: node.number("accuracy_level") });
            return Some(Part { head, kind, weights });
        }
        let (_, name, bits) = *TYPES.iter().find(|(number, ..)| own.is_some_and(|own| own.kind == *number))?;
        PLAIN.contains(&node.op_type.as_str()).then(|| Part {
            head,
            kind: Some(Kind::Plain { bits, name }),
            weights: own.and_then(Tensor::elements).map(|n| n as f64),
        })
    }
}

/// The weights of an operator.
struct Part {
    /// It is the LM head, which has figures of its own.
    head: bool,
    /// What they are; `None` where the file says what can't be.
    kind: Option<Kind>,
    /// How many.
    weights: Option<f64>,
}

/// What models of one artifact tell together: nothing of one without products of quantised weights. Width and group are of the kind that most
/// weights have, the LM head apart.
///
/// # Errors
/// A file that is no ONNX model, or damaged.
pub fn quantisation(models: &[PathBuf]) -> Result<Quantisation, ImportError> {
    let counts = |node: &Node| [PRODUCT, TABLE].iter().chain(&PLAIN).any(|op_type| node.op_type == *op_type);
    let graphs = models.iter().map(|model| read(model, counts)).collect::<Result<Vec<_>, _>>()?;
    let nodes = || graphs.iter().flat_map(|graph| graph.nodes.iter().map(move |node| (graph, node)));
    let mut told = Quantisation::default();
    if !nodes().any(|(_, node)| node.op_type == PRODUCT) {
        return Ok(told);
    }
    let parts: Vec<Part> = nodes().filter_map(|(graph, node)| graph.part(node)).collect();
    let table = nodes().find(|(_, node)| node.op_type == TABLE);
    told.put("embedding_bits", table.and_then(|(_, node)| node.bits()).map(|bits| bits as f64));
    told.put("lm_head_bits", parts.iter().find(|part| part.head).and_then(|part| part.kind).map(Kind::bits));
    let Some(all) = parts.iter().map(|part| Some((part.kind?, part))).collect::<Option<Vec<_>>>() else { return Ok(told) };
    // By kind: operators, and weights of the blocks.
    let mut kinds: BTreeMap<Kind, (usize, f64)> = BTreeMap::new();
    for (kind, part) in &all {
        let (n, weights) = kinds.entry(*kind).or_default();
        *n += 1;
        *weights += part.weights.filter(|_| !part.head).unwrap_or(0.0);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by(|(_, (a_n, a)), (_, (b_n, b))| b.total_cmp(a).then(b_n.cmp(a_n)));
    told.native = Some(named(&kinds));
    let of_blocks = || all.iter().filter(|(_, part)| !part.head);
    let several = of_blocks().map(|(kind, _)| kind).collect::<BTreeSet<_>>().len() > 1;
    // Which kind most weights have nobody knows while some of them are not counted.
    let main = kinds.iter().map(|(kind, _)| kind).find(|kind| of_blocks().any(|(of, _)| of == *kind));
    if let Some(main) = main.filter(|_| !several || of_blocks().all(|(_, part)| part.weights.is_some())) {
        told.put("weight_bits", Some(main.bits()));
        if let Kind::Blocks { block, .. } = main {
            told.put("group", block.map(|block| block as f64));
        }
    }
    Ok(told)
}

/// `MatMulNBits int4 block 32 x 2; int8 block 32 x 1`: the kinds in their order, with their operators where there are several.
fn named(kinds: &[(Kind, (usize, f64))]) -> String {
    let mut said = false;
    let words = kinds.iter().map(|(kind, (n, _))| {
        let first = matches!(kind, Kind::Blocks { .. }) && !std::mem::replace(&mut said, true);
        let what = if first { format!("{PRODUCT} ") } else { String::new() };
        let n = if kinds.len() > 1 { format!(" x {n}") } else { String::new() };
        format!("{what}{}{n}", kind.words())
    });
    words.collect::<Vec<_>>().join("; ")
}
