//! Known answers: published models and logs, popular claims, sums done by hand.

use bench_backend_api::{DeviceClass, Geometry, Quant};

use super::*;
use crate::device::soc::{Soc, find};

fn shape([layers, hidden, heads, kv, dim, ffn, vocab]: [u32; 7], tied: bool) -> Geometry {
    Geometry {
        name: "model".to_owned(),
        layers: Some(layers),
        hidden: Some(hidden),
        heads: Some(heads),
        kv_heads: Some(kv),
        head_dim: Some(dim),
        ffn: Some(ffn),
        vocab: Some(vocab),
        tied_embeddings: tied,
        ..Geometry::default()
    }
}

fn llama_8b() -> Geometry {
    shape([32, 4096, 32, 8, 128, 14336, 128_256], false)
}

fn llama2_7b() -> Geometry {
    shape([32, 4096, 32, 32, 128, 11008, 32_000], false)
}

fn llama_3b() -> Geometry {
    shape([28, 3072, 24, 8, 128, 8192, 128_256], true)
}

fn llama_1b() -> Geometry {
    shape([16, 2048, 32, 8, 64, 8192, 128_256], true)
}

fn phi_mini() -> Geometry {
    shape([32, 3072, 32, 32, 96, 8192, 32_064], false)
}

fn soc(part: &str) -> &'static Soc {
    find(part).unwrap_or_else(|| panic!("no {part}"))
}

fn demand(g: &Geometry, quant: Quant, told: Told) -> Demand {
    Demand::of(g, &Precision::of(quant, told)).unwrap()
}

fn asked<'a>(geometry: &'a Geometry, part: &str) -> Asked<'a> {
    let (told, soc) = (Told::default(), soc(part));
    Asked { geometry, quant: Quant::W4a16, told, soc, context: 4096, prompt: 512, memory: None, power: None, claim: None }
}

