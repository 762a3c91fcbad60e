//! Individuals, firms and a government while AI becomes cheap: training, adoption, taxes and subsidies. See README.md.

mod economy;
mod params;
#[cfg(test)]
mod tests;

pub use params::{Params, Policy};

use economy::{Prices, Technology};
use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, ObservationRow, SplitWorld, WorldSetup};
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<LabourMarket>(files);
}

/// A labour market with AI.
pub struct LabourMarket {
    params: Params,
    technology: Technology,
    active: NumberSlot,
    acts: Acts,
}

/// The numbers of the actions.
#[derive(Clone, Copy)]
struct Acts {
    train: u16,
    adopt: u16,
    tax: u16,
    subsidise: u16,
}

/// An agent's part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Row {
    /// The government, which acts on all.
    Government,
    /// A firm.
    Firm {
        /// Its size, with mean 1.
        size: f64,
        /// What adoption costs it besides, per unit of work.
        hurdle: f64,
        /// Share of its routine work that AI does.
        adoption: f64,
    },
    /// An individual.
    Individual {
        /// What training costs, per round.
        cost: f64,
        /// Whether it is skilled.
        skilled: bool,
        /// Whether it has work.
        employed: bool,
        /// Rounds of training that are left; 0 for none.
        training: u32,
    },
}

/// What all share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Common {
    round: u32,
    /// Wages of the unskilled and of the skilled.
    wages: [f64; 2],
    /// Probabilities that one without work finds it in this round, and that one with work loses it, by skill.
    hire: [f64; 2],
    fire: [f64; 2],
    /// Share of each kind who have work.
    chances: [f64; 2],
    /// Cost of AI before taxes.
    ai_cost: f64,
    tax: f64,
    subsidy: f64,
    announced: [f64; 2],
    last: Totals,
    employment: f64,
    /// The sum of the share with work over all rounds.
    employment_sum: f64,
}

/// Sums over agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Individuals by skill, those of them with work, and those in training.
    people: [u64; 2],
    employed: [u64; 2],
    training: u64,
    /// Work that firms demand from people by skill, and all routine work.
    demand: [f64; 2],
    routine: f64,
    /// The government's acts.
    tax: Option<f64>,
    subsidy: Option<f64>,
    refused: u32,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl Totals {
    fn plus(self, other: Totals) -> Totals {
        let both = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
        Totals {
            people: both(self.people, other.people),
            employed: both(self.employed, other.employed),
            training: self.training + other.training,
            demand: [self.demand[0] + other.demand[0], self.demand[1] + other.demand[1]],
            routine: self.routine + other.routine,
            tax: self.tax.or(other.tax),
            subsidy: self.subsidy.or(other.subsidy),
            refused: self.refused + other.refused,
        }
    }
}

impl LabourMarket {
    /// Returns what a unit of routine work by AI costs a firm, with the tax.
    fn cost_of_ai(&self, common: &Common) -> f64 {
        common.ai_cost * (1.0 + common.tax)
    }

    /// Returns what a skilled individual would gain in a round at the start, the cost up to which training pays.
    fn gain_at_start(params: &Params) -> f64 {
        (params.premium - 1.0) * params.employed
    }

    fn declare_shared(declare: &mut DeclareSplit<Self>) {
        type Of = fn(&LabourMarket, &Common) -> f64;
        let shared: [(&'static str, &'static str, Of); 11] = [
            ("quarter", "rounds that are over", |_, c| f64::from(c.round)),
            ("unskilled-wage", "the wage of the unskilled; 1 at the start", |_, c| c.wages[0]),
            ("skilled-wage", "the wage of the skilled", |_, c| c.wages[1]),
            ("unskilled-chance", "share of the unskilled who have work", |_, c| c.chances[0]),
            ("skilled-chance", "share of the skilled who have work", |_, c| c.chances[1]),
            ("ai-cost", "what a unit of routine work by AI costs, with the tax", |w, c| w.cost_of_ai(c)),
            ("tax", "the tax on AI in force, as a share of its cost; below 0 it is a grant", |_, c| c.tax),
            ("subsidy", "the share of the cost of training that the government pays", |_, c| c.subsidy),
            ("announced-tax", "the tax that the government announced last", |_, c| c.announced[0]),
            ("announced-subsidy", "the subsidy that it announced last", |_, c| c.announced[1]),
            ("unemployment", "share of individuals without work", |_, c| 1.0 - c.employment),
        ];
        for (name, doc, of) in shared {
            declare.shared_number(name, doc, of);
        }
    }

