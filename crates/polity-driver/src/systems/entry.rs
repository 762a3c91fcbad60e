//! A published system as data (`systems/NAME/system.yaml`): the paper, the leaves that compose it, and claims that can be checked.
//!
//! A claim compares a quantity of one arm with that of another, or with a number. The quantity is computed seed by seed, so it has an
//! interval ([`polity_stats`]). The claim holds if the whole interval satisfies it, does not hold if the whole interval contradicts it,
//! and otherwise the two are not told apart. With a tolerance this is the usual test of non-inferiority (`at-least`, `at-most`) and of
//! equivalence (`within`) by a 95 % interval (Wellek: "Testing Statistical Hypotheses of Equivalence and Noninferiority", 2010).

use polity_kernel::tree::{Invalid, Node, TreeError, nearest};
use polity_stats::{Estimate, FEW, student};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A published system.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Its common name.
    pub name: String,
    /// Title of its paper.
    pub title: String,
    /// Where to find the paper: venue, archive number, repository.
    pub paper: String,
    /// The authors.
    pub authors: String,
    /// Year of the paper.
    pub year: u32,
    /// Its rows in `systems/index.tsv`.
    pub ids: Vec<u32>,
    /// The leaves that compose it, `methods/dylan`.
    pub leaves: Vec<String>,
    /// What it needs on the machine besides Polity: `tool/python`, or `consent`, the user's leave to start programs (`--allow-tools`).
    #[serde(default)]
    pub needs: Vec<String>,
    /// Seeds with which every arm is run, from its scenario's own on.
    #[serde(default = "seeds")]
    #[schemars(range(min = 6))]
    pub seeds: u32,
    /// Items of every evaluation, in place of the scenario's number.
    pub items: Option<u32>,
    /// Whether simulated models answer.
    pub simulated: bool,
    /// Ways to run it, or baselines, by name.
    #[serde(default)]
    pub arms: BTreeMap<String, Arm>,
    /// The paper's claims that are checked here.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// The paper's claims that are measured elsewhere, since no run of a scenario shows them.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
    /// Games that together score a model: `polity eval --suite NAME --model MODEL`.
    #[serde(default)]
    pub suite: Vec<Game>,
    /// What its rows in the index and its abstract promise, piece by piece. Its status follows from them.
    #[serde(default)]
    pub clauses: Vec<Clause>,
    /// The map of a survey: the features that it names, each with examples or as a gap.
    #[serde(default)]
    pub map: Vec<Feature>,
}

/// A game of a suite.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Game {
    /// Its name in the suite.
    pub name: String,
    /// Its scenario, a file relative to the system's folder, in which minds play.
    pub scenario: String,
    /// Changes to it: paths and values, as with `-P`.
    #[serde(default)]
    pub set: BTreeMap<String, Node>,
    /// The metric whose last value is the score.
    pub score: String,
}

/// A feature on the map of a survey.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// The part of the map that it belongs to.
    pub part: String,
    /// The feature, in our own words.
    pub feature: String,
    /// Claims of this entry whose runs are examples.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Other entries that are examples.
    #[serde(default)]
    pub systems: Vec<String>,
    /// What is missing, if there is no example.
    pub gap: Option<String>,
}

/// A promise of a row of the index or of the abstract.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clause {
    /// The promise, in our own words.
    pub text: String,
    /// The row of the index that it belongs to; needed if the system has several.
    pub row: Option<u32>,
    /// Where it is made.
    pub from: ClauseOrigin,
    /// The claims that decide it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Why no claim decides it.
    pub missing: Option<String>,
}

/// Where a promise is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClauseOrigin {
    /// In the column `works_when` of the index.
    WorksWhen,
    /// In the abstract of the paper.
    Abstract,
}

/// What is known of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// All its claims hold.
    Shown,
    /// A claim does not hold here.
    NotReproduced,
    /// No claim decides it.
    Missing,
}

/// What an entry needs whose tools start programs or ask hosts.
pub const CONSENT: &str = "consent";

