//! What Genie's profile says over time: the calls of its API, and with `trace` enabled its functions.
//!
//! `start` and `stop` of a call are `CLOCK_MONOTONIC` in us: in runs on a PC (Genie API 1.21) a query's stood within 10 us of the runner's own stamps.
//! Functions are told from a moment that is not written; it lies so that all of them fall into the calls.

use bench_backend_api::timeline::{Clock, Slice, Timeline, chrome};
use serde_json::{Deserializer, Map, Value};

/// The calls, then the functions; neither for a file that is no profile.
pub fn timelines(file: &str, bytes: &[u8]) -> Vec<Timeline> {
    Deserializer::from_slice(bytes).into_iter::<Value>().map_while(Result::ok).flat_map(|profile| of(file, &profile)).collect()
}

fn of(file: &str, profile: &Value) -> Vec<Timeline> {
    let components = profile["components"].as_array().into_iter().flatten();
    let slices = components.flat_map(|component| component["events"].as_array().into_iter().flatten()).filter_map(call).collect();
    let calls = Timeline { title: format!("{file}: calls of the API"), clock: Clock::Monotonic, slices, skipped: 0, cut: false };
    let Some((from, to)) = calls.extent() else { return Vec::new() };
    let functions = profile.get("traceEvents").and_then(|events| chrome(events.to_string().as_bytes()));
    let functions = functions.map(|trace| Timeline { title: format!("{file}: functions"), clock: Clock::Within(from, to), ..trace });
    [calls].into_iter().chain(functions).collect()
}

fn call(event: &Value) -> Option<Slice> {
    let (start_us, stop) = (event["start"].as_f64()?, event["stop"].as_f64()?);
    let figures = event.as_object()?.iter().filter(|(key, _)| !["type", "start", "stop", "duration"].contains(&key.as_str()));
    Some(Slice {
        track: "calls".to_owned(),
        name: event["type"].as_str().unwrap_or("call").to_owned(),
        start_us,
        dur_us: (stop >= start_us).then_some(stop - start_us)?,
        args: figures.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_fall_into_the_calls() {
        let read = timelines("genie_profile.json", include_bytes!("../fixtures/profile-with-trace.json"));
        let [calls, functions] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((calls.clock, calls.extent()), (Clock::Monotonic, Some((864_985_936.0, 866_328_979.0))));
        assert_eq!(functions.clock, Clock::Within(864_985_936.0, 866_328_979.0));
        // 1,341,568 us of functions in 1,343,043 us of calls: their place is known within 1.5 ms.
        assert_eq!(functions.extent(), Some((0.0, 1_341_568.0)));
        assert!(functions.slices.iter().any(|s| s.name == "QnnLibraryLoader::loadBackend" && (s.dur_us - 44_054.0).abs() < 0.5));
    }

    #[test]
    fn a_profile_without_a_trace_has_calls_alone() {
        let read = timelines("p", include_bytes!("../fixtures/profile-3-queries.json"));
        assert_eq!((read.len(), read[0].slices[0].name.as_str()), (1, "GenieDialog_create"));
        assert!(timelines("p", b"{\"devices\":[]}").is_empty() && timelines("p", b"\xff").is_empty());
    }
}
