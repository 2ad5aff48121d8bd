//! Every figure that a geometry, a quantisation and a SoC give without a device.

use bench_backend_api::{DeviceClass, Geometry, Quant};
use serde::Serialize;

use super::{
    demand::{Demand, REST_MB, kv_bytes_per_token},
    peak::peak,
    precision::{Precision, Told},
    standing::{Conditions, Standing, applies},
};
use crate::{device::soc::Soc, scenario::Parameters};

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The model's shape.
    pub geometry: &'a Geometry,
    /// Class of the quantisation.
    pub quant: Quant,
    /// What is known of its bits beside the class.
    pub told: Told,
    /// The SoC.
    pub soc: &'a Soc,
    /// Context length, in tokens.
    pub context: u32,
    /// Prompt, in tokens: the depth at which decoding begins.
    pub prompt: u32,
    /// Memory of the device in bytes, if it is said.
    pub memory: Option<f64>,
    /// Power that the device draws while decoding in W, if it is said.
    pub power: Option<f64>,
    /// A decode rate to hold against the roof, in tokens a second.
    pub claim: Option<f64>,
}

/// One figure. All of them are derived.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Name, with the unit in it.
    pub name: &'static str,
    /// What it is.
    pub words: &'static str,
    /// Its value; `None` with the reason in `absent`.
    pub value: Option<f64>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// How it was derived, or what to think of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub how: String,
}

/// A value and how it came about, or why there is none.
type Value = Result<(f64, String), String>;

/// All figures, in the order in which they build on each other; one that can't be had says why.
pub fn estimate(asked: &Asked<'_>) -> (Precision, Vec<Figure>) {
    let precision = Precision::of(asked.quant, asked.told);
    let demand = Demand::of(asked.geometry, &precision).map_err(|e| e.to_string());
    let mut figures = size(asked, &precision, &demand);
    // Of one token, which of a mixture nobody knows.
    let of_token = demand.and_then(|d| d.mixture().map_or(Ok(d), Err));
    figures.extend(prompt(asked, &of_token));
    figures.extend(decode(asked, &precision, &of_token));
    (precision, figures)
}

/// What has to be held.
fn size(a: &Asked<'_>, precision: &Precision, demand: &Result<Demand, String>) -> Vec<Figure> {
    let context = f64::from(a.context);
    let kv = kv_bytes_per_token(a.geometry, precision.kv).map_err(|e| e.to_string());
    let need = |rest: f64| of(demand, |d| (d.weights() + d.kv_per_token() * context) / 1e6 + rest);
    let limit = || {
        let memory = a.memory.ok_or("--ram says how much memory the device has")?;
        Ok((of(demand, |d| d.context_in(memory))?, "if Android and apps needed none: a bound".to_owned()))
    };
    vec![
        figure("parameters", "parameters", Parameters::of(a.geometry).map_err(|e| e.to_string()).map(|p| (p.total(), String::new()))),
        figure("weights_mb", "all weights, MB", with(of(demand, |d| d.weights() / 1e6), || bits("embedding", precision.embedding))),
        figure("kv_kb_per_tok", "KV cache of a token, kB", with(kv.clone().map(|b| b / 1e3), || bits("elements of", precision.kv))),
        figure("kv_cache_mb", "KV cache of the whole context, MB", with(kv.map(|b| b * context / 1e6), || format!("{} tokens", a.context))),
        figure(
            "memory_need_mb",
            "memory, at least, MB",
            with(need(REST_MB.0), || format!("weights, KV cache, and {} MB for graphs, activations and runtime", REST_MB.0)),
        ),
        figure("memory_need_high_mb", "memory, usually at most, MB", with(need(REST_MB.1), || format!("with {} MB", REST_MB.1))),
        figure("context_limit_tok", "context that fits into the memory, tokens", limit()),
    ]
}