/// What decides a claim, from what reaches furthest to what reaches least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// A closed form or a known law.
    Theory,
    /// A rule, a world, an environment or tests, without any constant declared for a simulated model.
    Checker,
    /// The authors' program, given the same replies.
    Official,
    /// Recorded answers of real models.
    Recorded,
    /// A policy that learned here.
    Learned,
    /// Constants declared for simulated models, or chosen in the scenario.
    Simulated,
}

impl DecidedBy {
    /// All of them.
    pub const ALL: [DecidedBy; 6] = [
        DecidedBy::Theory,
        DecidedBy::Checker,
        DecidedBy::Official,
        DecidedBy::Recorded,
        DecidedBy::Learned,
        DecidedBy::Simulated,
    ];

    /// The word for people and tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            DecidedBy::Theory => "theory",
            DecidedBy::Checker => "checker",
            DecidedBy::Official => "official",
            DecidedBy::Recorded => "recorded",
            DecidedBy::Learned => "learned",
            DecidedBy::Simulated => "simulated",
        }
    }
}

fn seeds() -> u32 {
    8
}

/// How much of a system is shown to work. It is computed from clauses ([`System::status`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every clause is shown.
    Works,
    /// Some clause is not shown, or does not reproduce.
    Partly,
    /// Nothing is there yet.
    Planned,
}

impl Status {
    /// The word for people and tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Status::Works => "works",
            Status::Partly => "partly",
            Status::Planned => "planned",
        }
    }
}

/// One way to run a system.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its scenario, a file relative to the system's folder.
    pub scenario: String,
    /// Changes to it: paths and values, as with `-P`.
    #[serde(default)]
    pub set: BTreeMap<String, Node>,
}

/// A claim of the paper, as a comparison.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name in this system.
    pub name: String,
    /// The claim, in our own words.
    pub text: String,
    /// Where the paper states it: abstract, section, table.
    pub source: String,
    /// What decides it.
    pub decided_by: DecidedBy,
    /// The paper's figure, as it states it.
    pub paper: Option<String>,
    /// What the interval is over.
    #[serde(default)]
    pub over: Over,
    /// What is measured: `accuracy`, `calls`, `tokens`, `cost` or `rounds` (of an evaluation, per item), a quantity that the method
    /// measures, a degree of freedom of its chain (`chain.conditions`), the number of its weakest member
    /// (`capacity.weakest`), a rank correlation over the items of what the method measures with the data set's own number
    /// (`spearman.final-score`, `kendall.final-score`), or a metric's last value.
    pub metric: String,
    /// The arm it is about.
    pub of: String,
    /// The arm it is compared with; if omitted, it is compared with a number.
    pub against: Option<String>,
    /// How two arms are combined.
    #[serde(default)]
    pub scale: Scale,
    /// How it compares.
    pub is: Relation,
    /// The number to compare with. Between two arms, the default is 0 for a difference and 1 for a ratio.
    pub than: Option<f64>,
    /// The tolerance, for `at-least`, `at-most` and `within`.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub tolerance: f64,
    /// Whether it is expected to hold here.
    #[serde(default = "yes")]
    pub reproduces: bool,
    /// The measured value, if it does not reproduce.
    pub found: Option<f64>,
    /// Why it does not reproduce, as far as known.
    pub why: Option<String>,
    /// Whether `against` is the placebo of `of`: the same mechanism, which asks as often but carries no information. Such a claim needs no
    /// break.
    #[serde(default)]
    pub against_placebo: bool,
    /// Ways to break its mechanism, by name; the claim must fail with each.
    #[serde(default)]
    pub breaks: BTreeMap<String, Break>,
}

fn yes() -> bool {
    true
}

/// What the interval of a claim is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Runs with different seeds.
    #[default]
    Seeds,
    /// The items of one run, for answers that do not depend on the seed.
    Items,
}

/// How two arms are combined, seed by seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// One minus the other.
    #[default]
    Difference,
    /// One divided by the other.
    Ratio,
}

/// How a quantity compares with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Not below it by more than the tolerance.
    AtLeast,
    /// Not above it by more than the tolerance.
    AtMost,
    /// Above it.
    More,
    /// Below it.
    Less,
    /// Within the tolerance of it.
    Within,
}

