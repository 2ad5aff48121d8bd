//! Whether tokens stay right: a processor that is too hot, or undervolted, computes wrong before it crashes (rule R20).

use std::collections::BTreeMap;

use bench_backend_api::Query;

use super::figures::Input;

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Number of its query.
    pub query: u32,
    /// Its last token, `CLOCK_MONOTONIC` ns.
    pub t_ns: u64,
    /// Under the agreement with the reference that is asked for; `None` without a reference.
    pub wrong: Option<bool>,
    /// Another answer than the first one to the same prompt.
    pub changed: bool,
    /// There was an earlier answer to the same prompt.
    pub repeated: bool,
    /// The first token that differs, from whichever it was compared with.
    pub differs: Option<usize>,
}

/// Every answer that came to its end and whose ids are known.
pub fn check(input: &Input<'_>) -> Vec<Checked> {
    let mut first: BTreeMap<u32, &Query> = BTreeMap::new();
    let mut all = Vec::new();
    for q in input.queries.iter().filter(|q| q.tokens.len() == input.gen_tokens as usize && q.tokens.iter().all(|t| t.id.is_some())) {
        let Some(last) = q.tokens.last() else { continue };
        let place = q.query % input.prompts.max(1);
        let before = first.get(&place).copied();
        let since = before.and_then(|b| differs(q, |i| b.tokens.get(i).and_then(|t| t.id)));
        let reference = input.reference.and_then(|r| r.get(place as usize));
        let off = reference.and_then(|want| differs(q, |i| want.get(i).copied()));
        let wrong = reference.map(|want| off.is_some_and(|same| (same as f64) < input.least_agreement * want.len().max(1) as f64));
        let compared = if wrong == Some(true) { off } else { since };
        all.push(Checked {
            query: q.query,
            t_ns: last.t_ns,
            wrong,
            changed: since.is_some(),
            repeated: before.is_some(),
            differs: compared,
        });
        first.entry(place).or_insert(q);
    }
    all
}

/// The first token that is another one.
fn differs(q: &Query, want: impl Fn(usize) -> Option<u32>) -> Option<usize> {
    q.tokens.iter().enumerate().position(|(i, t)| t.id != want(i))
}

/// The word of a window, its wrong and its changed answers.
pub fn verdict<'a>(answers: impl Iterator<Item = &'a Checked>) -> (&'static str, u32, u32) {
    let (mut wrong, mut changed, mut compared) = (0, 0, false);
    for a in answers {
        wrong += u32::from(a.wrong == Some(true));
        changed += u32::from(a.changed);
        compared |= a.wrong.is_some() || a.repeated;
    }
    let word = match (wrong + changed, compared) {
        (1.., _) => "contradicted",
        (0, true) => "confirmed",
        (0, false) => "not-checkable",
    };
    (word, wrong, changed)
}
