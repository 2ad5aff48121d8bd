//! Genie's own profile: JSON of all events since the dialog was made.

use bench_runner_protocol::Reported;
use serde_json::Value;

/// What the profile says about one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryProfile {
    /// `num-prompt-tokens`.
    pub prompt_tokens: Option<u32>,
    /// `num-generated-tokens`.
    pub generated_tokens: Option<u32>,
    /// Times and rates.
    pub figures: Reported,
}

/// The runtime's names and ours. Durations of events are microseconds, like everything whose unit says `us`; rates are truncated
/// by Genie and kept as it gives them.
const FIGURES: [(&str, &str); 6] = [
    ("time-to-first-token", "ttft_us"),
    ("token-generation-time", "decode_us"),
    ("prompt-processing-rate", "prefill_tok_s"),
    ("token-generation-rate", "decode_tok_s"),
    ("duration", "query_us"),
    // Of a speculative dialog: tokens an iteration.
    ("token-acceptance-rate", "tokens_per_step"),
];

/// The queries in their order; anything that is not as expected is left out. A query that failed may have no event.
pub fn queries(json: &[u8]) -> Vec<QueryProfile> {
    events(json, is_query).iter().map(query).collect()
}

/// `init-time` of the dialog's creation, microseconds.
pub fn init_us(json: &[u8]) -> Option<f64> {
    events(json, |kind| kind == "GenieDialog_create").first().and_then(|event| number(event, "init-time"))
}

fn is_query(kind: &str) -> bool {
    matches!(kind, "GenieDialog_query" | "GenieDialog_tokenQuery")
}

fn events(json: &[u8], wanted: fn(&str) -> bool) -> Vec<Value> {
    let Ok(mut root) = serde_json::from_slice::<Value>(json) else { return Vec::new() };
    let Some(components) = root.get_mut("components").and_then(Value::as_array_mut) else { return Vec::new() };
    components
        .iter_mut()
        .filter_map(|component| component.get_mut("events")?.as_array_mut())
        .flat_map(std::mem::take)
        .filter(|event| event.get("type").and_then(Value::as_str).is_some_and(wanted))
        .collect()
}

fn query(event: &Value) -> QueryProfile {
    let count = |name| number(event, name).map(|n| n as u32);
    QueryProfile {
        prompt_tokens: count("num-prompt-tokens"),
        generated_tokens: count("num-generated-tokens"),
        figures: FIGURES.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), number(event, theirs)?))).collect(),
    }
}

/// A number, or the number inside `{"value": N, "unit": ...}`.
fn number(event: &Value, name: &str) -> Option<f64> {
    let field = event.get(name)?;
    field.as_f64().or_else(|| field.get("value")?.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"header":{"artifact_type":"GENIE_PROFILE"},"components":[{"name":"dialog0","type":"dialog","events":[
        {"type":"GenieDialog_create","duration":63722,"start":1,"stop":2,"init-time":{"value":62509,"unit":"us"}},
        {"type":"GenieDialog_query","duration":3356966,"num-prompt-tokens":{"value":78,"unit":""},"prompt-processing-rate":{"value":37.5,"unit":"toks/sec"},
         "time-to-first-token":{"value":2101449,"unit":"us"},"num-generated-tokens":{"value":8,"unit":""},"token-generation-rate":{"value":5.5,"unit":"toks/sec"},
         "token-generation-time":{"value":1251407,"unit":"us"}},
        {"type":"GenieDialog_reset","duration":3},
        {"type":"GenieDialog_tokenQuery","duration":5}]}]}"#;

    #[test]
    fn reads_the_queries_in_their_order() {
        assert_eq!(init_us(JSON.as_bytes()), Some(62509.0));
        let all = queries(JSON.as_bytes());
        assert_eq!((all.len(), all[0].prompt_tokens, all[0].generated_tokens), (2, Some(78), Some(8)));
        assert_eq!((all[0].figures["ttft_us"], all[0].figures["decode_us"], all[0].figures.len()), (2_101_449.0, 1_251_407.0, 5));
        assert_eq!((all[1].prompt_tokens, all[1].figures.len()), (None, 1));
    }

    #[test]
    fn truncated_anywhere_is_empty_and_no_panic() {
        for end in 0..JSON.len() {
            assert!(queries(&JSON.as_bytes()[..end]).is_empty() && init_us(&JSON.as_bytes()[..end]).is_none());
        }
        assert!(queries(br#"{"components":[1,{"events":[{"type":3},null]}]}"#).is_empty());
    }
}