/// A mechanism that is deliberately disabled.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Break {
    /// The arm to change; both if omitted.
    pub arm: Option<String>,
    /// The changes.
    pub set: BTreeMap<String, Node>,
}

/// A claim that no run of a scenario shows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// Its name in this system.
    pub name: String,
    /// The claim, in our own words.
    pub text: String,
    /// Where the paper states it.
    pub source: String,
    /// What decides it.
    pub decided_by: DecidedBy,
    /// The command that measures it.
    pub command: String,
    /// The measured result, and where it is recorded.
    pub measured: String,
    /// What it says about the claim: `holds`, `does not hold` or `not told apart`. Without it, the claim cannot be measured.
    pub finding: Option<Finding>,
}

/// What the interval of a quantity says about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Finding {
    /// The whole interval satisfies it.
    #[serde(rename = "holds")]
    Holds,
    /// The whole interval contradicts it.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// Neither, or there are fewer than [`FEW`] seeds.
    #[serde(rename = "not told apart")]
    NotToldApart,
}

impl Finding {
    /// The words for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Finding::Holds => "holds",
            Finding::DoesNotHold => "does not hold",
            Finding::NotToldApart => "not told apart",
        }
    }
}

impl System {
    /// Reads a system from its tree and checks its consistency.
    ///
    /// # Errors
    /// With the location: unknown keys, missing arms, comparisons that are incomplete or overdetermined.
    pub fn read(tree: &Node) -> Result<System, TreeError> {
        let system: System = tree.read("")?;
        system.check().map_err(|invalid| tree.blame("", invalid))?;
        Ok(system)
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(!self.ids.is_empty(), "ids", "a system needs at least one row of the index")?;
        let enough = format!("at least {FEW} seeds are needed: with fewer, an interval says nothing");
        Invalid::unless(self.seeds as usize >= FEW, "seeds", enough)?;
        Invalid::unless(self.items != Some(0), "items", "an evaluation has at least one item")?;
        let mut names = BTreeSet::new();
        for (i, claim) in self.claims.iter().enumerate() {
            let at = |key: &str| format!("claims[{i}].{key}");
            Invalid::unless(names.insert(&claim.name), &at("name"), "two claims have this name")?;
            claim.check(&self.arms).map_err(|invalid| Invalid { key: at(&invalid.key), ..invalid })?;
        }
        for (i, claim) in self.elsewhere.iter().enumerate() {
            let key = format!("elsewhere[{i}].name");
            Invalid::unless(names.insert(&claim.name), &key, "two claims have this name")?;
        }
        let names: BTreeSet<&str> = names.into_iter().map(String::as_str).collect();
        for (i, clause) in self.clauses.iter().enumerate() {
            let at = |invalid: Invalid| Invalid { key: format!("clauses[{i}].{}", invalid.key), ..invalid };
            clause.check(&self.ids, &names).map_err(at)?;
        }
        for (i, game) in self.suite.iter().enumerate() {
            let same = self.suite[..i].iter().any(|other| other.name == game.name);
            Invalid::unless(!same, &format!("suite[{i}].name"), "two games have this name")?;
        }
        for (i, feature) in self.map.iter().enumerate() {
            let at = |invalid: Invalid| Invalid { key: format!("map[{i}].{}", invalid.key), ..invalid };
            feature.check(&names).map_err(at)?;
        }
        Ok(())
    }

    /// What is known of a clause.
    #[must_use]
    pub fn standing(&self, clause: &Clause) -> Standing {
        let holds = |name: &String| {
            let claim = self.claims.iter().find(|claim| claim.name == *name).map(|claim| claim.reproduces);
            let elsewhere = self.elsewhere.iter().find(|claim| claim.name == *name);
            claim.or(elsewhere.map(|claim| claim.finding == Some(Finding::Holds))).unwrap_or(false)
        };
        match clause.claims.as_slice() {
            [] => Standing::Missing,
            claims if claims.iter().all(holds) => Standing::Shown,
            _ => Standing::NotReproduced,
        }
    }

