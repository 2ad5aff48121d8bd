//! The idle baseline with the model in memory (rule R15): a launch whose job asks its runner to do nothing between its load and its first query.
//!
//! It is the first measured launch of a cell in a segment, or its soak where the segment measures nothing: no launch is added, and what is measured
//! (load, queries, growth of memory, a soak's time) lies before or after the idle time.

use std::time::Duration;

use bench_backend_api::{JOB_FILE, Pass, Source, StagedFile, idled};

use super::power::LEAD_S;
use crate::scenario::Power;

/// How long a launch idles before its first query; zero where it need not. `known` says that the cell has had its idle time in this segment.
pub fn asked(power: Option<&Power>, rate_hz: f64, pass: Pass, known: bool) -> Duration {
    let wanted = power.map_or(0, |p| p.baseline_ms);
    let counted = matches!(pass, Pass::Measure | Pass::Soak);
    if wanted == 0 || rate_hz <= 0.0 || known || !counted {
        return Duration::ZERO;
    }
    Duration::from_millis(wanted) + Duration::from_secs(LEAD_S)
}

/// Whether a launch has a job that can be told more than its adapter did. The vendors' own programs have none.
pub fn has_job(files: &[StagedFile]) -> bool {
    files.iter().any(|f| f.name == JOB_FILE && matches!(f.source, Source::Bytes(_)))
}

/// Puts the idle time into the job of a launch, if it has one.
pub fn ask(files: &mut [StagedFile], idle: Duration) {
    for file in files.iter_mut().filter(|f| f.name == JOB_FILE) {
        if let Source::Bytes(bytes) = &mut file.source
            && let Some(new) = idled(bytes, u64::try_from(idle.as_millis()).unwrap_or(u64::MAX))
        {
            *bytes = new;
        }
    }
}

/// Whether a program that reads its job strictly refused it for this field: one that was built before there was an idle time.
pub fn refused(message: &str) -> bool {
    message.contains("unknown field") && message.contains("idle_ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_launch_of_a_cell_idles() {
        let power = Power { baseline_ms: 60_000, ..Power::default() };
        let of = |pass, known| asked(Some(&power), 10.0, pass, known);
        // A gauge still shows the load for some seconds: 5 are added and left out of the window.
        assert_eq!((of(Pass::Measure, false), of(Pass::Soak, false)), (Duration::from_secs(65), Duration::from_secs(65)));
        for none in [
            of(Pass::Measure, true),
            of(Pass::Soak, true),
            of(Pass::Profile, false),
            asked(None, 10.0, Pass::Measure, false),
            asked(Some(&power), 0.0, Pass::Measure, false),
            asked(Some(&Power::default()), 10.0, Pass::Measure, false),
        ] {
            assert_eq!(none, Duration::ZERO);
        }
    }

    #[test]
    fn only_a_job_is_told() {
        let file = |name: &str, bytes: &[u8]| StagedFile { name: name.to_owned(), source: Source::Bytes(bytes.to_vec()) };
        let job =
            br#"{"v":1,"model":{"context":8,"chunk":8,"vocab":8,"files":{}},"queries":[{"query":0,"ids":[1],"gen_tokens":1}],"soak_ms":9}"#;
        let mut files = [file("prompt.txt", b"x"), file(JOB_FILE, job)];
        assert!(has_job(&files) && !has_job(&files[..1]));
        ask(&mut files, Duration::from_secs(65));
        let Source::Bytes(bytes) = &files[1].source else { panic!() };
        let text = String::from_utf8_lossy(bytes);
        assert!(text.contains("\"idle_ms\": 65000") && text.contains("\"soak_ms\": 9"), "{text}");
        assert!(matches!(&files[0].source, Source::Bytes(b) if b == b"x"));
    }

    #[test]
    fn an_older_runner_is_known_by_its_words() {
        // serde_json's words, and those of mnn_runner.py.
        assert!(refused("job.json: unknown field `idle_ms`, expected one of `v`, `model` at line 9 column 11"));
        assert!(refused("job: unknown field idle_ms"));
        assert!(!refused("unknown field `soak_ms`"));
    }
}
