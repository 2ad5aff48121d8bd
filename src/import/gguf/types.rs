//! Numbers of the GGUF world as names and sizes. Sources: `llama_ftype` of llama.cpp's `include/llama.h`, `ggml_type` of ggml's `ggml.h`, sizes
//! of blocks as in `GGML_QUANT_SIZES` of the project's own gguf-py.

/// A type of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// Bits of a weight without scales; 0 for the codes of a vector quantisation, which have no whole number of them.
    pub bits: u32,
    /// Weights of a block: those that share a scale, or the finer scales of a super-block of 256.
    pub block: u64,
    /// Bytes of a block, scales included.
    pub bytes: u64,
}

const fn kind(number: u32, name: &'static str, bits: u32, block: u64, bytes: u64) -> Kind {
    Kind { number, name, bits, block, bytes }
}

const KINDS: [Kind; 34] = [
    kind(0, "F32", 32, 1, 4),
    kind(1, "F16", 16, 1, 2),
    kind(2, "Q4_0", 4, 32, 18),
    kind(3, "Q4_1", 4, 32, 20),
    kind(6, "Q5_0", 5, 32, 22),
    kind(7, "Q5_1", 5, 32, 24),
    kind(8, "Q8_0", 8, 32, 34),
    kind(9, "Q8_1", 8, 32, 40),
    kind(10, "Q2_K", 2, 256, 84),
    kind(11, "Q3_K", 3, 256, 110),
    kind(12, "Q4_K", 4, 256, 144),
    kind(13, "Q5_K", 5, 256, 176),
    kind(14, "Q6_K", 6, 256, 210),
    kind(15, "Q8_K", 8, 256, 292),
    kind(16, "IQ2_XXS", 0, 256, 66),
    kind(17, "IQ2_XS", 0, 256, 74),
    kind(18, "IQ3_XXS", 0, 256, 98),
    kind(19, "IQ1_S", 0, 256, 50),
    kind(20, "IQ4_NL", 4, 32, 18),
    kind(21, "IQ3_S", 0, 256, 110),
    kind(22, "IQ2_S", 0, 256, 82),
    kind(23, "IQ4_XS", 4, 256, 136),
    kind(24, "I8", 8, 1, 1),
    kind(25, "I16", 16, 1, 2),
    kind(26, "I32", 32, 1, 4),
    kind(27, "I64", 64, 1, 8),
    kind(28, "F64", 64, 1, 8),
    kind(29, "IQ1_M", 0, 256, 56),
    kind(30, "BF16", 16, 1, 2),
    kind(34, "TQ1_0", 0, 256, 54),
    kind(35, "TQ2_0", 2, 256, 66),
    kind(39, "MXFP4", 4, 32, 17),
    kind(40, "NVFP4", 4, 64, 36),
    kind(41, "Q1_0", 1, 128, 18),
];

/// Super-blocks hold finer scales, one for each of these many weights; what is not named has none that this version knows.
const FINER: [(&str, u64); 6] = [("Q2_K", 16), ("Q3_K", 16), ("Q4_K", 32), ("Q5_K", 32), ("Q6_K", 16), ("IQ4_XS", 32)];

impl Kind {
    /// The one of a number.
    pub fn of(number: u32) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.number == number)
    }

    /// A number in whole bits that has no scales.
    pub const fn is_plain(&self) -> bool {
        self.block == 1
    }

    /// Weights that share a scale; `None` where there is no scale, or where it is not known.
    pub fn group(&self) -> Option<u64> {
        let finer = FINER.iter().find(|(name, _)| *name == self.name).map(|(_, group)| *group);
        finer.or((self.block == 32).then_some(self.block))
    }
}

/// Names of `general.file_type`, as llama.cpp's own programs take and print them.
const FILE_TYPES: [(u32, &str); 35] = [
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K"),
    (11, "Q3_K_S"),
    (12, "Q3_K_M"),
    (13, "Q3_K_L"),
    (14, "Q4_K_S"),
    (15, "Q4_K_M"),
    (16, "Q5_K_S"),
    (17, "Q5_K_M"),
    (18, "Q6_K"),
    (19, "IQ2_XXS"),
    (20, "IQ2_XS"),
    (21, "Q2_K_S"),
    (22, "IQ3_XS"),
    (23, "IQ3_XXS"),
    (24, "IQ1_S"),
    (25, "IQ4_NL"),
    (26, "IQ3_S"),
    (27, "IQ3_M"),
    (28, "IQ2_S"),
    (29, "IQ2_M"),
    (30, "IQ4_XS"),
    (31, "IQ1_M"),
    (32, "BF16"),
    (36, "TQ1_0"),
    (37, "TQ2_0"),
    (38, "MXFP4_MOE"),
    (39, "NVFP4"),
    (40, "Q1_0"),
];

/// The name of a file's type.
pub fn file_type(number: u32) -> Option<&'static str> {
    FILE_TYPES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}