    /// What decides each of its claims.
    pub fn decided(&self) -> impl Iterator<Item = DecidedBy> {
        let elsewhere = self.elsewhere.iter().map(|claim| claim.decided_by);
        self.claims.iter().map(|claim| claim.decided_by).chain(elsewhere)
    }

    /// The clauses of a row.
    pub fn clauses_of(&self, row: u32) -> impl Iterator<Item = &Clause> {
        self.clauses.iter().filter(move |clause| clause.row.or(self.ids.first().copied()) == Some(row))
    }

    /// How many of a row's clauses of one origin are shown, and how many there are.
    #[must_use]
    pub fn shown(&self, row: u32, origin: ClauseOrigin) -> (usize, usize) {
        let of = || self.clauses_of(row).filter(|clause| clause.from == origin);
        (of().filter(|clause| self.standing(clause) == Standing::Shown).count(), of().count())
    }

    /// How much of a row is shown to work.
    #[must_use]
    pub fn status(&self, row: u32) -> Status {
        let standings: Vec<Standing> = self.clauses_of(row).map(|clause| self.standing(clause)).collect();
        match () {
            () if standings.iter().all(|standing| *standing == Standing::Missing) => Status::Planned,
            () if standings.iter().all(|standing| *standing == Standing::Shown) => Status::Works,
            () => Status::Partly,
        }
    }
}

impl Clause {
    fn check(&self, rows: &[u32], names: &BTreeSet<&str>) -> Result<(), Invalid> {
        let one = "a clause names either the claims that decide it, or why it is `missing`";
        Invalid::unless(self.claims.is_empty() == self.missing.is_some(), "claims", one)?;
        let of = format!("name the row of the index that it belongs to, one of {rows:?}");
        Invalid::unless(self.row.map_or(rows.len() == 1, |row| rows.contains(&row)), "row", of)?;
        known_claims(&self.claims, names)
    }
}

impl Feature {
    fn check(&self, names: &BTreeSet<&str>) -> Result<(), Invalid> {
        let examples = !self.claims.is_empty() || !self.systems.is_empty();
        let one = "a feature names either examples (`claims`, `systems`), or what is missing (`gap`)";
        Invalid::unless(examples != self.gap.is_some(), "gap", one)?;
        known_claims(&self.claims, names)
    }
}

/// Checks that the names under `claims` are those of claims.
fn known_claims(claims: &[String], names: &BTreeSet<&str>) -> Result<(), Invalid> {
    for (i, name) in claims.iter().enumerate() {
        let meant = nearest(name, names.iter().copied()).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
        let none = format!("there is no claim `{name}`{meant}");
        Invalid::unless(names.contains(name.as_str()), &format!("claims[{i}]"), none)?;
    }
    Ok(())
}

fn known(arm: &str, arms: &BTreeMap<String, Arm>, key: &str) -> Result<(), Invalid> {
    let meant =
        nearest(arm, arms.keys().map(String::as_str)).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
    Invalid::unless(arms.contains_key(arm), key, format!("there is no arm `{arm}`{meant}"))
}

