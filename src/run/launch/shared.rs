//! A launch that cells share (rule R2): one process answers the queries of all of them, one cell after the other, and each cell has its own record.

use bench_backend_api::{
    Captured, Checks, Failure, FailureKind, JOB_FILE, Parsed, PhaseSpan, Query, Source, StagedFile, contradiction, mixed,
};

use super::{Member, Request, status};
use crate::results::launches::{Record, Shared};

/// What one of the cells has of the launch.
pub(super) struct Part {
    parsed: Parsed,
    checks: Option<Checks>,
    pub(super) failure: Option<Failure>,
    shared: Shared,
}

fn members<'a>(request: &Request<'a>) -> impl Iterator<Item = Member<'a>> {
    let first = Member { cell: request.launch.cell, expected: request.expected };
    std::iter::once(first).chain(request.others.iter().copied())
}

/// Tells the job of a launch how long the answer to each query is.
pub(super) fn ask(files: &mut [StagedFile], request: &Request<'_>) -> Result<(), Failure> {
    let lengths: Vec<u32> =
        members(request).flat_map(|m| std::iter::repeat_n(m.expected.gen_tokens, m.expected.queries as usize)).collect();
    let job = files.iter_mut().find(|file| file.name == JOB_FILE).and_then(|file| match &mut file.source {
        Source::Bytes(bytes) => Some(bytes),
        _ => None,
    });
    let told = job.and_then(|bytes| mixed(bytes, &lengths).map(|new| *bytes = new));
    told.ok_or_else(|| Failure::new(FailureKind::Usage, "its launch has no job that could tell the length of each query"))
}

/// Queries in another order than asked: no stretch of time is one cell's.
pub(super) fn disordered(parsed: &Parsed) -> Option<Failure> {
    let order = parsed.queries.is_sorted_by_key(|q| q.query);
    (!order).then(|| {
        Failure::new(
            FailureKind::Runtime,
            "the queries of cells that share a launch were not answered in the order in which they were asked",
        )
    })
}

/// What each cell has of a launch that took this time; of one that failed as a whole each has the failure, and the first one the time.
pub(super) fn parts(
    request: &Request<'_>,
    parsed: &Parsed,
    captured: Option<&Captured>,
    failure: Option<&Failure>,
    (begin_ns, end_ns): (u64, u64),
) -> Vec<Part> {
    let (process, cells) = (request.launch.cell.id(), request.others.len() as u32 + 1);
    let (mut first, mut from) = (0, begin_ns);
    let part = |(place, member): (u32, Member<'_>)| {
        let (next, last) = (first + member.expected.queries, place + 1 == cells);
        let after = parsed.queries.iter().find(|q| q.query >= next).filter(|_| !last && failure.is_none());
        let to = after.map_or(end_ns, |q| q.start_ns);
        // What was not asked for is told where the last query was.
        let own = parsed.queries.iter().filter(|q| q.query >= first && (last || q.query < next));
        let queries = own.map(|q| Query { query: q.query - first, ..q.clone() }).collect();
        // The load is the process's: the first cell has it. A whole process's profile is nobody's.
        let spans = parsed.phases.iter().filter_map(|span| match span.query {
            None => (place == 0).then(|| span.clone()),
            Some(query) => (query >= first && (last || query < next)).then(|| PhaseSpan { query: Some(query - first), ..span.clone() }),
        });
        let part = Parsed {
            queries,
            load_ns: parsed.load_ns.filter(|_| place == 0),
            phases: spans.collect(),
            parts: Vec::new(),
            dram: Vec::new(),
            npu: None,
            ..parsed.clone()
        };
        let checks =
            captured.filter(|_| failure.is_none()).map(|captured| request.backend.verify(member.cell, member.expected, &part, captured));
        let wrong = || Some(Failure::new(FailureKind::Verify, contradiction(checks.as_ref()?)?));
        let failure = failure.cloned().or_else(wrong);
        let shared = Shared { process: process.clone(), place, cells, window_ns: (from, to) };
        (first, from) = (next, to);
        Part { parsed: part, checks, failure, shared }
    };
    (0..).zip(members(request)).map(part).collect()
}

/// The record of each cell: what the process is to all of them, and its part.
pub(super) fn records(request: &Request<'_>, whole: &Record, parts: Vec<Part>) -> Vec<Record> {
    let record = |(member, part): (Member<'_>, Part)| {
        let Part { parsed, checks, failure, shared } = part;
        Record { cell: member.cell.id(), status: status(failure.as_ref()), failure, checks, parsed, shared: Some(shared), ..whole.clone() }
    };
    members(request).zip(parts).map(record).collect()
}