    fn declare_agents(declare: &mut DeclareSplit<Self>) -> (NumberSlot, Acts) {
        declare.number("role", "0 for an individual, 1 for a firm, 2 for the government", |_, _, row| match row {
            Row::Individual { .. } => 0.0,
            Row::Firm { .. } => 1.0,
            Row::Government => 2.0,
        });
        let doc = "1 if the agent is an individual who could begin training";
        declare.number("may-train", doc, |_, _, row| {
            truth(matches!(row, Row::Individual { skilled: false, training: 0, .. }))
        });
        declare.number("may-adopt", "1 if it is a firm", |_, _, row| truth(matches!(row, Row::Firm { .. })));
        for name in ["may-tax", "may-subsidise"] {
            declare.number(name, "1 if it is the government", |_, _, row| truth(matches!(row, Row::Government)));
        }
        let doc = "of an individual: what training costs it, per round of its working life, after the subsidy";
        declare.number("training-cost", doc, |_, common, row| match row {
            Row::Individual { cost, .. } => cost * (1.0 - common.subsidy),
            _ => 0.0,
        });
        declare.number("is-skilled", "1 if it is a skilled individual", |_, _, row| {
            truth(matches!(row, Row::Individual { skilled: true, .. }))
        });
        declare.number("has-work", "1 if it is an individual with work", |_, _, row| {
            truth(matches!(row, Row::Individual { employed: true, .. }))
        });
        declare.number(
            "own-adoption",
            "of a firm: the share of its routine work that AI does",
            |_, _, row| match row {
                Row::Firm { adoption, .. } => *adoption,
                _ => 0.0,
            },
        );
        let doc = "of a firm: what adoption costs it besides, per unit of work";
        declare.number("own-hurdle", doc, |_, _, row| match row {
            Row::Firm { hurdle, .. } => *hurdle,
            _ => 0.0,
        });
        let active = declare.number_slot("active", "1 if the agent may act");
        let number = |low: f64, high: f64| ActionArgument::Number { low, high };
        let train = declare.action("train", ActionArgument::Nothing, "begin training, as an individual");
        let doc = "let AI do this share of the exposed routine work, as a firm; adoption moves there step by step";
        let adopt = declare.action("adopt", number(0.0, 1.0), doc);
        let doc = "tax AI at this share of its cost, as the government; below 0 it is a grant";
        let tax = declare.action("tax", number(-0.9, 5.0), doc);
        let doc = "pay this share of the cost of training, as the government";
        let subsidise = declare.action("subsidise", number(0.0, 1.0), doc);
        (active, Acts { train, adopt, tax, subsidise })
    }