impl Claim {
    fn check(&self, arms: &BTreeMap<String, Arm>) -> Result<(), Invalid> {
        known(&self.of, arms, "of")?;
        if let Some(against) = &self.against {
            known(against, arms, "against")?;
            Invalid::unless(*against != self.of, "against", "an arm is not compared with itself")?;
        }
        let alone = self.against.is_none();
        Invalid::unless(
            !alone || self.than.is_some(),
            "than",
            "a claim about one arm needs a number to compare it with",
        )?;
        Invalid::unless(
            !alone || self.scale == Scale::Difference,
            "scale",
            "a ratio needs two arms; name the other under `against`",
        )?;
        Invalid::unless(self.than.is_none_or(f64::is_finite), "than", "it must be finite")?;
        Invalid::unless(self.tolerance.is_finite() && self.tolerance >= 0.0, "tolerance", "it cannot be negative")?;
        let strict = matches!(self.is, Relation::More | Relation::Less);
        let beside = "`more` and `less` have no tolerance; use `than`, or `at-least` and `at-most`";
        Invalid::unless(!strict || self.tolerance == 0.0, "tolerance", beside)?;
        let wide = "`within` needs a tolerance greater than 0";
        Invalid::unless(self.is != Relation::Within || self.tolerance > 0.0, "tolerance", wide)?;
        let found = match self.reproduces {
            true => Invalid::unless(
                self.found.is_none() && self.why.is_none(),
                if self.found.is_some() { "found" } else { "why" },
                "it belongs to a claim with `reproduces: false`",
            ),
            false => Invalid::unless(
                self.found.is_some(),
                "found",
                "a claim that does not reproduce must say what was measured",
            ),
        };
        found?;
        let nothing = "a claim that does not reproduce has no mechanism to break";
        Invalid::unless(self.reproduces || self.breaks.is_empty(), "breaks", nothing)?;
        let none = "a claim that reproduces names a way to break it: the mechanism runs, but carries no information";
        let tested = !self.breaks.is_empty() || self.against_placebo;
        Invalid::unless(!self.reproduces || tested, "breaks", none)?;
        let nobody = "name the arm that is the placebo under `against`";
        Invalid::unless(!self.against_placebo || self.against.is_some(), "against_placebo", nobody)?;
        let fixed = "recorded answers do not depend on the seed, so the interval is over items; add `over: items`";
        Invalid::unless(self.decided_by != DecidedBy::Recorded || self.over == Over::Items, "over", fixed)?;
        for (name, broken) in &self.breaks {
            let Some(arm) = &broken.arm else { continue };
            let at = format!("breaks.{name:?}.arm");
            known(arm, arms, &at)?;
            let about = self.arms().any(|other| other == arm);
            Invalid::unless(about, &at, "this claim is not about that arm")?;
        }
        Ok(())
    }

    /// The arms it is about.
    pub fn arms(&self) -> impl Iterator<Item = &str> {
        [Some(self.of.as_str()), self.against.as_deref()].into_iter().flatten()
    }

    /// The number it is compared with.
    fn reference(&self) -> f64 {
        self.than.unwrap_or(match self.scale {
            Scale::Difference => 0.0,
            Scale::Ratio => 1.0,
        })
    }

    /// Its quantity, from the values of its arms by seed or by item: with two arms the difference or ratio of each pair, else the values.
    /// If any ratio divides by zero, there is no quantity. The interval is Student's. A ratio over items is that of the means, with the
    /// interval of its linear approximation (the delta method), since single items may divide by zero.
    #[must_use]
    pub fn quantity(&self, of: &[f64], against: Option<&[f64]>) -> Estimate {
        if let (Over::Items, Scale::Ratio, Some(other)) = (self.over, self.scale, against) {
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let (below, ratio) = (mean(other), mean(of) / mean(other));
            if !ratio.is_finite() {
                return student(&[]);
            }
            let linear: Vec<f64> = of.iter().zip(other).map(|(a, b)| ratio + (a - ratio * b) / below).collect();
            return student(&linear);
        }
        let values: Option<Vec<f64>> = match against {
            None => Some(of.to_vec()),
            Some(other) => of
                .iter()
                .zip(other)
                .map(|(a, b)| match self.scale {
                    Scale::Difference => Some(a - b),
                    Scale::Ratio => Some(a / b).filter(|ratio| ratio.is_finite()),
                })
                .collect(),
        };
        student(&values.unwrap_or_default())
    }

    /// The finding for a quantity.
    #[must_use]
    pub fn finding(&self, quantity: &Estimate) -> Finding {
        let (Some(low), Some(high)) = (quantity.low, quantity.high) else { return Finding::NotToldApart };
        if quantity.n < FEW {
            return Finding::NotToldApart;
        }
        let (from, to) = (self.reference() - self.tolerance, self.reference() + self.tolerance);
        let (holds, fails) = match self.is {
            Relation::AtLeast => (low >= from, high < from),
            Relation::AtMost => (high <= to, low > to),
            Relation::More => (low > to, high <= to),
            Relation::Less => (high < from, low >= from),
            Relation::Within => (low >= from && high <= to, high < from || low > to),
        };
        match (holds, fails) {
            (true, _) => Finding::Holds,
            (_, true) => Finding::DoesNotHold,
            _ => Finding::NotToldApart,
        }
    }

