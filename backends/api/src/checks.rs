//! Verification: tokens counted, tokens agree, unit that worked (design 2b.5).

use serde::{Deserialize, Serialize};

use crate::{
    cell::{Quant, words},
    measurement::{Parsed, note},
};

words! {
    /// Outcome of one check.
    Check { Confirmed = "confirmed", Contradicted = "contradicted",
        /// There is nothing to compare with; shown, never taken for a pass.
        NotCheckable = "not-checkable" }
}

/// The checks of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checks {
    /// Prompt and generated tokens are as many as asked, by our count and by the runtime's.
    pub count: Check,
    /// The generated tokens agree with the reference.
    pub tokens: Check,
    /// The unit that was asked for did the work.
    pub unit: Check,
    /// Every prompt began with exactly one BOS (rule R4); `None` for a model without one, where nothing was prompted, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos: Option<Check>,
    /// Tokens before the first divergence over tokens asked, the lowest of the measured queries.
    pub token_agreement: Option<f64>,
    /// The unit that worked, as far as there is evidence.
    pub unit_found: Option<String>,
    /// One sentence for every check that is not `confirmed`.
    pub reasons: Vec<String>,
}

/// What a launch should have produced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Prompt tokens asked, BOS included.
    pub prompt_tokens: u32,
    /// Generated tokens asked.
    pub gen_tokens: u32,
    /// Number of queries asked.
    pub queries: u32,
    /// The model wants a BOS: the prompts begin with exactly one, which `prompt_tokens` counts.
    #[serde(default)]
    pub bos: bool,
    /// Reference tokens for each query, when there is a reference.
    pub reference: Option<Vec<Vec<u32>>>,
    /// Agreement under which even a quantised model is contradicted.
    pub min_agreement: Option<f64>,
}

/// The most reasons of one check that are given in words: a launch of hundreds of queries that are all short has as many.
const MAX_REASONS: usize = 6;

/// Counts: every query that was asked for is there with the asked numbers of tokens, and went to its end. For what
/// [`crate::parsed_from_events`] read of a process with exit status 0.
pub fn check_count(expected: &Expected, parsed: &Parsed) -> (Check, Vec<String>) {
    let mut reasons = Vec::new();
    if parsed.queries.len() != expected.queries as usize {
        reasons.push(format!("{} queries asked, {} answered", expected.queries, parsed.queries.len()));
    }
    // The reference tokens and the discarded query are found by number.
    if let Some(q) = parsed.queries.iter().find(|q| q.query >= expected.queries) {
        reasons.push(format!("queries 0 to {} asked, query {} answered", expected.queries.saturating_sub(1), q.query));
    }
    if !parsed.ended {
        reasons.push("exit status 0 without the event `end`, the last line of a run that did everything".to_owned());
    }
    for q in &parsed.queries {
        match q.finish.as_deref().filter(|_| q.end_ns.is_some()) {
            None => reasons.push(format!("query {}: no event `query_end`", q.query)),
            Some("length") => {}
            Some(other) => reasons.push(format!("query {}: ended by `{other}`, not `length`", q.query)),
        }
        for (what, got) in [("submitted", q.prompt_tokens), ("reported by the runtime", q.prompt_tokens_reported)] {
            if let Some(n) = got.filter(|n| *n != expected.prompt_tokens) {
                reasons.push(format!("query {}: {} prompt tokens asked, {n} {what}", q.query, expected.prompt_tokens));
            }
        }
        if q.tokens.len() != expected.gen_tokens as usize {
            let finish = q.finish.as_deref().unwrap_or("unknown");
            reasons.push(format!(
                "query {}: {} tokens asked, {} generated (finish: {finish})",
                q.query,
                expected.gen_tokens,
                q.tokens.len()
            ));
        }
        if let Some(n) = q.generated_reported.filter(|n| *n != expected.gen_tokens) {
            reasons.push(format!("query {}: {} tokens asked, {n} reported by the runtime", q.query, expected.gen_tokens));
        }
    }
    let more = reasons.len().saturating_sub(MAX_REASONS);
    if more > 0 {
        reasons.truncate(MAX_REASONS);
        reasons.push(format!("{more} more of this kind"));
    }
    (if reasons.is_empty() { Check::Confirmed } else { Check::Contradicted }, reasons)
}

