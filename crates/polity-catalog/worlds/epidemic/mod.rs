//! An infection that spreads along ties, in event time. See README.md.

#[cfg(test)]
mod tests;
mod work;

use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, ObservationRow, SplitWorld, TimedWorld, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use work::{Employment, Jobs, Work};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.timed_world::<Epidemic>(files);
}

/// Parameters of the infection. Time is in days.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Infections per day that an infectious agent causes through one tie (beta).
    rate: f64,
    /// Mean days from infection to infectiousness: `step`, plus an exponential time.
    latent: f64,
    /// Mean days of infectiousness, exponential.
    infectious: f64,
    /// Share of the agents that are infected at the start, drawn by the seed.
    initial: f64,
    /// Share of contacts that isolation prevents, applied at both ends.
    isolation: f64,
    /// Minimum time from an infection to its effects, and the length of a round.
    step: f64,
    /// Jobs, and how they are lost and found. Without it there is no work.
    employment: Option<Employment>,
}

impl Default for Params {
    fn default() -> Self {
        Params { rate: 0.05, latent: 3.0, infectious: 5.0, initial: 0.001, isolation: 0.9, step: 1.0, employment: None }
    }
}

/// An infection that spreads along ties (SEIR; SIR when `latent` equals `step`).
pub struct Epidemic {
    params: Params,
    agents: u32,
    seen: Seen,
}

/// The course of the disease, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Health {
    /// Can be infected.
    Susceptible,
    /// Infected, not infectious yet.
    Exposed,
    /// Infects others.
    Infectious,
    /// No longer infectious and immune.
    Recovered,
}

/// An agent's share of the state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Patient {
    health: Health,
    isolates: bool,
    work: Work,
    /// Times of becoming infectious and of recovery; 0 before the infection.
    onset: f64,
    recovery: f64,
}

/// Public information.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epidemiology {
    /// Agents by health.
    counts: [u32; 4],
    /// Infections in the last round.
    new: u32,
    /// The labour force.
    jobs: Jobs,
}

/// Changes of health in a run of agents: infections at the start, later infections, onsets, recoveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    seeds: u32,
    infected: u32,
    onsets: u32,
    recovered: u32,
    jobs: Jobs,
}

/// Private observations of an agent.
struct Seen {
    health: NumberSlot,
    right_isolate: NumberSlot,
    employment: NumberSlot,
}

/// A careful agent who is not ill stays at home with this many times the prevalence as probability. Used only as a hint for simulated
/// models.
const CAUTION: f64 = 10.0;

/// Events of agents.
const CONTACT: u16 = 0;
/// Contacts are planned, those between `step` and twice `step` from now, so that no contact happens before the window's end.
const PLAN: u16 = 1;
const ONSET: u16 = 2;
const RECOVERY: u16 = 3;
/// A tick of the clock of jobs; the first is at time 0.
const JOB: u16 = 4;

impl Epidemic {
    fn declare(declare: &mut DeclareSplit<Self>, works: bool) -> Seen {
        let doc = "the agent's: 0 susceptible, 1 exposed, 2 infectious, 3 recovered";
        let health = declare.number_slot("health", doc);
        let doc = "share of the agents that were infectious at the end of the last round";
        declare.shared_number("prevalence", doc, Self::prevalence);
        let doc = "share of the agents that were infected in the last round";
        declare.shared_number("incidence", doc, |world, common| world.share(common.new));
        let doc = "probability that somebody careful stays at home";
        let right_isolate =
            declare.shared_number("right-isolate", doc, |world, common| (CAUTION * world.prevalence(common)).min(1.0));
        let choice = ActionArgument::Choice(vec!["no".into(), "yes".into()]);
        declare.action(
            "isolate",
            choice,
            "stay at home from now on, or go out again; without an act it stays as it is",
        );
        let doc = "0 susceptible, 1 exposed, 2 infectious, 3 recovered";
        declare.column("health", doc, Some((0.0, 3.0)), |_, _, patient| f64::from(patient.health as u8));
        let doc = "1 when the agent stays at home";
        declare.column("isolates", doc, Some((0.0, 1.0)), |_, _, patient| f64::from(u8::from(patient.isolates)));
        let states = [
            ("susceptible", "agents that can be infected"),
            ("exposed", "agents that are infected but not yet infectious"),
            ("infectious", "infectious agents"),
            ("recovered", "agents that have recovered"),
        ];
        for (i, (name, doc)) in states.into_iter().enumerate() {
            declare.scalar(name, doc, move |_, common| f64::from(common.counts[i]));
        }
        declare.scalar("new", "infections in the round", |_, common| f64::from(common.new));
        // Always declared, so that prompts can use them. Without `employment` both are 0.
        let doc = "the agent's: 0 outside the labour force, 1 employed, 2 unemployed";
        let employment = declare.number_slot("employment", doc);
        let doc = "share of the labour force that was unemployed at the end of the last round";
        declare.shared_number("unemployment", doc, |_, common| common.jobs.unemployment());
        if works {
            let doc = "0 outside the labour force, 1 employed, 2 unemployed";
            declare.column("employment", doc, Some((0.0, 2.0)), |_, _, patient| patient.work.status());
            let doc = "share of the labour force that is unemployed";
            declare.scalar("unemployment", doc, |_, common| common.jobs.unemployment());
        }
        Seen { health, right_isolate, employment }
    }

