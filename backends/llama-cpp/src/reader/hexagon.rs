//! Operations that `GGML_HEXAGON_PROFILE` logs, in its three formats, and the summary of `ggml-hexagon-profile.py`:
//! - 2025: `profile-op MUL_MAT: names : dims : types : strides : buffs : op-usec 1 op-cycles 2 op-pkts 3 (1.0) call-usec 4`
//! - 2026-04: `profile-op MUL_MAT: names : dims : types : strides : usec 1 cycles 2`
//! - 2026-08: `profile-op MUL_MAT|names|dims|types|strides|params|usec 1 cycles 2 start 3 mhz 4.0`

use std::collections::HashMap;

use bench_backend_api::{Layer, ValueMeans, text};

/// Cycle counters are 32 bits wide and wrap, so that microseconds are taken where both are printed.
struct Op {
    kind: String,
    names: String,
    dims: String,
    value: f64,
    unit: &'static str,
}

/// The operations of a log, those with the same name and dimensions as the mean of their executions, in order of first appearance.
pub(super) fn layers(lines: &[&str]) -> Vec<Layer> {
    let mut layers: Vec<(Layer, f64)> = Vec::new();
    let mut places: HashMap<(String, String, String, &str), usize> = HashMap::new();
    for op in lines.iter().filter_map(|line| logged(line).or_else(|| summed(line))) {
        let index = layers.len();
        let place = *places.entry((op.kind.clone(), op.names.clone(), op.dims.clone(), op.unit)).or_insert(index);
        if place == index {
            layers.push((layer(&op, index), 0.0));
        }
        let (layer, sum) = &mut layers[place];
        *sum += op.value;
        let count = layer.count.unwrap_or(0) + 1;
        layer.count = Some(count);
        layer.value = Some(*sum / f64::from(count));
    }
    layers.into_iter().map(|(layer, _)| layer).collect()
}

fn layer(op: &Op, index: usize) -> Layer {
    let name = if op.names.is_empty() { op.dims.clone() } else { format!("{} ({})", op.names, op.dims) };
    Layer {
        graph: String::new(),
        phase: String::new(),
        index: index as u32,
        name,
        op_type: Some(op.kind.clone()),
        unit: Some("npu".to_owned()),
        value: None,
        value_unit: op.unit.to_owned(),
        count: None,
        method: "ggml-hexagon-profile".to_owned(),
        value_means: Some(if op.unit == "us" { ValueMeans::WallTime } else { ValueMeans::ElapsedCycles }),
        ..Layer::default()
    }
}

/// A figure behind a word: `usec 435`.
fn behind(text: &str, names: &[&str]) -> Option<f64> {
    let mut words = text.split_whitespace();
    words.find(|word| names.contains(word))?;
    text::count(words.next()?)
}

fn value(text: &str) -> Option<(f64, &'static str)> {
    if let Some(usec) = behind(text, &["usec", "op-usec"]) {
        return Some((usec, "us"));
    }
    let mut words = text.split_whitespace();
    words.find(|word| matches!(*word, "cycles" | "op-cycles"))?;
    text::number(words.next()?).filter(|cycles| (0.0..1e15).contains(cycles)).map(|cycles| (cycles, "cycles"))
}

fn logged(line: &str) -> Option<Op> {
    let rest = line.split_once("profile-op ")?.1;
    let mark = rest.find([':', '|'])?;
    let kind = rest[..mark].trim().to_owned();
    let fields: Vec<&str> =
        if rest[mark..].starts_with('|') { rest[mark + 1..].split('|').collect() } else { rest[mark + 1..].split(" : ").collect() };
    let (value, unit) = value(fields.last()?)?;
    let field = |at: usize| fields.get(at).filter(|_| at + 1 < fields.len()).map(|field| field.trim().to_owned()).unwrap_or_default();
    Some(Op { kind, names: field(0), dims: field(1), value, unit })
}

/// `MUL_MAT (2048:6144 x 2048:742 -> 6144:742 : q4_0 x f32 -> f32) - 891 usec 1883599 cycles`.
fn summed(line: &str) -> Option<Op> {
    let (left, right) = line.trim().rsplit_once(") - ")?;
    let (kind, dims) = left.split_once(" (")?;
    let plain = !kind.is_empty()
        && kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'+' | b'-'));
    let value = text::count(right.trim().split_once(" usec")?.0)?;
    plain.then(|| Op { kind: kind.to_owned(), names: String::new(), dims: dims.to_owned(), value, unit: "us" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_formats_and_the_summary() {
        let lines = [
            "ggml-hex: HTP0 profile-op MUL_MAT: blk.0.attn_q.weight x norm-0 -> Qcur-0 : 64:128 x 64:1 -> 128:1 : q4_0 x f32 -> f32 : 36:1 : HTP0 : op-usec 40 op-cycles 80000 op-pkts 9 (1.500000) call-usec 55",
            "ggml-hex: HTP0 profile-op ADD: a x b -> c : 64:1 x 64:1 -> 64:1 : f32 x f32 -> f32 : 4:1 : usec 7 cycles 14000",
            "D ggml-hex: HTP0 profile-op ADD|a x b -> c|64:1 x 64:1 -> 64:1|f32|4:1|hvx|usec 9 cycles 18000 start 5 mhz 2000.0",
            "SOFT_MAX (32:32 -> 32:32 : f32 -> f32) - 12 usec 24000 cycles",
            "ggml-hex: HTP0 profile-op ADD|cut",
        ];
        let layers = layers(&lines);
        let read: Vec<_> = layers.iter().map(|layer| (layer.op_type.as_deref().unwrap_or(""), layer.value, layer.count)).collect();
        // (7 + 9) / 2 = 8: the same operation in two formats.
        assert_eq!(read, [("MUL_MAT", Some(40.0), Some(1)), ("ADD", Some(8.0), Some(2)), ("SOFT_MAX", Some(12.0), Some(1))]);
        assert!(layers[0].name.starts_with("blk.0.attn_q.weight x norm-0 -> Qcur-0"));
    }
}
