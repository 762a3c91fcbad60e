//! Results of methods, and which differences between them are real.

use super::sheet::{Ledger, SOLVE, Sheet, Spent};
use super::{Entrant, Unit};
use polity_driver::run::RunStatus;
use polity_stats as stats;
use rayon::prelude::*;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The significance level, after correction for the number of tests.
pub const LEVEL: f64 = 0.05;

/// Use by one member on a kind of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The member's role or name, else `members`.
    pub who: String,
    /// The kind of work: `calls.purpose`.
    pub purpose: String,
    /// Its use.
    #[serde(flatten)]
    pub spent: Spent,
}

/// A quantity that a method measures: the mean over items with a value, each the mean over its repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The mean.
    pub mean: f64,
    /// Lower end of its 95 % interval: percentile bootstrap over items.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Items that have a value.
    pub items: usize,
}

/// The results of a method on a task, with a model.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The task: the name of its file.
    pub task: String,
    /// The model of all members.
    pub model: String,
    /// As it was named.
    pub method: String,
    /// The method's name.
    pub kind: &'static str,
    /// Members of its team.
    pub members: u32,
    /// Maximum number of rounds.
    pub rounds: u32,
    /// Its own parameters, `KEY=VALUE`, where a key is a path below `method` of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
    /// Items.
    pub items: usize,
    /// Share of right answers: the mean over items, each the mean over its scored repeats. `None` if no answer could be scored.
    pub accuracy: Option<f64>,
    /// Lower end of its 95 % interval: percentile bootstrap over items, with all repeats of an item together.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Use of all repeats together.
    #[serde(flatten)]
    pub spent: Spent,
    /// Share of the tokens spent on other purposes than `solve`.
    pub coordination: f64,
    /// Use of a scoring model, if there is one; not part of the method's use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scoring: Option<Spent>,
    /// Use per item as a share of the allowance, if budgets are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_allowance: Option<f64>,
    /// Answers that could not be scored, for instance because their tests did not run. They are left out.
    pub unscored: usize,
    /// Items on which the team had no answer. They count as wrong.
    pub unanswered: usize,
    /// pass^k by k: the probability that k tries at an item are all right; only with several repeats.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pass: BTreeMap<u32, f64>,
    /// Other quantities that the method measures, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<&'static str, Measured>,
    /// [`RunStatus::Same`] if the replay of every run gave the recorded requests and digests; `None` if they were not replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<RunStatus>,
    /// Use by member and purpose.
    pub ledger: Vec<Entry>,
    /// Whether answers came from simulated models.
    pub simulated: bool,
    /// Always [`RunStatus::Done`], since stopped runs are not scored.
    pub status: RunStatus,
    /// Folder of the run, from the comparison's; with repeats, of the first one.
    pub run: String,
    /// The runs of all repeats.
    pub runs: Vec<String>,
    /// Right answers by item, over its repeats.
    #[serde(skip)]
    pub by_item: Vec<Tally>,
}

/// The scored repeats of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Repeats with a right answer.
    pub right: u32,
    /// All scored repeats.
    pub of: u32,
}

impl Tally {
    /// The share of right answers; `None` without repeats.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| f64::from(self.right) / f64::from(self.of))
    }

    /// Compares how often it is right with another; `None` if one of them has no repeats. Uses whole numbers, since floating-point shares
    /// may differ where the counts do not.
    #[must_use]
    pub fn compare(self, other: Tally) -> Option<Ordering> {
        let across = |a: Tally, b: Tally| u64::from(a.right) * u64::from(b.of);
        (self.of > 0 && other.of > 0).then(|| across(self, other).cmp(&across(other, self)))
    }
}

impl FromIterator<bool> for Tally {
    fn from_iter<T: IntoIterator<Item = bool>>(told: T) -> Self {
        told.into_iter()
            .fold(Tally::default(), |Tally { right, of }, is| Tally { right: right + u32::from(is), of: of + 1 })
    }
}