/// What a prompt costs.
fn prompt(a: &Asked<'_>, demand: &Result<Demand, String>) -> Vec<Figure> {
    let prompt = f64::from(a.prompt);
    vec![
        figure(
            "prompt_gop_per_tok",
            "operations of a prompt token, 10^9",
            with(of(demand, |d| d.prompt_operations(prompt) / 1e9), || "two for each weight, and attention".to_owned()),
        ),
        figure(
            "prefill_gop",
            "operations of the prompt, 10^9",
            with(of(demand, |d| d.prefill_operations(prompt) / 1e9), || format!("{} tokens, LM head once", a.prompt)),
        ),
        figure(
            "prefill_roof_tok_s",
            "prefill at most, tokens/s",
            Err("needs the NPU's operations a second at this precision, which nobody publishes (rule R26)".to_owned()),
        ),
    ]
}

/// What a generated token costs.
fn decode(a: &Asked<'_>, precision: &Precision, demand: &Result<Demand, String>) -> Vec<Figure> {
    let (prompt, context) = (f64::from(a.prompt), f64::from(a.context));
    let moved = |depth: f64| of(demand, |d| d.decode_bytes(depth) / 1e6);
    let first = roof(a, demand, prompt);
    let energy = || {
        let power = a.power.ok_or("no source tells the energy of a byte of this memory; --power says what the device draws")?;
        Ok((power / first.clone()?, format!("{} W over the roof", short(power))))
    };
    let claim = |rate: f64| {
        let share = rate / first.clone()?;
        Ok((share, Standing::of(share).words().unwrap_or("possible").to_owned()))
    };
    let mut figures = vec![
        figure(
            "weights_read_mb_per_tok",
            "weights read for a token, MB",
            with(of(demand, |d| d.weights_read() / 1e6), || {
                format!("{}, {}; of the embedding one row", bits("blocks", precision.weight), bits("LM head", precision.head))
            }),
        ),
        figure(
            "decode_mb_per_tok",
            "moved for a token after the prompt, MB",
            with(moved(prompt), || format!("weights, and the KV cache of {} tokens", a.prompt)),
        ),
        figure(
            "decode_full_mb_per_tok",
            "moved for a token at full context, MB",
            with(moved(context), || format!("a static graph reads {} tokens at any depth", a.context)),
        ),
        figure("peak_gb_s", "peak bandwidth, GB/s", peak(Some(a.soc), None).map(|p| (p.gb_s, p.words()))),
        figure("decode_roof_tok_s", "decode after the prompt at most, tokens/s", with(first.clone(), || "bandwidth over bytes".to_owned())),
        figure(
            "decode_full_roof_tok_s",
            "decode at full context at most, tokens/s",
            with(roof(a, demand, context), || "bandwidth over bytes".to_owned()),
        ),
        figure("energy_j_per_tok", "energy of a generated token at least, J", energy()),
    ];
    figures.extend(a.claim.map(|rate| figure("claim_share", "share of the roof that the claim has", claim(rate))));
    figures
}

fn of(demand: &Result<Demand, String>, figure: impl Fn(&Demand) -> f64) -> Result<f64, String> {
    demand.as_ref().map(figure).map_err(Clone::clone)
}

fn with(value: Result<f64, String>, how: impl Fn() -> String) -> Value {
    value.map(|value| (value, how()))
}

fn bits(what: &str, bits: f64) -> String {
    format!("{what} {} bits", short(bits))
}

fn figure(name: &'static str, words: &'static str, value: Value) -> Figure {
    match value {
        Ok((value, how)) if value.is_finite() => Figure { name, words, value: Some(value), absent: None, how },
        Ok(_) => Figure { name, words, value: None, absent: Some("too large to be told".to_owned()), how: String::new() },
        Err(why) => Figure { name, words, value: None, absent: Some(why), how: String::new() },
    }
}

/// The decode roof at a depth in tokens a second, where it applies.
fn roof(a: &Asked<'_>, demand: &Result<Demand, String>, depth: f64) -> Result<f64, String> {
    let demand = demand.as_ref().map_err(Clone::clone)?;
    let conditions = Conditions {
        class: DeviceClass::Phone,
        batch: 1,
        speculative: false,
        mixture: None,
        weights: demand.weights_read(),
        soc: Some(a.soc),
    };
    applies(&conditions).map_err(|why| format!("not applicable: {why}"))?;
    Ok(peak(Some(a.soc), None)?.gb_s * 1e9 / demand.decode_bytes(depth))
}

/// A number without more digits than it has.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
