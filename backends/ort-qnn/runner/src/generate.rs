//! One query: prefill in chunks, then one decode step a token.

use bench_runner_protocol::{Event, EventWriter, Failure, Finish, Job, Laps, Phase, Profile, Query, monotonic_ns};

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
    /// Every stretch of a query is told, not the sums alone.
    spans: bool,
}

impl Generator {
    /// Room for the KV of the job's context.
    pub fn new(engine: Engine, job: &Job) -> Result<Self, Failure> {
        let (prefill_cache, decode_cache) = (engine.prefill.cache()?, engine.decode.cache()?);
        let (context, pad) = (job.model.context as usize, job.model.pad.unwrap_or(0));
        let spans = job.profile == Profile::Layers && job.soak_ms.is_none();
        Ok(Self { engine, prefill_cache, decode_cache, context, pad, spans })
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
        // Three stretches for each run of a graph.
        let runs = query.ids.len().div_ceil(self.engine.prefill.ar) + n;
        let begin = monotonic_ns();
        let mut laps = Laps::new(query.query, begin, self.spans.then_some(3 * runs));
        events.now(&Event::Prompt { t_ns: begin, query: query.query, tokens: query.ids.len() as u32 })?;
        // Writing that event is no part of the engine's work.
        laps.skip(monotonic_ns());
        let result = self.tokens(query, n, &mut laps, events);
        let finish = match &result {
            Ok(finish) => *finish,
            Err(_) => Finish::Error,
        };
        let t_ns = monotonic_ns();
        laps.defer(events);
        events.now(&Event::QueryEnd {
            query: query.query,
            t_ns,
            prompt_tokens: None,
            generated_tokens: None,
            finish,
            reported: laps.sums(),
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

    fn tokens(&mut self, query: &Query, n: usize, laps: &mut Laps, events: &mut EventWriter) -> Result<Finish, Failure> {
        let Self { engine: Engine { prefill, decode, .. }, prefill_cache, decode_cache, pad, .. } = self;
        let prompt = query.ids.len();
        // The last token is never fed, so its place is not needed.
        let (Ok(parts), true) = (chunks(prompt, prefill.ar, prefill.capacity), prompt + n - 1 <= self.context) else {
            return Ok(Finish::Context);
        };
        // What Run gives is in the host's memory: copies from the device are within it. Reading the logits and choosing from them is one pass.
        let ran = |laps: &mut Laps, (begin, end): (u64, u64)| {
            laps.until(Phase::H2d, begin);
            laps.until(Phase::Execute, end);
        };
        let mut emit = |laps: &mut Laps, i: usize, id: u32| {
            let t_ns = monotonic_ns();
            laps.until(Phase::Sample, t_ns);
            laps.token();
            events.defer(Event::Token { query: query.query, i: i as u32, id: Some(id), t_ns });
        };

        let mut token = 0;
        for part in parts {
            let (start, len, last) = (part.start, part.len(), part.end == prompt);
            prefill.feed(&query.ids[part], start, *pad)?;
            let output = prefill.run(prefill_cache)?;
            ran(laps, output.ran_ns);
            if last {
                token = output.argmax(len - 1)?;
                emit(laps, 0, token);
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
            ran(laps, output.ran_ns);
            token = output.argmax(0)?;
            emit(laps, i, token);
            if i + 1 < n {
                output.append_to(decode_cache, past, 1)?;
            }
        }
        Ok(Finish::Length)
    }
}