impl Score {
    /// Sums up the repeats of a method on a task, with a model.
    pub(super) fn of(
        entrant: &Entrant,
        (task, model): (&str, &str),
        sheets: &[Sheet],
        runs: Vec<String>,
        simulated: bool,
    ) -> Score {
        let items = sheets.first().map_or(0, |sheet| sheet.rows.len());
        let told = |item: usize| sheets.iter().filter_map(move |sheet| sheet.rows.get(item)?.correct);
        let by_item: Vec<Tally> = (0..items).map(|item| told(item).collect()).collect();
        let values: Vec<f64> = by_item.iter().filter_map(|tally| tally.share()).collect();
        let accuracy = stats::bootstrap(&values);
        let (mut spent, mut scoring) = (Spent::default(), Spent::default());
        sheets.iter().for_each(|sheet| scoring.add(&sheet.scoring));
        let mut ledger = Ledger::new();
        for (who, part) in sheets.iter().flat_map(|sheet| &sheet.ledger) {
            spent.add(part);
            ledger.entry(who.clone()).or_default().add(part);
        }
        let solving: u64 =
            ledger.iter().filter(|((_, purpose), _)| purpose == SOLVE).map(|(_, spent)| spent.tokens()).sum();
        let rows = || sheets.iter().flat_map(|sheet| &sheet.rows);
        Score {
            task: task.to_owned(),
            model: model.to_owned(),
            method: entrant.label.clone(),
            kind: entrant.method,
            members: entrant.members,
            rounds: entrant.rounds,
            parameters: entrant.parameters(),
            items,
            accuracy: accuracy.mean,
            low: accuracy.low,
            high: accuracy.high,
            spent,
            coordination: 1.0 - solving as f64 / spent.tokens().max(1) as f64,
            scoring: Some(scoring).filter(|scoring| scoring.calls > 0),
            of_allowance: None,
            unscored: rows().filter(|row| row.correct.is_none()).count(),
            unanswered: rows().filter(|row| row.answer.is_none()).count(),
            pass: passes(sheets.len() as u32, &by_item),
            measured: measured(sheets),
            replayed: None,
            ledger: ledger.into_iter().map(|((who, purpose), spent)| Entry { who, purpose, spent }).collect(),
            simulated,
            status: RunStatus::Done,
            run: runs.first().cloned().unwrap_or_default(),
            runs,
            by_item,
        }
    }

    /// Returns the use per item and repeat, in a unit; `None` for dollars that are not known.
    #[must_use]
    pub fn use_per_item(&self, unit: Unit) -> Option<f64> {
        Some(unit.of(&self.spent)? / self.tries())
    }

    /// Returns its items, counted once for each repeat; at least 1, since it divides.
    #[must_use]
    pub(super) fn tries(&self) -> f64 {
        (self.items * self.runs.len()).max(1) as f64
    }
}

/// Returns the quantities measured on the items, over all repeats.
fn measured(sheets: &[Sheet]) -> BTreeMap<&'static str, Measured> {
    let mut of_items: BTreeMap<&'static str, BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for row in sheets.iter().flat_map(|sheet| &sheet.rows) {
        for (name, value) in &row.measured {
            of_items.entry(name).or_default().entry(row.item).or_default().push(*value);
        }
    }
    let summed = |(name, values): (&'static str, BTreeMap<u32, Vec<f64>>)| {
        let values: Vec<f64> = values.values().filter_map(|repeats| stats::mean(repeats)).collect();
        let estimate = stats::bootstrap(&values);
        let measured = Measured { mean: estimate.mean?, low: estimate.low, high: estimate.high, items: values.len() };
        Some((name, measured))
    };
    of_items.into_iter().filter_map(summed).collect()
}

/// Returns pass^k for every k up to the number of repeats, over the items with at least k scored repeats.
fn passes(repeats: u32, by_item: &[Tally]) -> BTreeMap<u32, f64> {
    let of = |k: u32| {
        let each = by_item.iter().filter_map(|tally| stats::pass_hat(tally.right, tally.of, k));
        stats::mean(&each.collect::<Vec<f64>>()).map(|mean| (k, mean))
    };
    if repeats < 2 { BTreeMap::new() } else { (1..=repeats).filter_map(of).collect() }
}

