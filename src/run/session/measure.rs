//! The measuring launches of a run in order, and what comes after them. An A/B run has two sides: each launch of a cell has its partner
//! on the other side right before or after it.

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use bench_backend_api::Pass;

use super::{RunError, block::Begin, history::count, side::Side};
use crate::{
    device::Device,
    results::start::Start,
    run::{
        events::{Event, Status},
        launch::step_times,
    },
    scenario::{Scheduled, turns},
};

/// Measures, profiles and soaks what the sides have not done yet.
pub(super) async fn measure<D: Device>(sides: &mut [Side<'_, D>]) -> Result<(), RunError> {
    let Some((plan, cancel)) = sides.first().map(|side| (side.session.setup.plan, side.session.setup.cancel.clone())) else {
        return Ok(());
    };
    if *cancel.borrow() {
        // While something was being made: what is not ready was not tried.
        for side in sides.iter_mut() {
            by_user(side);
            side.session.interrupted = true;
        }
        return Ok(());
    }
    for place in sides[0].measured.clone() {
        // Of an earlier segment.
        say_if_done(sides, place);
    }
    let started = Instant::now();
    let budget = plan.measure.budget_ms.map(Duration::from_millis);
    let spent = || budget.is_some_and(|b| started.elapsed() >= b);
    let mut block = None;
    let mut begin = Begin::Go(Start::default());
    let schedule = plan.schedule();
    let both = sides.len();
    // The cells that do not share their launches after all.
    let mut alone = BTreeSet::new();
    for (scheduled, turn) in schedule.iter().flat_map(|s| turns(plan.seed, s, both).into_iter().map(move |turn| (s, turn))) {
        let number = scheduled.launch;
        let due = due(sides, turn, scheduled, plan.measure.repetitions_max);
        if due.is_empty() {
            continue;
        }
        if block != Some(scheduled.block) {
            if block.is_none() {
                for side in sides.iter_mut() {
                    side.session.begin_power().await?;
                }
            }
            if spent() {
                stop_all(sides, "budget");
                break;
            }
            block = Some(scheduled.block);
            let cells = schedule.iter().filter(|s| s.block == scheduled.block).flat_map(|s| &s.cells);
            let launches = cells.filter(|place| open(sides, **place)).count();
            for side in sides.iter() {
                side.session.recorder.say(&Event::BlockBegin { block: scheduled.block, launches });
            }
            begin = sides[0].session.settle(scheduled.block).await?;
        }
        let shared = matches!(begin, Begin::Go(_)) && together(sides, &due, &alone);
        let mut broke = None;
        let mut waiting = if shared { VecDeque::from([due]) } else { due.into_iter().map(|place| vec![place]).collect() };
        while let Some(places) = waiting.pop_front() {
            let side = &sides[turn];
            let launched = match &begin {
                Begin::Go(start) => {
                    let cells: Vec<_> = places.iter().map(|place| (*place, &side.ready[place])).collect();
                    let start = Start { broke: broke.clone(), ..start.clone() };
                    side.session.launch(&cells, (Pass::Measure, number, scheduled.block), &start, None).await?
                }
                Begin::Skip(start) => Some(side.session.skip(places[0], number, scheduled.block, start)?),
                Begin::Stop => None,
            };
            let Some(launched) = launched else {
                let first = &mut sides[0].session;
                first.interrupted = first.lost.is_none() && first.aborted.is_none();
                if first.interrupted {
                    sides.iter().for_each(by_user);
                }
                end_all(sides);
                return Ok(());
            };
            if launched.lost {
                sides[turn].session.gone(&launched.record);
                end_all(sides);
                return Ok(());
            }
            if let Some(failure) = launched.broke() {
                broke = Some(failure.message.clone());
                alone.extend(places.iter().copied());
                waiting.extend(places.into_iter().map(|place| vec![place]));
                continue;
            }
            let side = &mut sides[turn];
            for (place, record) in places.iter().zip(launched.all()) {
                side.session.took.insert(*place, step_times(record));
                if record.status == Status::Ok {
                    side.session.idled.insert(*place);
                }
                if let Some(cell) = side.history.progress.get_mut(place) {
                    count(cell, record, side.session.setup.plan);
                }
            }
            side.session.recorder.check()?;
            for place in places {
                say_if_done(sides, place);
            }
        }
    }
    for side in sides.iter_mut() {
        let Side { session, ready, history, .. } = side;
        session.profile(ready, &history.progress, &history.done, spent).await?;
        if session.interrupted || session.lost.is_some() {
            end_all(sides);
            return Ok(());
        }
    }
    for side in sides.iter_mut() {
        let Side { session, ready, history, left, .. } = side;
        session.soak(ready, &history.progress, &history.done, std::mem::take(left)).await?;
        if session.interrupted || session.lost.is_some() {
            end_all(sides);
            return Ok(());
        }
    }
    Ok(())
}

/// The cells of a scheduled launch that need it on a side.
fn due<D: Device>(sides: &[Side<'_, D>], turn: usize, scheduled: &Scheduled, most: u32) -> Vec<usize> {
    let history = &sides[turn].history;
    let made = |place: &usize| {
        let launches = history.progress.get(place).map_or(0, |cell| cell.launches);
        history.done.contains(&(*place, Pass::Measure, scheduled.launch)) || launches >= most
    };
    scheduled.cells.iter().copied().filter(|place| open(sides, *place) && !made(place)).collect()
}

/// Whether cells are measured in one launch: if they can share it on every side.
fn together<D: Device>(sides: &[Side<'_, D>], due: &[usize], alone: &BTreeSet<usize>) -> bool {
    let mixes = |side: &Side<'_, D>| side.session.mixes(&due.iter().map(|place| (*place, &side.ready[place])).collect::<Vec<_>>());
    due.len() > 1 && !due.iter().any(|place| alone.contains(place)) && sides.iter().all(mixes)
}

/// Whether more launches of a cell may come: one side has not enough yet, and none has failed.
fn open<D: Device>(sides: &[Side<'_, D>], place: usize) -> bool {
    let stops: Option<Vec<_>> = sides.iter().map(|side| side.history.progress.get(&place).map(|cell| cell.stop)).collect();
    stops.is_some_and(|stops| !stops.contains(&Some("failed")) && stops.contains(&None))
}

/// Says that a cell is done as soon as it is done on every side; a cell whose partner has failed is.
fn say_if_done<D: Device>(sides: &mut [Side<'_, D>], place: usize) {
    if !open(sides, place) {
        stop(sides, place, "partner");
    }
}

fn stop<D: Device>(sides: &mut [Side<'_, D>], place: usize, why: &'static str) {
    for side in sides {
        let Some(cell) = side.history.progress.get_mut(&place) else { continue };
        let (why, id) = (*cell.stop.get_or_insert(why), side.session.setup.plan.cells[place].id.clone());
        side.session.recorder.say(&Event::CellDone { cell: id, stop: why.to_owned() });
    }
}

fn stop_all<D: Device>(sides: &mut [Side<'_, D>], why: &'static str) {
    for place in sides[0].measured.clone() {
        if open(sides, place) {
            stop(sides, place, why);
        }
    }
}

fn by_user<D: Device>(side: &Side<'_, D>) {
    side.session.recorder.say(&Event::Interrupted { by: "the user".to_owned() });
}

/// What ended the run on one side ends it on the other.
fn end_all<D: Device>(sides: &mut [Side<'_, D>]) {
    let lost = sides.iter().find_map(|side| side.session.lost.clone());
    let aborted = sides.iter().find_map(|side| side.session.aborted.clone());
    let interrupted = sides.iter().any(|side| side.session.interrupted);
    for Side { session, .. } in sides.iter_mut() {
        (session.lost, session.aborted, session.interrupted) = (lost.clone(), aborted.clone(), interrupted);
    }
    stop_all(sides, "interrupted");
}
