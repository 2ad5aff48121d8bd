//! What names of models and files tell.

use bench_backend_api::Quant;

/// Words in names for classes of quantisation, the more telling first. `int4` and `4bit` say how wide weights are, and nothing of activations.
const WORDS: [(&str, Quant); 18] = [
    ("w4a16", Quant::W4a16),
    ("w8a16", Quant::W8a16),
    ("w8a8", Quant::W8a8),
    ("w4a8", Quant::W4a8),
    ("q4_k_m", Quant::Q4KM),
    ("q8_0", Quant::Q8_0),
    ("q4_0", Quant::Q4_0),
    ("fp16", Quant::Fp16),
    ("bf16", Quant::Bf16),
    ("fp32", Quant::Fp32),
    ("int4", Quant::W4),
    ("4bit", Quant::W4),
    ("int8", Quant::W8),
    ("8bit", Quant::W8),
    ("w4", Quant::W4),
    ("w8", Quant::W8),
    ("f16", Quant::Fp16),
    ("f32", Quant::Fp32),
];

/// The class that a name tells, where it is a word of its own.
pub fn quant_in(name: &str) -> Option<Quant> {
    let name = name.to_ascii_lowercase();
    let alone = |at: usize, word: &str| {
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
        edge(name[..at].chars().next_back()) && edge(name[at + word.len()..].chars().next())
    };
    let found = |word: &str| name.match_indices(word).any(|(at, _)| alone(at, word));
    WORDS.iter().find(|(word, _)| found(word)).map(|(_, quant)| *quant)
}

/// The class of a width of weights with floating-point activations.
pub const fn quant_of_bits(bits: u32) -> Option<Quant> {
    match bits {
        4 => Some(Quant::W4),
        8 => Some(Quant::W8),
        16 => Some(Quant::Fp16),
        32 => Some(Quant::Fp32),
        _ => None,
    }
}

/// Makes a scenario's name of any text: small letters, digits, `-` and `.`, 48 at most.
pub fn name_of(text: &str) -> String {
    let mut name = String::new();
    for c in text.to_lowercase().chars() {
        let c = if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' { c } else { '-' };
        if !(c == '-' && name.ends_with('-')) {
            name.push(c);
        }
    }
    let name: String = name.trim_start_matches(['-', '.']).chars().take(48).collect();
    let name = name.trim_end_matches(['-', '.']);
    if name.is_empty() { "model".to_owned() } else { name.to_owned() }
}

/// `2_of_5` in a name: which part of how many, and the place in the name at which it begins.
pub fn part_of(name: &str) -> Option<(u32, u32, usize)> {
    let (at, _) = name.match_indices("_of_").next()?;
    let before = &name[..at];
    let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let after: String = name[at + 4..].chars().take_while(char::is_ascii_digit).collect();
    Some((before[at - digits..].parse().ok()?, after.parse().ok()?, at - digits))
}
