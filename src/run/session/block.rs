//! Before a block: waiting for the device, and what follows when it does not become ready.

use std::fs;

use bench_backend_api::{Failure, FailureKind, Parsed, Pass};

use super::{RunError, Session};
use crate::{
    device::Device,
    results::{
        folder::{FolderError, launch_dir},
        launches::Record,
        schema::FORMAT_VERSION,
        start::{Settled, Start},
    },
    run::{
        events::{Event, Status},
        launch::Launched,
        settle,
    },
    scenario::Policy,
};

/// How a block goes on.
pub(super) enum Begin {
    /// Its launches are made.
    Go(Start),
    /// They are rows with a reason.
    Skip(Start),
    /// The run ends: the user, a lost device, or the policy.
    Stop,
}

impl<D: Device> Session<'_, D> {
    /// The start of a launch before which nothing is waited for.
    pub(super) fn plain(&self) -> Start {
        Start { pins: self.pins.clone(), ..Start::default() }
    }

    /// Waits until the device is in the state that the scenario asks for.
    pub(super) async fn settle(&mut self, block: u32) -> Result<Begin, RunError> {
        let Some(wanted) = &self.setup.plan.settle else { return Ok(Begin::Go(self.plain())) };
        let recorder = self.recorder;
        let told = |lacks: Vec<String>| recorder.say(&Event::SettleBegin { block, lacks });
        let waited = match settle::wait(self.setup.device, wanted, &self.setup.cancel, told).await {
            Ok(Some(waited)) => waited,
            Ok(None) => return Ok(Begin::Stop),
            Err(e) if e.is_lost() => {
                let words = e.to_string();
                self.recorder.say(&Event::Interrupted { by: format!("the loss of the device ({words})") });
                self.lost = Some(words);
                return Ok(Begin::Stop);
            }
            Err(e) => return Err(RunError::Device(e)),
        };
        self.recorder.say(&Event::Settled {
            block,
            seconds: waited.seconds,
            waited_for: waited.missed,
            lacks: waited.lacks.clone(),
            why: waited.why.clone(),
        });
        let lacks: Vec<String> = waited.lacks.into_iter().chain(waited.why.clone()).collect();
        let settle = match (&waited.why, wanted.policy) {
            (None, _) => Settled::Ready,
            (Some(_), Policy::Skip) => Settled::Skipped,
            (Some(_), Policy::Mark | Policy::Abort) => Settled::Marked,
        };
        if waited.why.is_some() && wanted.policy == Policy::Abort {
            let words = lacks.join("; ");
            self.recorder.say(&Event::Interrupted { by: format!("the device's state ({words})") });
            self.aborted = Some(words);
            return Ok(Begin::Stop);
        }
        let start = Start {
            settle,
            settle_s: Some(waited.seconds),
            lacks,
            domains: waited.state.domains,
            battery_pct: waited.state.battery_pct,
            charging: waited.state.charging,
            screen: waited.state.screen,
            contended_by: waited.state.contenders,
            pins: self.pins.clone(),
            broke: None,
        };
        Ok(if settle == Settled::Skipped { Begin::Skip(start) } else { Begin::Go(start) })
    }

    /// Records a launch that is not made because the device is not ready. A resume tries it again.
    pub(super) fn skip(&self, place: usize, number: u32, block: u32, start: &Start) -> Result<Launched, RunError> {
        let setup = self.setup;
        let (cell, pass) = (setup.plan.cells[place].id.clone(), Pass::Measure);
        self.recorder.say(&Event::LaunchBegin { cell: cell.clone(), pass, launch: number, block });
        self.recorder.check()?;
        let hint = "wait longer ([settle] timeout), ask for less, or let the launches be made and marked (policy = \"mark\")";
        let failure = Failure {
            kind: FailureKind::Thermal,
            message: format!("not made, the device was not as [settle] asks: {}", start.lacks.join("; ")),
            hint: Some(hint.to_owned()),
        };
        let record = Record {
            format_version: FORMAT_VERSION,
            cell: cell.clone(),
            pass,
            launch: number,
            block,
            segment: self.segment,
            status: Status::Skipped,
            failure: Some(failure.clone()),
            checks: None,
            parsed: Parsed::default(),
            steps: Vec::new(),
            staged: crate::results::launches::Staged::default(),
            lmkd_kills: None,
            round_trips: 0,
            start: start.clone(),
            shared: None,
            soak: None,
        };
        let dir = launch_dir(&setup.folder.path, &setup.device.facts().name, &cell, pass, number);
        fs::create_dir_all(&dir).map_err(FolderError::io(&dir))?;
        record.save(&dir)?;
        self.recorder.say(&Event::LaunchEnd {
            cell,
            pass,
            launch: number,
            block,
            segment: self.segment,
            status: Status::Skipped,
            failure: Some(failure),
            ttft_ms: None,
            decode_tok_s: None,
            composed: false,
            reported: false,
        });
        Ok(Launched { record, others: Vec::new(), lost: false })
    }
}
