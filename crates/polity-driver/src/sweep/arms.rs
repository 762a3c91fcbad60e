//! The arms of a sweep: the scenario of each, prepared and checked.

use crate::run::{Engine, Extent, Planned, Prepared, SetKey, Survey, within};
use polity_kernel::scenario::{Arm, Design, Reading, Scenario};
use polity_kernel::tree::{Node, Origin, TreeError, Value};
use polity_store::DriveError;

/// The arms of a design, ready to run, with what is known about them.
pub(super) struct Arms {
    pub(super) design: Design,
    pub(super) base: Prepared,
    pub(super) prepared: Vec<Prepared>,
    pub(super) surveys: Vec<Survey>,
}

/// The scenario's number for `--seed` and the like.
fn whole(n: u64) -> Node {
    Node::built(Value::Int(n as i64))
}

impl Arms {
    /// Expands the design of a scenario and checks every arm.
    pub(super) fn read(engine: &Engine<'_>, scenario: &Prepared, extent: Extent) -> Result<Arms, DriveError> {
        let Some(Planned { node, reach }) = &scenario.design else {
            return Err(DriveError::Scenario(TreeError {
                message: "there is no `design:`; a sweep needs one to say what it runs".into(),
                path: String::new(),
                origin: scenario.tree.origin.clone(),
                help: Some("for instance `design: {factors: {world.fraction: [0.5, 0.7]}, seeds: 30}`".into()),
            }));
        };
        let mut base = Prepared { design: None, ..scenario.clone() };
        base.record_little()?;
        let design = Design::read(node, &base.tree)?;
        let read_at = node.get("read").map_or(&node.origin, |node| &node.origin);
        let (mut prepared, mut surveys) = (Vec::new(), Vec::new());
        for arm in &design.arms {
            let ready = base.with(arm.applied(&base.tree)?, &within(reach)).map_err(|e| blame(arm, e))?;
            refuse_unread(&design, arm, Scenario::read(&ready.tree)?.rounds, read_at)?;
            surveys.push(engine.survey(&ready, extent).map_err(|e| blame(arm, e))?);
            base.share(&ready);
            prepared.push(ready);
        }
        Ok(Arms { design, base, prepared, surveys })
    }

    /// Agents of each.
    pub(super) fn agents(&self) -> Vec<u32> {
        self.surveys.iter().map(|survey| survey.agents).collect()
    }

    /// Bytes of memory of the largest run.
    pub(super) fn memory(&self) -> u64 {
        self.surveys.iter().map(|survey| survey.memory).max().unwrap_or(0)
    }
}

/// Refuses a design that reads metrics in rounds that an arm does not have.
fn refuse_unread(design: &Design, arm: &Arm, rounds: u32, at: &Origin) -> Result<(), DriveError> {
    let message = match design.read {
        Reading::Round(round) if round >= rounds => {
            format!("round {round} is never reached: a run has {rounds} rounds, numbered from 0")
        }
        Reading::MeanOfLast(k) if k > rounds => format!("a run has {rounds} rounds, which is fewer than {k}"),
        _ => return Ok(()),
    };
    let error = TreeError { message, path: "design.read".into(), origin: at.clone(), help: None };
    Err(DriveError::Scenario(arm.blame(error)))
}

fn blame(arm: &Arm, error: DriveError) -> DriveError {
    match error {
        DriveError::Scenario(error) => DriveError::Scenario(arm.blame(error)),
        DriveError::Model(error) => DriveError::Model(format!("in the arm `{}`: {error}", arm.name)),
        other => other,
    }
}

/// A seed as an edit of an arm's scenario.
pub(super) fn seed(n: u64) -> SetKey {
    ("seed".into(), whole(n))
}