    fn declare_results(declare: &mut DeclareSplit<Self>) {
        declare.column("working", "1 for individuals with work", Some((0.0, 1.0)), |_, _, row| {
            truth(matches!(row, Row::Individual { employed: true, .. }))
        });
        declare.column("adopted", "of firms: the share of routine work that AI does", Some((0.0, 1.0)), |_, _, row| {
            if let Row::Firm { adoption, .. } = row { *adoption } else { 0.0 }
        });
        let doc = "of individuals: the wage, if they have work";
        declare.reward(doc, |_, common, row| match row {
            Row::Individual { employed: true, skilled, .. } => common.wages[usize::from(*skilled)],
            _ => 0.0,
        });
        type Of = fn(&Common) -> f64;
        let scalars: [(&'static str, &'static str, Of); 12] = [
            ("employment", "share of individuals with work", |c| c.employment),
            ("mean-employment", "its mean over all rounds so far", |c| c.employment_sum / f64::from(c.round.max(1))),
            ("unskilled-employment", "share of the unskilled with work", |c| c.chances[0]),
            ("skilled-employment", "share of the skilled with work", |c| c.chances[1]),
            ("adoption", "share of all routine work that AI does", |c| {
                if c.last.routine > 0.0 { 1.0 - c.last.demand[0] / c.last.routine } else { 0.0 }
            }),
            ("skilled", "share of individuals who are skilled", |c| {
                c.last.people[1] as f64 / (c.last.people[0] + c.last.people[1]).max(1) as f64
            }),
            ("training", "share of individuals in training", |c| {
                c.last.training as f64 / (c.last.people[0] + c.last.people[1]).max(1) as f64
            }),
            ("unskilled-wage", "the wage of the unskilled", |c| c.wages[0]),
            ("skilled-wage", "the wage of the skilled", |c| c.wages[1]),
            ("ai-cost", "what a unit of routine work by AI costs, before the tax", |c| c.ai_cost),
            ("tax", "the tax on AI in force", |c| c.tax),
            ("refused", "acts of the round that did not count: of agents who may not do this", |c| {
                f64::from(c.last.refused)
            }),
        ];
        for (name, doc, of) in scalars {
            declare.scalar(name, doc, move |_, common| of(common));
        }
    }

    /// Applies what an individual does and what happens to it.
    fn live(common: &Common, row: &mut Row, trains: bool, course: u32, draws: &mut Draws) {
        let Row::Individual { skilled, employed, training, .. } = row else { return };
        let kind = usize::from(*skilled);
        *employed = match *employed {
            true => !draws.chance(common.fire[kind]),
            false => draws.chance(common.hire[kind]),
        };
        match *training {
            0 if trains => *training = course,
            0 => {}
            1 => (*training, *skilled) = (0, true),
            _ => *training -= 1,
        }
    }
}