    fn share(&self, agents: u32) -> f64 {
        f64::from(agents) / f64::from(self.agents.max(1))
    }

    fn prevalence(&self, common: &Epidemiology) -> f64 {
        self.share(common.counts[2])
    }

    /// Returns whether a contact takes place on the side of the agent who is met.
    fn meets(&self, patient: &Patient, draws: &mut Draws) -> bool {
        !patient.isolates || !draws.chance(self.params.isolation)
    }

    fn infect(&self, patient: &mut Patient, at: f64, draws: &mut Draws, own: &mut Vec<(f64, u16)>) {
        let Params { latent, infectious, step, .. } = self.params;
        patient.health = Health::Exposed;
        let rest = latent - step;
        patient.onset = at + step + if rest > 0.0 { draws.exponential(1.0 / rest) } else { 0.0 };
        patient.recovery = patient.onset + draws.exponential(1.0 / infectious);
        own.extend([(patient.onset - step, PLAN), (patient.onset, ONSET), (patient.recovery, RECOVERY)]);
    }

    /// Plans the infections by an infectious agent between `step` and twice `step` from `at`, of neighbours that can be infected.
    fn plan(
        &self,
        patient: &Patient,
        at: f64,
        actions: &AgentActions<'_>,
        draws: &mut Draws,
        future: &mut Future,
    ) -> Option<f64> {
        let Params { rate, isolation, step, .. } = self.params;
        let (from, until) = ((at + step).max(patient.onset), (at + 2.0 * step).min(patient.recovery));
        let degree = actions.degree();
        if until > from && degree > 0 {
            let open = if patient.isolates { 1.0 - isolation } else { 1.0 };
            for _ in 0..draws.poisson(rate * open * f64::from(degree) * (until - from)) {
                let whom = draws.below(u64::from(degree)) as usize;
                let when = draws.range(from, until);
                if let Some(whom) = actions.neighbours().nth(whom) {
                    future.event(actions.person.id, whom, CONTACT, when);
                }
            }
        }
        (patient.recovery > at + 2.0 * step).then_some(at + step)
    }
}

