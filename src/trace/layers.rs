//! Operations of a profile pass. Where a tool gives their time, it is a mean: the lengths were measured, where they lie was not.

use std::collections::BTreeMap;

use bench_backend_api::Layer;
use serde_json::json;

use super::spans::Span;

/// What of the operations can be drawn.
#[derive(Debug, Default, PartialEq)]
pub struct Laid {
    /// By name of the track: operations end to end.
    pub tracks: BTreeMap<String, Vec<Span>>,
    /// Operations in cycles: no clock is known, so that they have no length in time.
    pub in_cycles: usize,
}

/// Lays the operations of each graph and phase end to end from a moment on, in the order of the profile.
pub fn laid(layers: &[Layer], from_ns: i64) -> Laid {
    let mut all = Laid { in_cycles: layers.iter().filter(|layer| layer.value_unit == "cycles").count(), ..Laid::default() };
    for layer in layers.iter().filter(|layer| layer.value_unit == "us") {
        let Some(value) = layer.value.filter(|us| (0.0..1e12).contains(us)) else { continue };
        // A graph may be told by several methods: each tells the whole of it.
        let words = [layer.phase.as_str(), layer.graph.as_str(), layer.method.as_str()];
        let name = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let track = all.tracks.entry(name).or_default();
        let begin = track.last().map_or(from_ns, |before| before.to);
        let mut span = Span::new(layer.name.clone(), begin, begin.saturating_add((value * 1e3).round() as i64));
        let words = json!({"index": layer.index, "op_type": layer.op_type, "unit": layer.unit, "executions": layer.count, "means": layer.value_means});
        span.args.extend(words.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())));
        track.push(span);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(phase: &str, name: &str, value: Option<f64>, unit: &str) -> Layer {
        let (phase, name, value_unit) = (phase.to_owned(), name.to_owned(), unit.to_owned());
        Layer { phase, name, value, value_unit, count: Some(3), method: "m".to_owned(), ..Layer::default() }
    }

    #[test]
    fn times_are_laid_end_to_end_and_cycles_are_not() {
        let us = |phase: &str, name: &str, value: f64| layer(phase, name, Some(value), "us");
        let layers = [
            us("prefill", "a", 2.5),
            us("prefill", "b", 0.0),
            us("prefill", "c", 1.0),
            us("decode", "a", 1.0),
            layer("prefill", "d", Some(1e6), "cycles"),
            layer("prefill", "e", None, "us"),
            us("prefill", "f", f64::NAN),
            us("prefill", "g", -1.0),
        ];
        let all = laid(&layers, 1000);
        let told: Vec<_> = all.tracks["prefill m"].iter().map(|s| (s.name.as_str(), s.from, s.to)).collect();
        assert_eq!(told, [("a", 1000, 3500), ("b", 3500, 3500), ("c", 3500, 4500)]);
        assert_eq!((all.tracks.len(), all.in_cycles), (2, 1));
        assert_eq!(all.tracks["decode m"][0].args["executions"], 3);
    }
}