/// Counts of a tool that gives no time for each token: the numbers that it reports itself. Of a mean, they are those of one query.
pub fn check_reported(expected: &Expected, queries: u32, parsed: &Parsed) -> (Check, Vec<String>) {
    let mut reasons = Vec::new();
    if parsed.queries.len() != queries as usize {
        reasons.push(format!("{queries} results expected, {} found", parsed.queries.len()));
    }
    let mut unknown = false;
    for q in &parsed.queries {
        for (what, asked, told) in
            [("prompt", expected.prompt_tokens, q.prompt_tokens_reported), ("generated", expected.gen_tokens, q.generated_reported)]
        {
            unknown |= told.is_none();
            if let Some(n) = told.filter(|n| *n != asked) {
                reasons.push(format!("query {}: {asked} {what} tokens asked, {n} reported by the runtime", q.query));
            }
        }
    }
    match (reasons.is_empty(), unknown) {
        (false, _) => (Check::Contradicted, reasons),
        (true, false) => (Check::Confirmed, reasons),
        (true, true) => (Check::NotCheckable, vec!["the tool does not report how many tokens there were".to_owned()]),
    }
}

/// Exactly one BOS (rule R4). The prompts have one, so what shows a second one, or none, is the number of tokens that went in: the runtime's
/// own, or that of a runner which feeds the ids itself. Adds a reason unless it is confirmed.
pub fn check_bos(expected: &Expected, parsed: &Parsed, reasons: &mut Vec<String>) -> Option<Check> {
    if !expected.bos || parsed.queries.is_empty() {
        return None;
    }
    if let Some(how) = parsed.notes.get(note::OWN_PROMPT) {
        reasons.push(format!("whether the prompts begin with BOS can't be told: they are {how}"));
        return Some(Check::NotCheckable);
    }
    let counts: Option<Vec<u32>> = parsed.queries.iter().map(|q| q.prompt_tokens_reported.or(q.prompt_tokens)).collect();
    let Some(counts) = counts else {
        reasons.push("whether the prompts begin with BOS can't be told: the tool counts no prompt tokens".to_owned());
        return Some(Check::NotCheckable);
    };
    let asked = expected.prompt_tokens;
    let Some(found) = counts.into_iter().find(|n| *n != asked) else { return Some(Check::Confirmed) };
    let (check, why) = match i64::from(found) - i64::from(asked) {
        1 => (Check::Contradicted, "one more than the prompt has with its BOS: a second BOS was put before it"),
        -1 => (Check::Contradicted, "one fewer than the prompt has with its BOS: none was put before it"),
        _ => (Check::NotCheckable, "so that nothing can be told of the BOS"),
    };
    reasons.push(format!("{found} prompt tokens went in, {why}"));
    Some(check)
}

/// Tokens: a float model must agree with its float32 reference in full; a quantised one states its agreement.
pub fn check_tokens(quant: Quant, expected: &Expected, parsed: &Parsed) -> (Check, Option<f64>, Vec<String>) {
    let Some(reference) = &expected.reference else {
        return (Check::NotCheckable, None, vec!["no reference tokens".to_owned()]);
    };
    if parsed.queries.iter().any(|q| q.aggregate_n.is_some()) {
        return (Check::NotCheckable, None, vec!["the tool prints no token ids".to_owned()]);
    }
    let mut lowest: Option<f64> = None;
    for q in &parsed.queries {
        let Some(want) = reference.get(q.query as usize) else { continue };
        let ids: Option<Vec<u32>> = q.tokens.iter().map(|t| t.id).collect();
        let Some(ids) = ids else {
            return (Check::NotCheckable, None, vec!["the runtime gives no token ids".to_owned()]);
        };
        let same = ids.iter().zip(want).take_while(|(a, b)| a == b).count();
        let share = same as f64 / want.len().max(1) as f64;
        lowest = Some(lowest.map_or(share, |l| l.min(share)));
    }
    let Some(agreement) = lowest else {
        return (Check::NotCheckable, None, vec!["no query to compare".to_owned()]);
    };
    let least = if quant.is_float() { 1.0 } else { expected.min_agreement.unwrap_or(0.0) };
    if agreement < least {
        let why = format!("tokens agree with the reference up to {:.0} %, at least {:.0} % is required", agreement * 100.0, least * 100.0);
        (Check::Contradicted, lowest, vec![why])
    } else if agreement >= 1.0 {
        (Check::Confirmed, lowest, Vec::new())
    } else {
        let why = format!("{quant}: tokens agree with the float reference up to {:.0} %; a quantised model may differ", agreement * 100.0);
        (Check::NotCheckable, lowest, vec![why])
    }
}

