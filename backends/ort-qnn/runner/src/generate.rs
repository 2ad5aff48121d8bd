//! One query: prefill in chunks, then one decode step a token.

use bench_runner_protocol::{Event, EventWriter, Failure, Finish, Query, Reported, monotonic_ns};

use crate::{
    engine::{Cache, Engine},
    layout::chunks,
};

/// A model with the two KV caches of a query.
///
/// Each graph has a cache of its own, because the room for the past differs: what a prefill chunk gives goes into both.
pub struct Generator {
    engine: Engine,
    prefill_cache: Cache,
    decode_cache: Cache,
    context: usize,
    pad: u32,
}

impl Generator {
    /// Room for the KV of `context` tokens.
    pub fn new(engine: Engine, context: u32, pad: Option<u32>) -> Result<Self, Failure> {
        let (prefill_cache, decode_cache) = (engine.prefill.cache()?, engine.decode.cache()?);
        Ok(Self { engine, prefill_cache, decode_cache, context: context as usize, pad: pad.unwrap_or(0) })
    }

    /// Answers a query, greedily, whatever the model says about its end.
    ///
    /// The clock starts at the submission of the ids, behind the reset of the cache. A token's time is when its id is known; its
    /// KV is copied after that, so that the copy belongs to the step that needs it.
    pub fn answer(&mut self, query: &Query, events: &mut EventWriter) -> Result<(), Failure> {
        let n = query.gen_tokens as usize;
        self.prefill_cache.clear()?;
        self.decode_cache.clear()?;
        events.reserve(n + 1);
        let mut times = RunTimes::default();
        events.now(&Event::Prompt { t_ns: monotonic_ns(), query: query.query, tokens: query.ids.len() as u32 })?;
        let result = self.tokens(query, n, &mut times, events);
        let finish = match &result {
            Ok(finish) => *finish,
            Err(_) => Finish::Error,
        };
        events.now(&Event::QueryEnd {
            query: query.query,
            t_ns: monotonic_ns(),
            prompt_tokens: None,
            generated_tokens: None,
            finish,
            reported: times.reported(),
        })?;
        match result? {
            Finish::Length => Ok(()),
            _ => Err(Failure::usage(format!(
                "query {}: {} prompt tokens and {n} new ones do not fit a context of {} with chunks of {}",
                query.query,
                query.ids.len(),
                self.context,
                self.engine.prefill.ar
            ))),
        }
    }

    fn tokens(&mut self, query: &Query, n: usize, times: &mut RunTimes, events: &mut EventWriter) -> Result<Finish, Failure> {
        let Self { engine: Engine { prefill, decode, .. }, prefill_cache, decode_cache, pad, .. } = self;
        let prompt = query.ids.len();
        // The last token is never fed, so its place is not needed.
        let (Ok(parts), true) = (chunks(prompt, prefill.ar, prefill.capacity), prompt + n - 1 <= self.context) else {
            return Ok(Finish::Context);
        };
        let mut emit =
            |i: usize, id: u32| events.defer(Event::Token { query: query.query, i: i as u32, id: Some(id), t_ns: monotonic_ns() });

        let mut token = 0;
        for part in parts {
            let (start, len, last) = (part.start, part.len(), part.end == prompt);
            prefill.feed(&query.ids[part], start, *pad)?;
            let output = prefill.run(prefill_cache)?;
            times.prefill(output.run_ns);
            if last {
                token = output.argmax(len - 1)?;
                emit(0, token);
            } else {
                output.append_to(prefill_cache, start, len)?;
            }
            if n > 1 {
                output.append_to(decode_cache, start, len)?;
            }
        }
        for i in 1..n {
            let past = prompt + i - 1;
            decode.feed(&[token], past, *pad)?;
            let output = decode.run(decode_cache)?;
            times.decode(output.run_ns);
            token = output.argmax(0)?;
            emit(i, token);
            if i + 1 < n {
                output.append_to(decode_cache, past, 1)?;
            }
        }
        Ok(Finish::Length)
    }
}

/// Time inside ONNX Runtime's Run, ns and calls.
#[derive(Debug, Default)]
struct RunTimes {
    prefill: (u64, u32),
    decode: (u64, u32),
}

impl RunTimes {
    fn prefill(&mut self, ns: u64) {
        self.prefill = (self.prefill.0 + ns, self.prefill.1 + 1);
    }

    fn decode(&mut self, ns: u64) {
        self.decode = (self.decode.0 + ns, self.decode.1 + 1);
    }

    fn reported(&self) -> Reported {
        let mut all = Reported::new();
        for (name, (ns, calls)) in [("prefill", self.prefill), ("decode", self.decode)] {
            if calls > 0 {
                all.insert(format!("{name}_run_us"), ns as f64 / 1e3);
                all.insert(format!("{name}_runs"), f64::from(calls));
            }
        }
        all
    }
}
