//! `--metric`: which metrics a judgement is about, in the same words for every verb.

use crate::{
    results::schema::{METRICS, Metric},
    scenario::{Source, Subject},
};

/// What one word names: a column of `cells.csv` (`ttft_ms`), the word for it in `[[require]]` (`ttft`), or `all`.
///
/// # Errors
/// The nearest word.
pub fn metrics(word: &str) -> Result<&'static [Metric], String> {
    if word == "all" {
        return Ok(METRICS);
    }
    let column = Subject::parse(word).and_then(|subject| if let Source::Metric(column) = subject.source { Some(column) } else { None });
    let name = column.unwrap_or(word);
    if let Some(place) = METRICS.iter().position(|metric| metric.name == name) {
        return Ok(&METRICS[place..=place]);
    }
    let likeness = |metric: &&Metric| strsim::jaro_winkler(metric.name, word);
    let near = METRICS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).map_or("ttft_ms", |metric| metric.name);
    Err(format!("no such metric, did you mean {near}? `all` takes every column of a metric in cells.csv"))
}

/// The named ones, each once, in the order of the tables.
pub fn named(words: &[&'static [Metric]]) -> Vec<&'static Metric> {
    METRICS.iter().filter(|metric| words.iter().copied().flatten().any(|named| named.name == metric.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_words_of_requirements_and_all() {
        let names = |words: &[&str]| -> Vec<&str> {
            named(&words.iter().map(|word| metrics(word).expect("known")).collect::<Vec<_>>()).iter().map(|metric| metric.name).collect()
        };
        assert_eq!(names(&["memory", "ttft", "ttft_ms"]), ["ttft_ms", "peak_mem_mb"]);
        assert_eq!(names(&["decode", "all"]).len(), METRICS.len());
        assert!(metrics("decod_tok").expect_err("unknown").contains("did you mean decode_tok_s?"));
        // A requirement can be about what is no metric.
        for word in ["stability", "power", ""] {
            assert!(metrics(word).is_err(), "{word}");
        }
    }
}