impl SplitWorld for Epidemic {
    const NAME: &'static str = "epidemic";
    const SUMMARY: &'static str = "An infection that spreads along ties (SIR, SEIR), in event time";
    type Params = Params;
    type Row = Patient;
    type Common = Epidemiology;
    type Tally = Changes;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        let Params { rate, latent, infectious, initial, isolation, step, employment } = params;
        let check = |key: &str, value: f64, fits: bool, rule: &str| {
            if fits && value.is_finite() {
                return Ok(());
            }
            Err(Invalid { key: key.into(), message: format!("must {rule}, is {value}") })
        };
        check("rate", rate, rate >= 0.0, "be 0 or more")?;
        check("step", step, step > 0.0, "be greater than 0")?;
        check("latent", latent, latent >= step, &format!("be at least `step` ({step})"))?;
        check("infectious", infectious, infectious > 0.0, "be greater than 0")?;
        check("initial", initial, (0.0..=1.0).contains(&initial), "lie in 0..=1")?;
        check("isolation", isolation, (0.0..=1.0).contains(&isolation), "lie in 0..=1")?;
        if let Some(employment) = &employment {
            employment.check()?;
        }
        Ok(Epidemic { params, agents: setup.agents, seen: Epidemic::declare(declare, employment.is_some()) })
    }

    fn init_common(&self) -> Epidemiology {
        Epidemiology { counts: [self.agents, 0, 0, 0], new: 0, jobs: Jobs::default() }
    }

    fn init_row(&self, _: Person<'_>, draws: &mut Draws) -> Patient {
        let mut patient =
            Patient { health: Health::Susceptible, isolates: false, work: Work::Outside, onset: 0.0, recovery: 0.0 };
        if draws.chance(self.params.initial) {
            // Infectious from the end of the first round on.
            patient.health = Health::Exposed;
            patient.onset = self.params.step;
            patient.recovery = patient.onset + draws.exponential(1.0 / self.params.infectious);
        }
        if let Some(employment) = &self.params.employment {
            patient.work = employment.init(draws);
        }
        patient
    }

    fn observe(&self, _: &Epidemiology, patient: &Patient, _: Person<'_>, observation: &mut ObservationRow<'_>) {
        if patient.health != Health::Susceptible {
            observation.number(self.seen.health, f64::from(patient.health as u8));
        }
        // A careful person who is infected but not yet infectious decides like a healthy one.
        if patient.health >= Health::Infectious {
            observation.number(self.seen.right_isolate, f64::from(u8::from(patient.health == Health::Infectious)));
        }
        if patient.work != Work::Outside {
            observation.number(self.seen.employment, patient.work.status());
        }
    }

    fn tally(&self) -> Changes {
        Changes::default()
    }

    fn apply(
        &self,
        _: &Epidemiology,
        patient: &mut Patient,
        actions: &AgentActions<'_>,
        tally: &mut Changes,
        future: &mut Future,
    ) {
        if let Some(act) = actions.acts().last() {
            patient.isolates = act.value > 0.5;
        }
        let end = f64::from(actions.round + 1) * self.params.step;
        let mut draws = actions.draws();
        // Effects of the agent's own events on itself may lie in this window, too.
        let mut events: Vec<(f64, u16)> = actions.events().map(|(at, _, kind)| (at, kind)).collect();
        let mut next = 0;
        while let Some((at, kind)) = events.get(next).copied() {
            next += 1;
            let mut own = Vec::new();
            match kind {
                CONTACT if patient.health == Health::Susceptible && self.meets(patient, &mut draws) => {
                    self.infect(patient, at, &mut draws, &mut own);
                    tally.infected += 1;
                }
                PLAN => {
                    // The first plan of those infected from the start, who have not been counted yet.
                    tally.seeds += u32::from(at == 0.0);
                    own.extend(self.plan(patient, at, actions, &mut draws, future).map(|again| (again, PLAN)));
                }
                ONSET => {
                    patient.health = Health::Infectious;
                    tally.onsets += 1;
                }
                RECOVERY => {
                    patient.health = Health::Recovered;
                    patient.isolates = false;
                    tally.recovered += 1;
                }
                JOB => {
                    let Some(employment) = &self.params.employment else { continue };
                    own.push((at + employment.tick(&mut draws), JOB));
                    if at == 0.0 {
                        tally.jobs.enter(patient.work);
                    } else {
                        tally.jobs.change(employment.event(&mut patient.work, patient.isolates, &mut draws));
                    }
                }
                _ => {}
            }
            for (at, kind) in own {
                if at < end {
                    let place = next + events[next..].partition_point(|event| event.0 <= at);
                    events.insert(place, (at, kind));
                } else {
                    future.event(actions.person.id, actions.person.id, kind, at);
                }
            }
        }
    }

    fn merge(&self, left: Changes, right: Changes) -> Changes {
        Changes {
            seeds: left.seeds + right.seeds,
            infected: left.infected + right.infected,
            onsets: left.onsets + right.onsets,
            recovered: left.recovered + right.recovered,
            jobs: left.jobs.plus(right.jobs),
        }
    }

    fn end_round(&self, common: &mut Epidemiology, tally: Changes, _: &mut Draws) -> Option<String> {
        let Changes { seeds, infected, onsets, recovered, jobs } = tally;
        let [susceptible, exposed, infectious, immune] = &mut common.counts;
        *susceptible -= seeds + infected;
        *exposed = *exposed + seeds + infected - onsets;
        *infectious = *infectious + onsets - recovered;
        *immune += recovered;
        common.new = infected;
        common.jobs = common.jobs.plus(jobs);
        match (*exposed == 0 && *infectious == 0, *immune) {
            (true, 0) => Some("nobody was infected at the start: raise `initial`, or use more agents".into()),
            (true, _) => Some("nobody is infected any more".into()),
            (false, _) => None,
        }
    }
}

impl TimedWorld for Epidemic {
    fn delay(&self) -> f64 {
        self.params.step
    }

    fn start(&self, patient: &Patient, person: Person<'_>, future: &mut Future) {
        if patient.health == Health::Exposed {
            for (at, kind) in [(0.0, PLAN), (patient.onset, ONSET), (patient.recovery, RECOVERY)] {
                future.event(person.id, person.id, kind, at);
            }
        }
        if patient.work != Work::Outside {
            future.event(person.id, person.id, JOB, 0.0);
        }
    }
}