/// Two methods on the same items, with the same model; or, if only one method is compared, two models.
#[derive(Clone, Debug, Serialize)]
pub struct Duel {
    /// The task.
    pub task: String,
    /// The model of both methods; `None` between two models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The first method, or model.
    pub a: String,
    /// The second one.
    pub b: String,
    /// Items on which both could be scored.
    pub items: usize,
    /// Accuracy of `a` minus that of `b` on these.
    pub difference: Option<f64>,
    /// Lower end of its 95 % interval: percentile bootstrap over items, in pairs.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Items on which `a` is right more often than `b`.
    pub a_only: u64,
    /// Items on which `b` is right more often than `a`.
    pub b_only: u64,
    /// Exact two-sided McNemar test (with repeats: sign test over items).
    pub p: f64,
    /// The same, corrected for the number of pairs in all tasks (Holm).
    pub p_holm: f64,
    /// `real` if `p_holm` is below [`LEVEL`], else `not told apart`.
    pub verdict: &'static str,
    /// Why a pair is not told apart although its interval excludes 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub despite: Option<Despite>,
    /// The difference on each item.
    #[serde(skip)]
    pairs: Vec<f64>,
}

/// Why a pair is not told apart although the interval of its difference excludes 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Despite {
    /// The pair alone would be real: its p is below [`LEVEL`], but not after the correction for the number of pairs.
    Holm,
    /// The exact test does not tell it apart either; the interval is approximate.
    Test,
}

impl Duel {
    /// Returns the verdict for tables, with the reason where the interval seems to say otherwise.
    #[must_use]
    pub fn words(&self) -> String {
        match self.despite {
            None => self.verdict.to_owned(),
            Some(Despite::Holm) => format!("{} (Holm)", self.verdict),
            Some(Despite::Test) => format!("{} (exact test)", self.verdict),
        }
    }

    /// Returns what is compared: `a - b`.
    #[must_use]
    pub fn pair(&self) -> String {
        format!("{} - {}", self.a, self.b)
    }
}

