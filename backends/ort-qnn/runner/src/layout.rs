//! Where everything lies in the tensors of a static-shape decoder with an explicit KV cache: pure functions.
//!
//! A graph takes AR tokens at once and has room for a context of CL tokens, CL - AR of them past ("capacity"). The columns of
//! attention are the past, left-aligned, then the AR new ones. Layouts, row-major:
//! mask `[1, 1, AR, CL]`, cos and sin `[1, 1, AR, head_dim / 2]`, key `[kv_heads, 1, head_dim, columns]`,
//! value `[kv_heads, 1, columns, head_dim]`, logits `[1, AR, vocab]`.

use std::ops::Range;

/// The parts of a prompt that the prefill graph takes one after the other, or the number of prompt tokens that it can take.
///
/// All but the last are full; the last is padded by the caller. A chunk needs all tokens before it in its past.
pub fn chunks(prompt: usize, ar: usize, capacity: usize) -> Result<Vec<Range<usize>>, usize> {
    let parts: Vec<_> = (0..prompt).step_by(ar).map(|start| start..prompt.min(start + ar)).collect();
    match parts.last() {
        Some(last) if last.start > capacity => Err((capacity / ar + 1) * ar),
        _ => Ok(parts),
    }
}

/// Writes the attention mask of AR new tokens behind `past` old ones: row i sees the whole past and the new tokens up to i.
///
/// Rows of padding see like any other; nobody reads their results.
pub fn write_mask<T: Copy>(mask: &mut [T], context: usize, past: usize, open: T, blocked: T) {
    let ar = mask.len() / context;
    let first_new = context - ar;
    mask.fill(blocked);
    for (i, row) in mask.chunks_exact_mut(context).enumerate() {
        row[..past].fill(open);
        row[first_new..=first_new + i].fill(open);
    }
}

/// Cosine and sine of the rotary embedding for every position below `context`: two tables `[context, head_dim / 2]`.
///
/// Source: Su et al., RoFormer: angle = position / theta^(2 j / head_dim), here for the halves layout of Llama.
pub fn rope(context: usize, head_dim: usize, theta: f64) -> (Vec<f64>, Vec<f64>) {
    (0..context)
        .flat_map(|position| (0..head_dim / 2).map(move |j| position as f64 / theta.powf((2 * j) as f64 / head_dim as f64)))
        .map(|angle| (angle.cos(), angle.sin()))
        .unzip()
}

/// Sizes of one KV tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvShape {
    /// KV heads.
    pub heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Columns of the cache: the capacity of its graph.
    pub columns: usize,
}

/// Copies the first `n` columns of a graph's new keys (`[heads, 1, head_dim, from_columns]`) into the cache, from column `at`.
pub fn append_key<T: Copy>(cache: &mut [T], shape: KvShape, new: &[T], from_columns: usize, at: usize, n: usize) {
    for (to, from) in cache.chunks_exact_mut(shape.columns).zip(new.chunks_exact(from_columns)) {
        to[at..at + n].copy_from_slice(&from[..n]);
    }
}

/// Copies the first `n` columns of a graph's new values (`[heads, 1, from_columns, head_dim]`) into the cache, from column `at`.
pub fn append_value<T: Copy>(cache: &mut [T], shape: KvShape, new: &[T], from_columns: usize, at: usize, n: usize) {
    let row = shape.head_dim;
    for (to, from) in cache.chunks_exact_mut(shape.columns * row).zip(new.chunks_exact(from_columns * row)) {
        to[at * row..(at + n) * row].copy_from_slice(&from[..n * row]);
    }
}