impl SplitWorld for LabourMarket {
    const NAME: &'static str = "labour-market";
    const SUMMARY: &'static str =
        "Individuals, firms and a government while AI becomes cheap: skills, adoption, policy";
    type Params = Params;
    type Row = Row;
    type Common = Common;
    type Tally = Totals;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        params.check(setup.agents)?;
        let technology = Technology::new(&params, setup.agents - params.firms - 1);
        LabourMarket::declare_shared(declare);
        let (active, acts) = LabourMarket::declare_agents(declare);
        LabourMarket::declare_results(declare);
        Ok(LabourMarket { params, technology, active, acts })
    }

    fn init_common(&self) -> Common {
        let Params { premium, employed, ai_cost, .. } = self.params;
        Common {
            round: 0,
            wages: [1.0, premium],
            hire: [0.0; 2],
            fire: [0.0; 2],
            chances: [employed; 2],
            ai_cost,
            tax: 0.0,
            subsidy: 0.0,
            announced: [0.0; 2],
            last: Totals::default(),
            employment: employed,
            employment_sum: 0.0,
        }
    }

    fn init_row(&self, person: Person<'_>, draws: &mut Draws) -> Row {
        let Params { firms, spread, hurdle, skilled, employed, .. } = self.params;
        match person.id {
            0 => Row::Government,
            id if id <= firms => Row::Firm {
                size: libm::exp(spread * draws.normal() - spread * spread / 2.0),
                hurdle: draws.range(0.0, hurdle),
                adoption: 0.0,
            },
            _ => {
                // Skilled are those for whom training pays at the start, a share `skilled` of them.
                let gain = LabourMarket::gain_at_start(&self.params);
                let cost = draws.exponential(-libm::log(1.0 - skilled) / gain);
                Row::Individual { cost, skilled: cost < gain, employed: draws.chance(employed), training: 0 }
            }
        }
    }

    fn observe(&self, _: &Common, row: &Row, _: Person<'_>, observation: &mut ObservationRow<'_>) {
        let idle = matches!(row, Row::Individual { skilled: true, .. } | Row::Individual { training: 1.., .. });
        observation.number(self.active, truth(!idle));
    }

    fn tally(&self) -> Totals {
        Totals::default()
    }

    fn apply(&self, common: &Common, row: &mut Row, actions: &AgentActions<'_>, tally: &mut Totals, _: &mut Future) {
        let Params { course, exposure, speed, .. } = self.params;
        let (mut trains, mut goal) = (false, None);
        for act in actions.acts() {
            match row {
                Row::Individual { skilled: false, training: 0, .. } if act.kind == self.acts.train => trains = true,
                Row::Firm { .. } if act.kind == self.acts.adopt => goal = Some(act.value.clamp(0.0, 1.0) * exposure),
                Row::Government if act.kind == self.acts.tax => tally.tax = Some(act.value.clamp(-0.9, 5.0)),
                Row::Government if act.kind == self.acts.subsidise => {
                    tally.subsidy = Some(act.value.clamp(0.0, 1.0));
                }
                _ => tally.refused += 1,
            }
        }
        match row {
            Row::Government => {}
            Row::Firm { size, adoption, .. } => {
                let most = speed * exposure;
                *adoption += (goal.unwrap_or(*adoption) - *adoption).clamp(-most, most);
                let routine = (1.0 - *adoption) * common.wages[0] + *adoption * self.cost_of_ai(common);
                let prices = Prices { routine, skilled: common.wages[1] };
                let start = Prices { routine: 1.0, skilled: self.params.premium };
                let [routine, skilled] = self.technology.demand(*size, prices, start);
                tally.routine += routine;
                tally.demand[0] += (1.0 - *adoption) * routine;
                tally.demand[1] += skilled;
            }
            Row::Individual { .. } => LabourMarket::live(common, row, trains, course, &mut actions.draws()),
        }
        if let Row::Individual { skilled, employed, training, .. } = row {
            let kind = usize::from(*skilled);
            tally.people[kind] += 1;
            tally.employed[kind] += u64::from(*employed);
            tally.training += u64::from(*training > 0);
        }
    }

    fn merge(&self, left: Totals, right: Totals) -> Totals {
        left.plus(right)
    }

    fn end_round(&self, common: &mut Common, tally: Totals, _: &mut Draws) -> Option<String> {
        let Params { flexibility, minimum_wage, decline, lowest, policy, .. } = self.params;
        for kind in 0..2 {
            let (people, employed) = (tally.people[kind] as f64, tally.employed[kind] as f64);
            common.chances[kind] = if people > 0.0 { employed / people } else { 0.0 };
            // Jobs that there are for this kind, and so who finds work or loses it in the next round.
            let jobs = tally.demand[kind].min(people);
            common.fire[kind] = if employed > jobs { 1.0 - jobs / employed } else { 0.0 };
            common.hire[kind] = if jobs > employed { (jobs - employed) / (people - employed) } else { 0.0 };
            let excess = if people > 0.0 { (tally.demand[kind] / people - 1.0).clamp(-1.0, 1.0) } else { 0.0 };
            // The market rests where demand is what the employed supplied at the start.
            let rest = 1.0 - self.params.employed;
            common.wages[kind] = (common.wages[kind] * (1.0 + flexibility * (excess + rest))).max(minimum_wage);
        }
        let all = (tally.people[0] + tally.people[1]).max(1) as f64;
        common.employment = (tally.employed[0] + tally.employed[1]) as f64 / all;
        common.employment_sum += common.employment;
        common.ai_cost = (common.ai_cost * (1.0 - decline)).max(lowest.min(common.ai_cost));
        common.announced = [tally.tax.unwrap_or(common.announced[0]), tally.subsidy.unwrap_or(common.announced[1])];
        if policy == Policy::Applied {
            [common.tax, common.subsidy] = common.announced;
        }
        common.last = tally;
        common.round += 1;
        None
    }
}
