//! Questions to agents of a recorded run at some moment: a fork in memory, which only reads the run's folder.

use super::engine::{Engine, Recorded, play_back};
use super::folder::Folder;
use crate::drive::Watch;
use polity_kernel::ask::{Answer, Asker, Effect, EffectId, TargetKind};
use polity_kernel::machine::Machine;
use polity_kernel::scenario::{Assembled, Scenario};
use polity_kernel::society::{Interview, Society};
use polity_models::models::prices::Prices;
use polity_store::DriveError;
use std::path::Path;
use std::time::Duration;

/// An agent's answer.
#[derive(Clone, Debug)]
pub struct Interviewed {
    /// The agent asked.
    pub agent: u32,
    /// Before which round.
    pub round: u32,
    /// The request, the reply and the cost.
    pub answer: Answer,
    /// Whether the answer comes from a simulated model.
    pub simulated: bool,
}

/// How often a waiting interview checks whether to stop.
const TICK: Duration = Duration::from_millis(100);

impl Engine<'_> {
    /// Asks agents of a society a question, in their state before round `at` (`None`: after the last complete one).
    pub fn interview(
        &self,
        dir: &Path,
        agents: &[u32],
        at: Option<u32>,
        question: &str,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Interviewed>, DriveError> {
        let folder = Folder::read(self.disk.clone(), dir)?;
        let recorded = self.recorded(&folder)?;
        let scenario = Scenario::read(&recorded.prepared.tree)?;
        let engine = self.with_models_of(&recorded.prepared, &scenario, None)?;
        engine.check_models_of(&self.assemble(&recorded.prepared)?, &scenario)?;
        let manifest = recorded.manifest.clone();
        let trace = self.trace(&manifest, &folder);
        let society = self.played_back(&folder, recorded, at, watch)?;
        let at = society.next_round();
        let prices = Prices::from(manifest.prices).with(&Prices::from(self.outside.prices.clone()));
        let effects = asked(&society, agents, at, question, scenario.seed)?;
        let said = engine.ask_outside(effects, &scenario, &prices, at);
        if let Some(mut trace) = trace {
            said.iter().flatten().for_each(|said| trace.alone(&said.answer));
            trace.end(if said.is_ok() { "interview" } else { "error" }, None);
        }
        said
    }

    /// The society of a recorded run before round `at` (`None`: after the last complete one). The folder is only read.
    pub fn society_at(&self, dir: &Path, at: Option<u32>, watch: &mut dyn Watch) -> Result<Society, DriveError> {
        let folder = Folder::read(self.disk.clone(), dir)?;
        let recorded = self.recorded(&folder)?;
        self.played_back(&folder, recorded, at, watch)
    }

    fn played_back(
        &self,
        folder: &Folder,
        recorded: Recorded,
        at: Option<u32>,
        watch: &mut dyn Watch,
    ) -> Result<Society, DriveError> {
        let Recorded { manifest, prepared, mut story, .. } = recorded;
        let dir = folder.path().display();
        let complete = story.past.rounds.len() as u32;
        let at = at.unwrap_or(complete);
        if at > complete {
            return Err(DriveError::Input(format!(
                "{dir} has {complete} complete rounds; its agents can be asked as they were \
                 before rounds 0 to {complete}"
            )));
        }
        let seed = Scenario::read(&prepared.tree)?.seed;
        let mut machine = self.assemble(&prepared)?;
        self.check_derived(folder, &manifest, &machine)?;
        if at > 0 {
            story.past.answers.retain(|id, _| id.round < at);
            play_back(&mut machine, story.past, seed, at, Some(at), false, watch)?;
        }
        match machine {
            Assembled::Society(society) => Ok(*society),
            Assembled::Evaluation(_) => {
                Err(DriveError::Input(format!("{dir} is an evaluation: it has items, and no agents to ask")))
            }
        }
    }

    fn ask_outside(
        &self,
        effects: Vec<Effect>,
        scenario: &Scenario,
        prices: &Prices,
        round: u32,
    ) -> Result<Vec<Interviewed>, DriveError> {
        let mut source = self.source(scenario, prices, None, None);
        let wanted = effects.len();
        source.start(effects);
        let mut answers: Vec<Answer> = Vec::new();
        while answers.len() < wanted && !self.stop.asked() {
            answers.extend(source.wait(TICK));
            let again = source.broken().into_iter().filter(|broken| broken.again).map(|broken| broken.effect).collect();
            source.start(again);
            if let Some(why) = source.lost() {
                return Err(DriveError::Lost(why.to_string()));
            }
        }
        answers.sort_by_key(|answer| answer.id);
        let said = |answer: Answer| {
            let provider = self.providers.for_model(&answer.request.model);
            let simulated = provider.is_ok_and(|provider| provider.simulated());
            Interviewed { agent: answer.id.actor, round, simulated, answer }
        };
        Ok(answers.into_iter().map(said).collect())
    }
}

fn asked(society: &Society, agents: &[u32], at: u32, question: &str, seed: u64) -> Result<Vec<Effect>, DriveError> {
    let mut effects = Vec::new();
    for agent in agents {
        let refused = match society.interview(*agent, question).map_err(|bug| DriveError::Bug { seed, bug })? {
            Interview::Ask(request) if request.model.kind() == TargetKind::Human => {
                format!("agent {agent} is a person, `{}`: ask that person yourself", request.model)
            }
            Interview::Ask(request) => {
                let id = EffectId { item: 0, round: at, actor: *agent, asker: Asker::Agent, n: 0 };
                effects.push(Effect { id, request: *request, hidden: None, default: None });
                continue;
            }
            Interview::Unborn => {
                format!(
                    "there is no agent {agent} before round {at}; the agents are 0 to {}",
                    society.ids_assigned() - 1
                )
            }
            Interview::Dead => format!("agent {agent} died before round {at}; choose an earlier round with --at"),
            Interview::Mute(cohort) => {
                format!("agent {agent} belongs to the cohort `{cohort}`, which follows rules; it cannot be asked")
            }
        };
        return Err(DriveError::Input(refused));
    }
    Ok(effects)
}