/// The mean over the tasks: of a method with a model, or of a difference.
#[derive(Clone, Debug, Serialize)]
pub struct Overall {
    /// The model; `None` for the difference of two models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The method; for a difference the pair, `a - b`.
    pub method: String,
    /// Whether it is a difference.
    pub difference: bool,
    /// Tasks.
    pub tasks: usize,
    /// The mean over tasks of the accuracies (or of their differences), each task with the same weight.
    pub mean: Option<f64>,
    /// Lower end of its 95 % interval: percentile bootstrap over the items of each task. The tasks count as given.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// Returns the mean over `tasks` tasks of every method with every model, and of every pair, in order; nothing for a single task.
pub(super) fn overall(scores: &[Score], duels: &[Duel], tasks: usize) -> Vec<Overall> {
    if tasks < 2 {
        return Vec::new();
    }
    type Of<'a> = (Option<&'a str>, String, bool);
    let of_score = |score: &'_ Score| score.by_item.iter().filter_map(|tally| tally.share()).collect::<Vec<f64>>();
    let accuracies = scores.iter().map(|s| ((Some(s.model.as_str()), s.method.clone(), false), of_score(s)));
    let differences = duels.iter().map(|d| ((d.model.as_deref(), d.pair(), true), d.pairs.clone()));
    let mut groups: Vec<(Of<'_>, Vec<Vec<f64>>)> = Vec::new();
    for (of, values) in accuracies.chain(differences) {
        match groups.iter_mut().find(|group| group.0 == of) {
            Some((_, samples)) => samples.push(values),
            None => groups.push((of, vec![values])),
        }
    }
    let summed = |((model, method, difference), samples): (Of<'_>, Vec<Vec<f64>>)| {
        let estimate = stats::stratified(&samples.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let stats::Estimate { mean, low, high, .. } = estimate;
        Overall { model: model.map(str::to_owned), method, difference, tasks: samples.len(), mean, low, high }
    };
    // Joined in order.
    groups.into_par_iter().map(summed).collect()
}

/// Returns all pairs of methods with the same task and model; of a single method, all pairs of models with the same task. In order.
pub(super) fn duels(scores: &[Score]) -> Vec<Duel> {
    let methods = |score: &Score| scores.first().is_some_and(|first| first.method != score.method);
    let of_models = !scores.iter().any(methods);
    let meet = |a: &Score, b: &Score| a.task == b.task && (of_models || a.model == b.model);
    let pairs: Vec<(&Score, &Score)> = scores
        .iter()
        .enumerate()
        .flat_map(|(i, a)| scores[i + 1..].iter().filter(move |b| meet(a, b)).map(move |b| (a, b)))
        .collect();
    // Joined in order.
    let mut duels: Vec<Duel> = pairs.into_par_iter().map(|(a, b)| duel(a, b, of_models)).collect();
    let adjusted = stats::holm(&duels.iter().map(|duel| duel.p).collect::<Vec<f64>>());
    for (duel, p_holm) in duels.iter_mut().zip(adjusted) {
        duel.p_holm = p_holm;
        duel.verdict = if p_holm < LEVEL { "real" } else { "not told apart" };
        let excludes = duel.low.is_some_and(|low| low > 0.0) || duel.high.is_some_and(|high| high < 0.0);
        let why = if duel.p < LEVEL { Despite::Holm } else { Despite::Test };
        duel.despite = (excludes && p_holm >= LEVEL).then_some(why);
    }
    duels
}

fn duel(a: &Score, b: &Score, of_models: bool) -> Duel {
    let each = || a.by_item.iter().zip(&b.by_item);
    let pairs: Vec<f64> = each().filter_map(|(a, b)| Some(a.share()? - b.share()?)).collect();
    let difference = stats::bootstrap(&pairs);
    let more = |side: Ordering| each().filter(|(a, b)| a.compare(**b) == Some(side)).count() as u64;
    let (a_only, b_only) = (more(Ordering::Greater), more(Ordering::Less));
    let p = stats::mcnemar(a_only, b_only);
    let side = |score: &Score| if of_models { score.model.clone() } else { score.method.clone() };
    Duel {
        task: a.task.clone(),
        model: (!of_models).then(|| a.model.clone()),
        a: side(a),
        b: side(b),
        items: pairs.len(),
        difference: difference.mean,
        low: difference.low,
        high: difference.high,
        a_only,
        b_only,
        p,
        p_holm: p,
        verdict: "",
        despite: None,
        pairs,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sheet::Row;
    use super::*;
    use polity_kernel::rng::{Draws, Stream};

    /// A method whose repeats are right as given, by item and repeat.
    fn score(name: &str, right: &[Vec<bool>]) -> Score {
        let row = |item: usize, correct: bool| Row {
            item: item as u32,
            question: String::new(),
            answer: None,
            extracted: None,
            gold: None,
            correct: Some(correct),
            note: None,
            rounds: 1,
            measured: BTreeMap::new(),
            spent: Spent::default(),
        };
        let sheet = |repeat: usize| Sheet {
            rows: right.iter().enumerate().map(|(item, of_item)| row(item, of_item[repeat])).collect(),
            ledger: Ledger::new(),
            scoring: Spent::default(),
            digest: String::new(),
        };
        let sheets: Vec<Sheet> = (0..right[0].len()).map(sheet).collect();
        let (label, folder) = (name.to_owned(), name.to_owned());
        let entrant = Entrant { label, method: "test", members: 1, sized: true, rounds: 1, set: Vec::new(), folder };
        Score::of(&entrant, ("task", "sim/medium"), &sheets, Vec::new(), true)
    }

    #[test]
    fn the_order_of_repeats_decides_no_comparison() {
        let mut draws = Draws::new(7, Stream::Driver, 0, 0);
        for repeats in 2..=7_usize {
            // Every pair of counts, with the right repeats in a different order on each side.
            let counts: Vec<(usize, usize)> = (0..=repeats).flat_map(|a| (0..=repeats).map(move |b| (a, b))).collect();
            let mut shuffled = |right: usize| {
                let mut told: Vec<bool> = (0..repeats).map(|i| i < right).collect();
                (1..repeats).for_each(|i| told.swap(i, draws.below(i as u64 + 1) as usize));
                told
            };
            for _ in 0..50 {
                let a = score("a", &counts.iter().map(|(a, _)| shuffled(*a)).collect::<Vec<_>>());
                let b = score("b", &counts.iter().map(|(_, b)| shuffled(*b)).collect::<Vec<_>>());
                let found = duel(&a, &b, false);
                let each = (repeats * (repeats + 1) / 2) as u64;
                assert_eq!((found.a_only, found.b_only), (each, each), "{repeats} repeats");
                assert_eq!(found.p, 1.0);
            }
        }
    }

    /// The same items, on another task or with another model.
    fn moved(score: &Score, task: &str, model: &str) -> Score {
        Score { task: task.into(), model: model.into(), ..score.clone() }
    }

    #[test]
    fn methods_meet_within_a_task_and_model_and_one_method_within_a_task() {
        let items = |right: usize| (0..20).map(|item| vec![item < right]).collect::<Vec<_>>();
        let (a, b) = (score("a", &items(18)), score("b", &items(6)));
        let cells = |methods: &[&Score]| {
            let places = [("x", "m"), ("x", "n"), ("y", "m"), ("y", "n")];
            places
                .iter()
                .flat_map(|(task, model)| methods.iter().map(|one| moved(one, task, model)))
                .collect::<Vec<_>>()
        };
        let both = cells(&[&a, &b]);
        let found = duels(&both);
        let places: Vec<(&str, Option<&str>, String)> =
            found.iter().map(|duel| (duel.task.as_str(), duel.model.as_deref(), duel.pair())).collect();
        let pair = "a - b".to_owned();
        assert_eq!(
            places,
            [
                ("x", Some("m"), pair.clone()),
                ("x", Some("n"), pair.clone()),
                ("y", Some("m"), pair.clone()),
                ("y", Some("n"), pair)
            ]
        );
        // Four tests in all, with the same p.
        assert!(found.iter().all(|duel| (duel.p_holm - 4.0 * duel.p).abs() < 1e-12 && duel.verdict == "real"));
        let means = overall(&both, &found, 2);
        assert_eq!(means.len(), 4 + 2);
        assert!((means[0].mean.unwrap() - 0.9).abs() < 1e-12 && !means[0].difference && means[0].tasks == 2);
        assert!((means[4].mean.unwrap() - 0.6).abs() < 1e-12 && means[4].difference);
        // Twice the items: a narrower interval than that of one task.
        assert!(means[4].high.unwrap() - means[4].low.unwrap() < found[0].high.unwrap() - found[0].low.unwrap());
        assert!(overall(&both, &found, 1).is_empty());

        let one = cells(&[&a]);
        let found = duels(&one);
        let places: Vec<(&str, Option<&str>, String)> =
            found.iter().map(|duel| (duel.task.as_str(), duel.model.as_deref(), duel.pair())).collect();
        assert_eq!(places, [("x", None, "m - n".to_owned()), ("y", None, "m - n".to_owned())]);
    }

    #[test]
    fn a_verdict_against_its_interval_has_a_reason() {
        let right = |of: &dyn Fn(usize) -> bool| (0..40).map(|item| vec![of(item)]).collect::<Vec<_>>();
        // Better on 7 of 40, worse on none: p is 0.016 alone. Five pairs of the same kind are too many for it.
        let (all, some) = (score("a", &right(&|_| true)), score("b", &right(&|item| item >= 7)));
        let alone = duels(&[all.clone(), some.clone()]);
        assert_eq!((alone[0].words(), alone[0].despite), ("real".into(), None));
        let cells: Vec<Score> = ["v", "w", "x", "y", "z"]
            .iter()
            .flat_map(|task| [moved(&all, task, "m"), moved(&some, task, "m")])
            .collect();
        let among = duels(&cells);
        assert_eq!((among[0].words(), among[0].despite), ("not told apart (Holm)".into(), Some(Despite::Holm)));
        // Better on 5: the interval excludes 0, the exact test says 0.0625.
        let few = score("c", &right(&|item| item >= 5));
        let approximate = &duels(&[all.clone(), few])[0];
        assert!(approximate.low.unwrap() > 0.0 && (approximate.p - 0.0625).abs() < 1e-12);
        assert_eq!(approximate.words(), "not told apart (exact test)");
        assert_eq!(duels(&[all.clone(), score("d", &right(&|item| item > 0))])[0].words(), "not told apart");
    }

    #[test]
    fn dollars_that_are_not_known_are_not_zero() {
        let mut spent = Spent { calls: 1, cost_usd: Some(0.5), ..Spent::default() };
        spent.add(&Spent { calls: 1, cost_usd: None, ..Spent::default() });
        assert_eq!((spent.calls, spent.cost_usd), (2, None));
        spent.add(&Spent::default());
        assert_eq!(spent.cost_usd, None);
        assert_eq!((Unit::Usd.of(&spent), Unit::Calls.of(&spent)), (None, Some(2.0)));
    }

    #[test]
    fn shares_of_different_numbers_of_repeats_are_compared_exactly() {
        let tally = |right, of| Tally { right, of };
        assert_eq!(tally(1, 3).compare(tally(2, 6)), Some(Ordering::Equal));
        assert_eq!(tally(2, 6).compare(tally(3, 7)), Some(Ordering::Less));
        assert_eq!(tally(1, 1).compare(tally(0, 0)), None);
        assert_eq!(tally(0, 0).share(), None);
    }
}