/// The place of the first largest element, as numpy has it. Right for raw quantised logits too: their scale is positive.
/// `None` if the numbers are no numbers.
pub fn argmax<T: PartialOrd>(row: &[T]) -> Option<usize> {
    let mut best = 0;
    for (i, x) in row.iter().enumerate() {
        if *x > row[best] {
            best = i;
        }
    }
    // A NaN is not even equal to itself; one that is first is never exceeded.
    row.get(best).filter(|x| x.partial_cmp(x).is_some()).map(|_| best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_prompt_and_stay_in_the_cache() {
        for (prompt, ar, capacity, want) in [
            (1, 32, 96, Ok(vec![(0, 1)])),
            (32, 32, 96, Ok(vec![(0, 32)])),
            (33, 32, 96, Ok(vec![(0, 32), (32, 33)])),
            (128, 32, 96, Ok(vec![(0, 32), (32, 64), (64, 96), (96, 128)])),
            (129, 32, 96, Err(128)),
            (97, 32, 68, Err(96)), // a context of 100: the fourth chunk has 96 old tokens and room for 68
            (2, 1, 127, Ok(vec![(0, 1), (1, 2)])),
        ] {
            let got = chunks(prompt, ar, capacity).map(|parts| parts.iter().map(|part| (part.start, part.end)).collect::<Vec<_>>());
            assert_eq!(got, want, "{prompt} tokens by {ar}");
        }
    }

    #[test]
    fn the_mask_is_causal_behind_the_past() {
        let mut mask = vec![9; 3 * 8];
        write_mask(&mut mask, 8, 2, 0, 1);
        assert_eq!(
            mask,
            [
                0, 0, 1, 1, 1, 0, 1, 1, // past at 0 and 1, itself at 5
                0, 0, 1, 1, 1, 0, 0, 1, //
                0, 0, 1, 1, 1, 0, 0, 0,
            ]
        );
        let mut decode = vec![9; 4];
        write_mask(&mut decode, 4, 3, 0, 1);
        assert_eq!(decode, [0; 4]);
    }

    #[test]
    fn rope_tables_are_those_of_the_formula() {
        let (cos, sin) = rope(3, 4, 100.0);
        assert_eq!((cos.len(), cos[0], sin[0], sin[1]), (6, 1.0, 0.0, 0.0));
        assert!((cos[4] - 2f64.cos()).abs() < 1e-12 && (sin[5] - 0.2f64.sin()).abs() < 1e-12);
    }

    /// Both layouts hold the same numbers, so that one naive loop checks both.
    #[test]
    fn appended_columns_land_at_their_place_and_nowhere_else() {
        let shape = KvShape { heads: 2, head_dim: 3, columns: 5 };
        let (ar, at, n) = (4, 2, 3);
        let number = |h: usize, d: usize, c: usize| 100 * h + 10 * d + c + 1;
        let (mut new_key, mut new_value) = (vec![0; 2 * 3 * ar], vec![0; 2 * ar * 3]);
        for h in 0..2 {
            for d in 0..3 {
                for c in 0..ar {
                    new_key[(h * 3 + d) * ar + c] = number(h, d, c);
                    new_value[(h * ar + c) * 3 + d] = number(h, d, c);
                }
            }
        }
        let (mut key, mut value) = (vec![0; 30], vec![0; 30]);
        append_key(&mut key, shape, &new_key, ar, at, n);
        append_value(&mut value, shape, &new_value, ar, at, n);
        for h in 0..2 {
            for d in 0..3 {
                for c in 0..5 {
                    let want = if (at..at + n).contains(&c) { number(h, d, c - at) } else { 0 };
                    assert_eq!(key[(h * 3 + d) * 5 + c], want);
                    assert_eq!(value[(h * 5 + c) * 3 + d], want);
                }
            }
        }
    }

    #[test]
    fn argmax_takes_the_first_of_equals_and_no_nan() {
        assert_eq!((argmax(&[f32::NAN; 3]), argmax::<u8>(&[])), (None, None));
        assert_eq!((argmax(&[1u16, 7, 7]), argmax(&[-2.0f32, -1.0]), argmax(&[3])), (Some(1), Some(1), Some(0)));
    }
}
