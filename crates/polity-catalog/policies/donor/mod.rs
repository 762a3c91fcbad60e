//! Give to those who are seen to have given. See README.md.

use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Donor>(files);
}

/// The recipients that a donor gives to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// All.
    Unconditional,
    /// Those who gave enough when they were last donors, and those without a known history (image scoring).
    Image,
    /// The same, and those who gave nothing to a recipient in bad standing (standing).
    #[default]
    Standing,
    /// None.
    FreeRider,
    /// All, but only after the donor has been punished.
    Deterred,
}

/// Parameters of donors.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The recipients that it gives to.
    strategy: Strategy,
    /// Share of its resources that it gives; 0 to 1.
    share: f64,
    /// A share from this on counts as a gift; above 0, up to 1.
    enough: f64,
    /// Share of its resources that it spends on punishing a recipient instead of giving, if the world allows punishment; 0 to 1. Donors
    /// that give to all or to none never punish.
    punish: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { strategy: Strategy::Standing, share: 0.5, enough: 0.1, punish: 0.0 }
    }
}

/// Gives by a strategy.
pub struct Donor {
    params: Params,
    donor: NumberSlot,
    punished: NumberSlot,
    trace: NumberSlot,
    shares: [NumberSlot; 3],
    give: u16,
    punish: Option<u16>,
}

impl Donor {
    /// Returns whether somebody who gave this share last is in good standing; `met` are the shares that those gave before whom each met.
    fn is_good(&self, shares: &[f64]) -> bool {
        match shares {
            [] => true,
            [last, met @ ..] => *last >= self.params.enough || !met.is_empty() && !self.is_good(met),
        }
    }
}

impl Policy for Donor {
    const NAME: &'static str = "donor";
    const SUMMARY: &'static str = "Give to all, to nobody, or to those who are seen to have given";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0.0..=1.0, "share", params.share)?;
        let fits = params.enough > 0.0 && params.enough <= 1.0;
        Invalid::unless(fits, "enough", format!("must be above 0 and at most 1, is {}", params.enough))?;
        Invalid::within(0.0..=1.0, "punish", params.punish)?;
        let (give, argument) = setup.act("give")?;
        let message = format!("the action `give` of the world `{}` is not a share from 0 to 1", setup.world);
        Invalid::unless(argument == ActionArgument::Number { low: 0.0, high: 1.0 }, "kind", message)?;
        let shares = [setup.number("last-share")?, setup.number("second-share")?, setup.number("third-share")?];
        Ok(Donor {
            params,
            donor: setup.number("donor")?,
            punished: setup.number("punished")?,
            trace: setup.number("trace")?,
            shares,
            give,
            punish: setup.act("punish").ok().map(|(punish, _)| punish),
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        if seen.number(self.donor) == 0.0 {
            return Ok(());
        }
        let shares = self.shares.map(|slot| seen.number(slot));
        let known = &shares[..(seen.number(self.trace) as usize).min(shares.len())];
        let (gives, judges) = match self.params.strategy {
            Strategy::Unconditional => (true, false),
            Strategy::FreeRider => (false, false),
            Strategy::Deterred => (seen.number(self.punished) > 0.0, false),
            Strategy::Image => (self.is_good(&known[..known.len().min(1)]), true),
            Strategy::Standing => (self.is_good(known), true),
        };
        match self.punish {
            _ if gives => turn.act(self.give, self.params.share),
            Some(punish) if judges && self.params.punish > 0.0 => turn.act(punish, self.params.punish),
            _ => turn.act(self.give, 0.0),
        }
        Ok(())
    }
}