    /// The p value of a claim: twice the probability of such a quantity, or a clearer one, if the claim were just false. It is below 0.05
    /// exactly if the claim holds. `None` if too few values decide.
    #[must_use]
    pub fn p(&self, quantity: &Estimate) -> Option<f64> {
        let finding = self.finding(quantity);
        if quantity.n < FEW {
            return None;
        }
        if quantity.low == quantity.high {
            return Some(if finding == Finding::Holds { 0.0 } else { 1.0 });
        }
        let above = |bound: f64| quantity.p_above(bound);
        let below = |bound: f64| quantity.p_above(bound).map(|p| 1.0 - p);
        let (from, to) = (self.reference() - self.tolerance, self.reference() + self.tolerance);
        let one_sided = match self.is {
            Relation::AtLeast => above(from)?,
            Relation::AtMost => below(to)?,
            Relation::More => above(to)?,
            Relation::Less => below(from)?,
            Relation::Within => above(from)?.max(below(to)?),
        };
        Some((2.0 * one_sided).min(1.0))
    }

    /// Describes the expectation.
    #[must_use]
    pub fn expected(&self) -> String {
        let quantity = match (&self.against, self.scale) {
            (None, _) => format!("{} of {}", self.metric, self.of),
            (Some(other), Scale::Difference) => format!("{} of {} less that of {other}", self.metric, self.of),
            (Some(other), Scale::Ratio) => format!("{} of {} to that of {other}", self.metric, self.of),
        };
        let (reference, tolerance) = (self.reference(), self.tolerance);
        let words = match self.is {
            Relation::AtLeast => format!("at least {}", shown(reference - tolerance)),
            Relation::AtMost => format!("at most {}", shown(reference + tolerance)),
            Relation::More => format!("more than {}", shown(reference)),
            Relation::Less => format!("less than {}", shown(reference)),
            Relation::Within => format!("{} to {}", shown(reference - tolerance), shown(reference + tolerance)),
        };
        format!("{quantity}: {words}")
    }
}