/// The first contradicted check, in words.
pub fn contradiction(checks: &Checks) -> Option<String> {
    let bad = |c: Check| c == Check::Contradicted;
    (bad(checks.count) || bad(checks.tokens) || bad(checks.unit) || checks.bos.is_some_and(bad)).then(|| checks.reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Query;

    #[test]
    fn reported_counts_are_compared_and_missing_ones_are_not_confirmed() {
        let expected = Expected { prompt_tokens: 32, gen_tokens: 8, queries: 2, ..Expected::default() };
        let query = |prompt, generated| Query {
            prompt_tokens_reported: prompt,
            generated_reported: generated,
            aggregate_n: Some(1),
            ..Query::default()
        };
        let check = |query: Query| check_reported(&expected, 1, &Parsed { queries: vec![query], ..Parsed::default() });
        assert_eq!(check(query(Some(32), Some(8))).0, Check::Confirmed);
        assert_eq!(check(query(Some(32), None)).0, Check::NotCheckable);
        let (short, why) = check(query(Some(32), Some(5)));
        assert_eq!((short, why), (Check::Contradicted, vec!["query 0: 8 generated tokens asked, 5 reported by the runtime".to_owned()]));
        assert_eq!(check_reported(&expected, 2, &Parsed::default()).0, Check::Contradicted);
        let expected = Expected { reference: Some(vec![vec![1; 8]]), ..expected };
        let parsed = Parsed { queries: vec![query(Some(32), Some(8))], ..Parsed::default() };
        assert_eq!(check_tokens(Quant::Fp16, &expected, &parsed).0, Check::NotCheckable);
    }

    #[test]
    fn one_bos_is_as_many_tokens_as_were_asked() {
        let bos = |submitted, reported, own: bool| {
            let query = Query { prompt_tokens: submitted, prompt_tokens_reported: reported, ..Query::default() };
            let notes = own.then(|| (note::OWN_PROMPT.to_owned(), "the tool's own".to_owned())).into_iter().collect();
            let mut reasons = Vec::new();
            let expected = Expected { prompt_tokens: 32, bos: true, ..Expected::default() };
            (check_bos(&expected, &Parsed { queries: vec![query], notes, ..Parsed::default() }, &mut reasons), reasons.join("; "))
        };
        assert_eq!(bos(Some(32), Some(32), false), (Some(Check::Confirmed), String::new()));
        assert_eq!(bos(Some(32), None, false).0, Some(Check::Confirmed), "a runner that feeds the ids itself");
        let (check, why) = bos(Some(32), Some(33), false);
        assert!(
            check == Some(Check::Contradicted) && why.starts_with("33 prompt tokens went in, one more") && why.contains("second BOS"),
            "{why}"
        );
        let (check, why) = bos(Some(32), Some(31), false);
        assert!(check == Some(Check::Contradicted) && why.contains("none was put"), "{why}");
        assert_eq!(bos(Some(32), Some(40), false).0, Some(Check::NotCheckable));
        assert_eq!(bos(None, None, false).0, Some(Check::NotCheckable));
        assert_eq!(bos(None, Some(32), true).0, Some(Check::NotCheckable), "llm_bench counts what it was asked for");
        let without = Expected { prompt_tokens: 32, ..Expected::default() };
        assert_eq!(check_bos(&without, &Parsed { queries: vec![Query::default()], ..Parsed::default() }, &mut Vec::new()), None);
    }

    #[test]
    fn a_second_bos_makes_a_launch_count_for_nothing() {
        let good = Checks {
            count: Check::Confirmed,
            tokens: Check::Confirmed,
            unit: Check::Confirmed,
            bos: Some(Check::NotCheckable),
            token_agreement: None,
            unit_found: None,
            reasons: vec!["why".to_owned()],
        };
        assert_eq!(contradiction(&good), None);
        assert_eq!(contradiction(&Checks { bos: Some(Check::Contradicted), ..good }).as_deref(), Some("why"));
    }

    #[test]
    fn a_hundred_broken_queries_are_told_in_a_few_words() {
        let expected = Expected { queries: 100, prompt_tokens: 1, gen_tokens: 1, ..Expected::default() };
        let queries = (0..100).map(|query| Query { query, ..Query::default() }).collect();
        let (check, reasons) = check_count(&expected, &Parsed { queries, ended: true, ..Parsed::default() });
        // Each lacks its `query_end` and its token.
        assert_eq!((check, reasons.len(), reasons[6].as_str()), (Check::Contradicted, 7, "194 more of this kind"));
    }
}