fn named(figures: &[Figure], name: &str) -> Figure {
    figures.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

fn close(a: f64, b: f64, within: f64) {
    assert!((a / b - 1.0).abs() <= within, "{a} is not {b}");
}

#[test]
fn the_cache_of_published_models() {
    let per = |g: &Geometry, bits: f64| kv_bytes_per_token(g, bits).unwrap();
    // Kwon et al. 2023, section 3: 800 KB a token for OPT-13B, 40 layers of width 5120.
    assert!((per(&shape([40, 5120, 40, 40, 128, 20_480, 50_272], true), 16.0) - 800.0 * 1024.0).abs() < 0.5);
    // llama.cpp, issue 8101: 137438953504 bytes for 1048576 tokens of a Llama 3 8B, 32 of them alignment.
    assert!((per(&llama_8b(), 16.0) * 1_048_576.0 - 137_438_953_472.0).abs() < 0.5);
    // llama.cpp, pull request 10136: 512 MB (MiB) for 4096 tokens of Llama 3.1 8B.
    assert!((per(&llama_8b(), 16.0) * 4096.0 - 512.0 * 1_048_576.0).abs() < 0.5);
    // llama-cpp-python, issue 66: kv self size 1560.00 MB (MiB) for 512 tokens of LLaMA 30B in 32 bits.
    assert!((per(&shape([60, 6656, 52, 52, 128, 17_920, 32_000], false), 32.0) * 512.0 - 1560.0 * 1_048_576.0).abs() < 0.5);
}

/// reference-numbers.md: 8.03e9 parameters less 0.53e9 of the embedding, at half a byte: about 3.75 GB; 3.8 to 4.1 with scales and an 8-bit LM
/// head. By hand: 6,979,588,096 in blocks and norms, 525,336,576 in the LM head, a row of 4096.
#[test]
fn the_bytes_of_a_token_of_an_8b() {
    let least = demand(&llama_8b(), Quant::W4a16, Told::default());
    assert!((least.weights_read() - (6_979_588_096.0 + 525_336_576.0 + 4096.0) / 2.0).abs() < 1.0);
    let wide = demand(&llama_8b(), Quant::W4a16, Told { head: Some(8.0), ..Told::default() });
    assert!((wide.weights_read() - (6_979_588_096.0 / 2.0 + 525_336_576.0 + 2048.0)).abs() < 1.0);
    // Q4_0 has 4.5 bits: 7,504,924,672 x 0.5625 and a row; q8_0 8.5.
    assert!((demand(&llama_8b(), Quant::Q4_0, Told::default()).weights_read() - 7_504_924_672.0 * 0.5625 - 2304.0).abs() < 1.0);
    assert!((demand(&llama_8b(), Quant::Q8_0, Told::default()).weights_read() - 7_504_924_672.0 * 1.0625 - 4352.0).abs() < 1.0);
    // A scale of 16 bits for 64 weights is a quarter of a bit.
    assert!((Precision::of(Quant::W4a16, Told { group: Some(64), ..Told::default() }).weight - 4.25).abs() < 1e-9);
    assert!((Precision::of(Quant::Q4_0, Told { group: Some(64), ..Told::default() }).weight - 4.5).abs() < 1e-9);
    // 100 tokens of 65536 bytes before it, and its own.
    assert!((least.decode_bytes(100.0) - least.weights_read() - 101.0 * 65_536.0).abs() < 1.0);
}

/// ollama, pull request 6279: Llama 3.1 70B in Q4_0 has 70.55 B parameters, 37.22 GiB, 4.53 bits each (some tensors have more than 4.5).
#[test]
fn the_size_of_a_published_file() {
    let g = shape([80, 8192, 64, 8, 128, 28_672, 128_256], false);
    let d = demand(&g, Quant::Q4_0, Told { head: Some(6.5625), ..Told::default() });
    close(d.parameters().total(), 70.55e9, 1e-4);
    close(d.weights(), 37.22 * 1024.0 * 1_048_576.0, 2e-3);
}

/// A tied table is there once and is read as the LM head: 1,235,814,400 weights in all, each read, and a row of 2048.
#[test]
fn a_tied_table_counts_once() {
    let d = demand(&llama_1b(), Quant::W8, Told::default());
    assert!((d.weights() - 1_235_814_400.0).abs() < 0.5);
    assert!((d.weights_read() - 1_235_814_400.0 - 2048.0).abs() < 0.5);
}

/// Kaplan et al. 2020, table 1: 2N + 2 x layers x context x width for a token, N without embeddings. Llama 2 7B, 4096 tokens:
/// 2 x 6,476,005,376 + 2 x 32 x 4096 x 4096 = 14,025,752,576 + (half a token of attention).
#[test]
fn the_operations_of_a_prompt() {
    let d = demand(&llama2_7b(), Quant::W4, Told::default());
    let kaplan = 2.0 * 6_476_005_376.0 + 2.0 * 32.0 * 4096.0 * 4096.0;
    close(d.prompt_operations(4096.0), kaplan, 1e-4);
    // One token: its matrices, itself in attention (4 x 32 x 4096), and the LM head.
    let one = 2.0 * 6_476_005_376.0 + 524_288.0 + 2.0 * 131_072_000.0;
    assert!((d.prefill_operations(1.0) - one).abs() < 1.0);
}

/// Ceilings of reference-numbers.md for Llama-3-8B in 4 bits: 76.8 GB/s gives 19 to 20, 84.8 gives 21 to 22, 136 gives 33 to 36, by the LM
/// head's precision.
#[test]
fn ceilings_of_an_8b_are_those_of_the_reference() {
    for (part, low, high) in [("SM8650", 19.0, 20.6), ("SM8750", 21.0, 22.7), ("SC8380XP", 33.0, 36.4)] {
        let g = llama_8b();
        for head in [4.0, 8.0] {
            let told = Told { head: Some(head), ..Told::default() };
            let (_, figures) = estimate(&Asked { told, prompt: 1, ..asked(&g, part) });
            let roof = named(&figures, "decode_roof_tok_s").value.unwrap();
            assert!((low..high).contains(&roof), "{part} {head}: {roof}");
        }
    }
    // Design, section 9: a 7B in INT4 at 76.8 GB/s is near 20 tok/s, not 2.4. By hand: 6,607,343,616 x 0.5 + 2048 + 2 x 262144 bytes (KV in 8 bits).
    let g = llama2_7b();
    let (_, figures) = estimate(&Asked { prompt: 1, ..asked(&g, "SM8650") });
    close(named(&figures, "decode_roof_tok_s").value.unwrap(), 76.8e9 / (6_607_343_616.0 * 0.5 + 2048.0 + 524_288.0), 1e-6);
    close(named(&figures, "decode_roof_tok_s").value.unwrap(), 20.0, 0.2);
}

/// Rule R25's golden cases, and what a share means.
#[test]
fn popular_claims_are_over_the_roof() {
    for g in [llama_8b(), llama2_7b()] {
        for claim in [35.0, 25.0] {
            let (_, figures) = estimate(&Asked { claim: Some(claim), prompt: 1, ..asked(&g, "SM8650") });
            let figure = named(&figures, "claim_share");
            assert!(figure.value.unwrap() > 1.0 && figure.how.starts_with("error: over the roof"), "{claim}: {figure:?}");
        }
    }
    let standing = [1.01, 1.0, 0.86, 0.85, 0.15, 0.149].map(Standing::of);
    let words = standing.map(|s| s.words().map_or("", |w| w.split(" of the roof").next().unwrap_or_default()));
    assert_eq!(words[1..], ["warning: over 85 %", "warning: over 85 %", "", "", "warning: under 15 %"]);
    assert_eq!(standing[0], Standing::Over);
}

/// Measured figures of reference-numbers.md (Genie by AI Hub, ExecuTorch, llama.cpp): none is over its roof, and their shares there.
#[test]
fn measured_figures_are_under_the_roof() {
    let (l8, l3, l1, phi, l2) = (llama_8b(), llama_3b(), llama_1b(), phi_mini(), llama2_7b());
    for (g, part, quant, tok_s, low, high) in [
        (&l8, "SM8750", Quant::W4a16, 14.72, 0.65, 0.71),
        (&l8, "SM8850", Quant::W4a16, 16.37, 0.72, 0.79),
        (&l8, "SC8380XP", Quant::W4a16, 6.87, 0.18, 0.21),
        (&l8, "SM8650", Quant::W4, 10.85, 0.5, 0.6),
        (&l3, "SM8750", Quant::W4a16, 28.03, 0.5, 0.6),
        (&l3, "SM8650", Quant::W4, 19.7, 0.4, 0.5),
        (&l1, "SM8850", Quant::W4a16, 74.39, 0.5, 0.6),
        (&l1, "SM8750", Quant::Q4_0, 51.5, 0.4, 0.5),
        (&phi, "SM8650", Quant::W4a16, 13.01, 0.3, 0.4),
        (&l2, "SM8650", Quant::W4a16, 12.85, 0.5, 0.6),
    ] {
        let (_, figures) = estimate(&Asked { quant, claim: Some(tok_s), prompt: 1, ..asked(g, part) });
        let share = named(&figures, "claim_share").value.unwrap();
        assert!((low..high).contains(&share), "{part} {quant} {tok_s}: {share}");
    }
}

#[test]
fn the_device_s_own_clock_comes_before_the_catalogue() {
    let g8 = soc("SM8650");
    // 4761 MHz, two transfers, 8 bytes: 76.176 GB/s.
    let own = peak(Some(g8), Some(4_761_000)).unwrap();
    assert!((own.gb_s - 76.176).abs() < 1e-9 && own.is_sure(), "{own:?}");
    assert_eq!(own.words(), "the device's own DDR clock of at most 4761 MHz x 2 x 64 bits");
    assert!((peak(Some(g8), Some(0)).unwrap().gb_s - 76.8).abs() < 1e-9);
    assert!(peak(Some(g8), Some(u64::MAX)).unwrap().gb_s.is_finite());
    assert!(!peak(Some(soc("QCS8550")), None).unwrap().is_sure());
    assert_eq!(peak(Some(soc("SM8450")), Some(3_200_000)).unwrap_err(), "no source tells the memory of SM8450");
    assert!(peak(None, None).unwrap_err().contains("not in the catalogue"));
}

#[test]
fn the_roof_applies_where_rule_r25_says() {
    let good =
        Conditions { class: DeviceClass::Phone, batch: 1, speculative: false, mixture: None, weights: 3.7e9, soc: Some(soc("SM8650")) };
    assert_eq!(applies(&good), Ok(None));
    assert_eq!(applies(&Conditions { class: DeviceClass::Board, ..good }), Ok(None));
    let why = |c: Conditions<'_>| applies(&c).unwrap_err();
    assert_eq!(why(Conditions { class: DeviceClass::Pc, ..good }), "the roof is for phones and boards, not for class pc");
    assert_eq!(why(Conditions { class: DeviceClass::Emulator, ..good }), "the roof is for phones and boards, not for class emulator");
    assert_eq!(why(Conditions { batch: 4, ..good }), "batch 4: a reading of the weights serves several tokens");
    assert!(why(Conditions { speculative: true, ..good }).starts_with("speculative decoding"));
    assert_eq!(why(Conditions { mixture: Some("a mixture"), ..good }), "a mixture");
    // 8 x (6144 KB + 8 MB) = 117,440,512 bytes: at it no, above it yes.
    assert_eq!(why(Conditions { weights: 117_440_512.0, ..good }), "117 MB of weights are not over 8 x (last cache 6.3 MB + VTCM 8.4 MB)");
    assert_eq!(applies(&Conditions { weights: 117_440_513.0, ..good }), Ok(None));
    // Caches that nobody tells are taken as the largest that are known, and that is said.
    let assumed = applies(&Conditions { soc: Some(soc("QCS8550")), ..good }).unwrap();
    assert_eq!(assumed.as_deref(), Some("VTCM taken as 8 MB, the most in the catalogue"));
    assert!(applies(&Conditions { soc: None, ..good }).unwrap().unwrap().starts_with("last cache taken as 8192 KB"));
}

#[test]
fn what_is_not_known_is_absent_with_a_reason() {
    let g = Geometry { kv_heads: None, ..llama_8b() };
    let (_, figures) = estimate(&asked(&g, "SM8650"));
    for figure in &figures {
        assert_eq!(figure.value.is_none(), figure.absent.is_some(), "{figure:?}");
        if !["peak_gb_s", "prefill_roof_tok_s", "context_limit_tok", "energy_j_per_tok"].contains(&figure.name) {
            assert_eq!(figure.absent.as_deref(), Some("the geometry does not tell kv-heads"), "{}", figure.name);
        }
    }
    assert!(named(&figures, "prefill_roof_tok_s").absent.unwrap().contains("R26"));
    // A mixture has a size and a cache, and no figure of one token.
    let (_, figures) = estimate(&asked(&Geometry { experts: 8, ..llama_8b() }, "SM8650"));
    assert!(named(&figures, "weights_mb").value.unwrap() > 20_000.0 && named(&figures, "kv_cache_mb").value.is_some());
    for name in ["decode_mb_per_tok", "decode_roof_tok_s", "prefill_gop"] {
        assert!(named(&figures, name).absent.unwrap().contains("a mixture of 8 experts"), "{name}");
    }
}

#[test]
fn zeros_and_giants_make_no_figure_that_is_none() {
    for g in [
        Geometry::default(),
        shape([0; 7], false),
        shape([u32::MAX; 7], false),
        Geometry { experts: u32::MAX, ..shape([u32::MAX; 7], true) },
        shape([1; 7], true),
    ] {
        for (context, prompt) in [(1, 1), (u32::MAX, u32::MAX)] {
            let a = Asked { context, prompt, memory: Some(1.0), power: Some(1e300), claim: Some(1e300), ..asked(&g, "SM8650") };
            for figure in estimate(&a).1 {
                assert!(figure.value.is_none_or(|v| v.is_finite() && v >= 0.0), "{figure:?}");
                assert_ne!(figure.value.is_some(), figure.absent.is_some(), "{figure:?}");
            }
        }
    }
    // A width that is none counts as not told.
    for bits in [0.0, -4.0, f64::NAN, f64::INFINITY] {
        let p = Precision::of(Quant::W4a16, Told { head: Some(bits), kv: Some(bits), group: Some(0), ..Told::default() });
        assert!((p.head - 4.0).abs() < 1e-9 && (p.kv - 8.0).abs() < 1e-9 && (p.weight - 4.0).abs() < 1e-9, "{p:?}");
    }
}

/// 12 GB less 4,015,131,648 bytes of weights (8,030,263,296... at half a byte) and 200 MB, over 65,536 bytes a token.
#[test]
fn memory_and_context_by_hand() {
    let g = llama_8b();
    let (_, figures) = estimate(&Asked { memory: Some(12e9), power: Some(4.0), ..asked(&g, "SM8650") });
    let weights = 8_030_261_248.0 / 2.0;
    close(named(&figures, "memory_need_mb").value.unwrap(), (weights + 65_536.0 * 4096.0) / 1e6 + 200.0, 1e-9);
    close(named(&figures, "context_limit_tok").value.unwrap(), ((12e9 - weights - 200e6) / 65_536.0_f64).floor(), 1e-12);
    let roof = named(&figures, "decode_roof_tok_s").value.unwrap();
    close(named(&figures, "energy_j_per_tok").value.unwrap(), 4.0 / roof, 1e-9);
    let (_, small) = estimate(&Asked { memory: Some(1e9), ..asked(&g, "SM8650") });
    assert_eq!(named(&small, "context_limit_tok").value, Some(0.0));
}
