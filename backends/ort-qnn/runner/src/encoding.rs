//! How a graph's tensors hold real numbers: as floats, or quantised with the encodings that `meta.json` gives.

use std::{collections::BTreeMap, fs, path::Path};

use half::f16;
use serde::Deserialize;

/// An affine encoding: real = scale * (raw - zero_point).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encoding {
    /// Size of a step, positive.
    pub scale: f64,
    /// The raw number that stands for 0.
    pub zero_point: f64,
}

/// An element type of a tensor that holds real numbers.
pub trait Element: Copy + PartialOrd {
    /// The nearest element to `real`. Floats take it as it is, whatever the encoding; integers without one round to themselves.
    fn encode(real: f64, encoding: Option<Encoding>) -> Self;
}

impl Element for f32 {
    fn encode(real: f64, _: Option<Encoding>) -> Self {
        real as f32
    }
}

impl Element for f16 {
    fn encode(real: f64, _: Option<Encoding>) -> Self {
        f16::from_f64(real)
    }
}

macro_rules! quantised {
    ($($t:ty)*) => {$(
        impl Element for $t {
            fn encode(real: f64, encoding: Option<Encoding>) -> Self {
                let e = encoding.unwrap_or(Encoding { scale: 1.0, zero_point: 0.0 });
                // A float-to-integer cast saturates, which is what quantising does.
                ((real / e.scale).round_ties_even() + e.zero_point) as $t
            }
        }
    )*};
}
quantised!(u8 i8 u16 i16);

/// Encodings of one graph's inputs and outputs, by the tensor's name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Encodings(BTreeMap<String, Encoding>);

impl Encodings {
    /// The encoding of a tensor: none for floats, and never absent for integers.
    pub fn of(&self, name: &str, quantised: bool) -> Result<Option<Encoding>, String> {
        match self.0.get(name) {
            _ if !quantised => Ok(None),
            Some(encoding) => Ok(Some(*encoding)),
            None => Err(format!("{name} is quantised and the model's meta file has no encoding for it")),
        }
    }
}

/// What is known of the graphs beside their files: `meta.json`, of which only this is read:
/// `{"graphs": {"prefill": {"inputs": {NAME: {"scale": S, "zero_point": Z}}, "outputs": {...}}, "decode": ...}, "mask_blocked": -100.0}`.
#[derive(Debug, Default)]
pub struct Meta {
    graphs: BTreeMap<String, Encodings>,
    /// The real number that blocks a column of attention, where the graphs were made with another than usual.
    pub mask_blocked: Option<f64>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    graphs: BTreeMap<String, Ports>,
    #[serde(default)]
    mask_blocked: Option<f64>,
}

#[derive(Deserialize)]
struct Ports {
    #[serde(default)]
    inputs: BTreeMap<String, Port>,
    #[serde(default)]
    outputs: BTreeMap<String, Port>,
}

#[derive(Deserialize)]
struct Port {
    #[serde(default)]
    scale: Option<f64>,
    #[serde(default)]
    zero_point: Option<f64>,
}

impl Meta {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::from_json(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn from_json(text: &[u8]) -> Result<Self, String> {
        let file: File = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        let mut graphs = BTreeMap::new();
        for (graph, Ports { inputs, outputs }) in file.graphs {
            let mut encodings = Encodings::default();
            for (name, port) in inputs.into_iter().chain(outputs) {
                let Some(scale) = port.scale else { continue };
                let zero_point = port.zero_point.unwrap_or(0.0);
                if !(scale > 0.0 && scale.is_finite() && zero_point.is_finite()) {
                    return Err(format!("{graph}.{name}: scale {scale}, zero_point {zero_point}"));
                }
                encodings.0.insert(name, Encoding { scale, zero_point });
            }
            graphs.insert(graph, encodings);
        }
        Ok(Self { graphs, mask_blocked: file.mask_blocked })
    }

    /// The encodings of a graph; a graph that is not named has none.
    pub fn encodings(&self, graph: &str) -> Encodings {
        self.graphs.get(graph).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantises_as_the_formula_says_and_saturates() {
        let unit = Some(Encoding { scale: 1.0 / 32767.0, zero_point: 32768.0 });
        assert_eq!((u16::encode(0.0, unit), u16::encode(1.0, unit), u16::encode(-1.0, unit)), (32768, 65535, 1));
        let mask = Some(Encoding { scale: 100.0 / 65535.0, zero_point: 65535.0 });
        assert_eq!((u16::encode(0.0, mask), u16::encode(-100.0, mask), u16::encode(-1e9, mask)), (65535, 0, 0));
        let kv = Some(Encoding { scale: 5.0 / 127.0, zero_point: 128.0 });
        assert_eq!((u8::encode(0.0, kv), u8::encode(5.0, kv), u8::encode(99.0, kv)), (128, 255, 255));
        assert_eq!((f32::encode(0.25, kv), f16::encode(-100.0, None)), (0.25, f16::from_f32(-100.0)));
    }

    #[test]
    fn reads_encodings_and_ignores_the_rest() {
        let meta = Meta::from_json(
            br#"{"kind":"qnn-context","graphs":{"decode":{"ar":1,"inputs":{"input_ids":{"dtype":"int32","shape":[1,1],"scale":null},
            "attention_mask":{"dtype":"uint16","scale":0.5,"zero_point":7}},"outputs":{"logits":{"dtype":"uint16","scale":2}}}}}"#,
        )
        .unwrap();
        let decode = meta.encodings("decode");
        assert_eq!(decode.of("attention_mask", true), Ok(Some(Encoding { scale: 0.5, zero_point: 7.0 })));
        assert_eq!(decode.of("attention_mask", false), Ok(None));
        assert!(decode.of("input_ids", true).is_err() && meta.encodings("prefill") == Encodings::default());
        assert!(Meta::from_json(br#"{"graphs":{"decode":{"inputs":{"x":{"scale":0}}}}}"#).is_err());
    }
}