/// A number without floating-point noise.
fn shown(x: f64) -> String {
    let rounded = (x * 1e9).round() / 1e9;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

/// The JSON Schema (draft 2020-12) of `system.yaml`.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(System).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(is: Relation, than: Option<f64>, tolerance: f64) -> Claim {
        Claim {
            name: "c".into(),
            text: String::new(),
            source: String::new(),
            decided_by: DecidedBy::Checker,
            paper: None,
            over: Over::Seeds,
            metric: "accuracy".into(),
            of: "a".into(),
            against: Some("b".into()),
            scale: Scale::Difference,
            is,
            than,
            tolerance,
            reproduces: true,
            found: None,
            why: None,
            against_placebo: false,
            breaks: BTreeMap::new(),
        }
    }

    fn interval(low: f64, high: f64) -> Estimate {
        Estimate { mean: Some((low + high) / 2.0), low: Some(low), high: Some(high), n: 8 }
    }

    #[test]
    fn findings_are_read_off_the_interval() {
        use Finding::{DoesNotHold as No, Holds as Yes, NotToldApart as Open};
        use Relation::{AtLeast, AtMost, Less, More, Within};
        let cases = [
            // (relation, than, tolerance, low, high, finding)
            (AtLeast, 0.0, 0.03, -0.03, 0.1, Yes),
            (AtLeast, 0.0, 0.03, -0.04, 0.1, Open),
            (AtLeast, 0.0, 0.03, -0.2, -0.031, No),
            (AtLeast, 0.0, 0.03, -0.2, -0.03, Open),
            (AtMost, 11.0, 0.0, 6.0, 11.0, Yes),
            (AtMost, 11.0, 0.0, 6.0, 11.5, Open),
            (AtMost, 11.0, 0.0, 11.5, 12.0, No),
            (More, 0.0, 0.0, 0.01, 0.2, Yes),
            (More, 0.0, 0.0, 0.0, 0.2, Open),
            (More, 0.0, 0.0, -0.2, 0.0, No),
            // Arms with equal results: nothing is more than itself.
            (More, 0.0, 0.0, 0.0, 0.0, No),
            (Less, 0.8, 0.0, 0.5, 0.79, Yes),
            (Less, 0.8, 0.0, 0.5, 0.8, Open),
            (Less, 0.8, 0.0, 0.8, 0.9, No),
            (Within, 0.0, 0.05, -0.05, 0.05, Yes),
            (Within, 0.0, 0.05, -0.06, 0.05, Open),
            (Within, 0.0, 0.05, 0.06, 0.2, No),
            (Within, 0.0, 0.05, -0.2, -0.06, No),
        ];
        for (is, than, tolerance, low, high, finding) in cases {
            let claim = claim(is, Some(than), tolerance);
            assert_eq!(claim.finding(&interval(low, high)), finding, "{is:?} {than} {tolerance} [{low}, {high}]");
        }
        let few = Estimate { n: FEW - 1, ..interval(1.0, 2.0) };
        assert_eq!(claim(More, None, 0.0).finding(&few), Open);
        assert_eq!(claim(More, None, 0.0).finding(&Estimate { low: None, ..interval(1.0, 2.0) }), Open);
    }

    #[test]
    fn the_p_value_agrees_with_the_interval() {
        use Relation::{AtLeast, AtMost, Less, More, Within};
        let values = [0.12, 0.31, 0.22, 0.05, 0.18, 0.27, 0.09];
        for is in [AtLeast, AtMost, More, Less, Within] {
            let (mut holds, mut open) = (0, 0);
            for step in -40..=80 {
                let claim = claim(is, Some(f64::from(step) / 100.0), if is == Within { 0.15 } else { 0.0 });
                let quantity = claim.quantity(&values, None);
                let found = claim.finding(&quantity) == Finding::Holds;
                assert_eq!(found, claim.p(&quantity).unwrap() < 0.05, "{is:?} {step}");
                (holds, open) = (holds + i32::from(found), open + i32::from(!found));
            }
            assert!(holds > 0 && open > 0, "{is:?}");
        }
        let claim = claim(More, Some(0.1), 0.0);
        assert_eq!(claim.p(&claim.quantity(&values[..5], None)), None, "too few");
        assert_eq!(claim.p(&claim.quantity(&[0.2; 8], None)), Some(0.0));
        assert_eq!(claim.p(&claim.quantity(&[0.1; 8], None)), Some(1.0));
    }

    #[test]
    fn quantities_are_paired_by_seed() {
        let (a, b) = ([3.0, 5.0, 7.0, 9.0, 11.0, 13.0], [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        let difference = claim(Relation::More, None, 0.0);
        // Every pair differs by 1: the interval has no width, however much the seeds differ.
        let found = difference.quantity(&a, Some(&b));
        assert_eq!((found.mean, found.low, found.high, found.n), (Some(1.0), Some(1.0), Some(1.0), 6));
        let ratio = Claim { scale: Scale::Ratio, ..difference.clone() };
        let doubled: Vec<f64> = b.iter().map(|x| x * 2.0).collect();
        assert_eq!(ratio.quantity(&doubled, Some(&b)).mean, Some(2.0));
        assert_eq!(ratio.quantity(&a, Some(&[0.0; 6])).mean, None);
        assert_eq!(ratio.finding(&ratio.quantity(&a, Some(&[0.0; 6]))), Finding::NotToldApart);
        assert_eq!(difference.quantity(&b, None).mean, Some(7.0));
    }

    #[test]
    fn what_is_expected_is_said_in_words() {
        let claim = claim(Relation::AtLeast, None, 0.03);
        assert_eq!(claim.expected(), "accuracy of a less that of b: at least -0.03");
        let ratio = Claim { is: Relation::Less, than: Some(0.8), tolerance: 0.0, scale: Scale::Ratio, ..claim.clone() };
        assert_eq!(ratio.expected(), "accuracy of a to that of b: less than 0.8");
        let alone = Claim { is: Relation::Within, than: Some(0.5), tolerance: 0.1, against: None, ..claim };
        assert_eq!(alone.expected(), "accuracy of a: 0.4 to 0.6");
    }
}
