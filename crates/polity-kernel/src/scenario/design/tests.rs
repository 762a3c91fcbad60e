//! Tests of reading designs.

use super::*;
use serde_json::json;

fn scenario() -> Node {
    Node::from_json(&json!({
        "seed": 4, "rounds": 3, "world": {"kind": "guess", "fraction": 0.5},
        "cohorts": [{"name": "thinkers", "policy": {"kind": "level-k"}}],
    }))
}

fn read(design: serde_json::Value) -> Result<Design, TreeError> {
    Design::read(&Node::from_json(&design), &scenario())
}

#[test]
fn factors_are_crossed_and_arms_named() {
    let design = read(json!({
        "factors": {"world.fraction": [0.5, 0.7], "mean": {"path": "cohorts.thinkers.policy.mean", "values": [1, 2, 3]}},
        "seeds": 2,
    }))
    .unwrap();
    let names: Vec<&str> = design.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names[..2], ["world.fraction=0.5,mean=1", "world.fraction=0.5,mean=2"]);
    assert_eq!((names.len(), design.runs()), (6, 12));
    assert_eq!(design.arms[4].levels, [1, 1]);
    assert!(design.arms.iter().all(|arm| arm.seeds == [4, 5]));
    let tree = design.arms[5].applied(&scenario()).unwrap();
    assert_eq!(tree.find("cohorts.thinkers.policy.mean").unwrap().value, Value::Int(3));
    assert_eq!(tree.find("world.fraction").unwrap().value, Value::Float(0.7));
}

#[test]
fn named_arms_stand_alone_or_are_crossed() {
    let arms = json!({"control": null, "loud": {"world.announce": "all", "rounds": 5}});
    let alone = read(json!({"arms": arms, "seeds": [9, 3]})).unwrap();
    assert_eq!((alone.factors.len(), alone.arms[1].name.as_str(), alone.runs()), (0, "loud", 4));
    assert_eq!((&alone.arms[0].seeds, &alone.arms[1].levels), (&vec![9, 3], &Vec::new()));
    let crossed = read(json!({"arms": arms, "factors": {"world.fraction": [0.1, 0.2]}, "seeds": 1})).unwrap();
    assert_eq!(crossed.factors[0].name, NAMED);
    assert_eq!((crossed.arms[3].name.as_str(), &crossed.arms[3].levels), ("loud,world.fraction=0.2", &vec![1, 1]));
    assert_eq!(crossed.arms[3].set.len(), 3);
    let one = read(json!({"arms": {"only": {"rounds": 2}}, "factors": {"world.fraction": [0.1, 0.2]}, "seeds": 1}));
    assert_eq!(one.unwrap().arms[1].name, "only,world.fraction=0.2");
    let single = read(json!({"arms": {"only": {"rounds": 2}}, "seeds": 1})).unwrap();
    assert_eq!((single.arms[0].name.as_str(), single.arms[0].levels.len(), single.factors.len()), ("only", 0, 0));
    assert_eq!(read(json!({"seeds": 2})).unwrap().arms[0].name, "base");
}

#[test]
fn arms_without_common_random_numbers_share_no_seed() {
    let design = read(json!({"factors": {"rounds": [1, 2]}, "seeds": 3, "common_random_numbers": false})).unwrap();
    assert_eq!((&design.arms[0].seeds, &design.arms[1].seeds), (&vec![4, 5, 6], &vec![7, 8, 9]));
}

#[test]
fn a_design_survives_json() {
    let arms = json!({"b": {"world.fraction": 1.0, "cohorts": [1, {"x": null}]}, "a": {}});
    let design = read(json!({"arms": arms, "seeds": 2, "read": {"mean_of_last": 3}, "baseline": "a"})).unwrap();
    let text = serde_json::to_string(&design).unwrap();
    let again: Design = serde_json::from_str(&text).unwrap();
    assert_eq!((again, design.baseline), (design.clone(), 1));
}

#[test]
fn wrong_designs_say_what_is_wrong() {
    let cases = [
        (json!({"factors": {"rounds": [1]}}), "design: the key `seeds` is missing"),
        (json!({"seeds": 0}), "design.seeds: there must be at least one seed"),
        (json!({"seeds": []}), "design.seeds: there must be at least one seed"),
        (json!({"seeds": [1, 2, 1]}), "design.seeds[2]: the seed 1 is listed twice"),
        (json!({"seeds": "x"}), "design.seeds: expected a whole number, found text `x`"),
        (
            json!({"seeds": [1], "common_random_numbers": false}),
            "design.seeds: a list of seeds is the same in every arm",
        ),
        (json!({"seeds": 1, "factor": {}}), "design.factor: unknown key `factor`; did you mean `factors`?"),
        (json!({"seeds": 1, "factors": {}}), "design.factors: there are no factors"),
        (json!({"seeds": 1, "factors": [1]}), "design.factors: expected a map of factors, found a list of 1 entry"),
        (json!({"seeds": 1, "factors": {"rounds": []}}), "design.factors.rounds: a factor needs at least one value"),
        (
            json!({"seeds": 1, "factors": {"rounds": 3}}),
            "design.factors.rounds: expected a list of values, found the number 3",
        ),
        (
            json!({"seeds": 1, "factors": {"rounds": [3, 4, 3]}}),
            "design.factors.rounds[2]: the value 3 is listed twice",
        ),
        (
            json!({"seeds": 1, "factors": {"seed": [3]}}),
            "design.factors.seed: `seed` is already the name of a column in every sweep",
        ),
        (
            json!({"seeds": 1, "factors": {"s": {"path": "seed", "values": [3]}}}),
            "design.factors.s: `seed` is the same in all arms of a design",
        ),
        (
            json!({"seeds": 1, "factors": {"s": {"path": "rounds", "valuse": [3]}}}),
            "design.factors.s.valuse: unknown key `valuse`; did you mean `values`?",
        ),
        (
            json!({"seeds": 1, "factors": {"rounds": [1], "r": {"path": "rounds", "values": [3]}}}),
            "design.factors.r: the factor `rounds` already sets `rounds`, or a part of it",
        ),
        (json!({"seeds": 1, "factors": {"a..b": [3]}}), "design.factors.\"a..b\": a step of the path is empty"),
        (json!({"seeds": 1, "arms": {}}), "design.arms: there are no arms"),
        (
            json!({"seeds": 1, "arms": {"a": 3}}),
            "design.arms.a: expected a map of paths and values, found the number 3",
        ),
        (
            json!({"seeds": 1, "arms": {"a": {"rounds": 3}}, "factors": {"rounds": [1, 2]}}),
            "design.arms.a: the factor `rounds` sets `rounds`, or a part of it, in every arm",
        ),
        (
            json!({"seeds": 1, "arms": {"a": {}, "b": {"rounds": 3}}}),
            "design: the arms `a` and `b` are the same scenario",
        ),
        (
            json!({"seeds": 1, "arms": {"a": {}, "b": {"rounds": 4}}, "baseline": "bb"}),
            "design.baseline: there is no arm `bb`; did you mean `b`?",
        ),
        (json!({"seeds": 1, "read": {"mean_of_last": 0}}), "design.read: a mean needs at least one round"),
        (json!({"seeds": 1, "read": "first"}), "design.read: unknown choice `first`"),
        (json!({"seeds": 1, "metrics": []}), "design.metrics: the list of metrics is empty"),
        (
            json!({"seeds": 1_000_000, "factors": {"rounds": [1, 2]}}),
            "design: this design has 2 arms and 2000000 runs; at most 10000 arms and 1000000 runs are allowed",
        ),
        (json!({"seeds": 1, "arms": {"a": {"cohorts.x.count": 1}}}), "cohorts: no entry of this list is named `x`"),
    ];
    for (design, message) in cases {
        assert_eq!(read(design.clone()).unwrap_err().to_string(), message, "{design}");
    }
}

#[test]
fn metrics_are_read_where_the_design_says() {
    let values = [(0, 1.0), (2, 3.0), (4, 8.0)];
    assert_eq!(Reading::Last.of(&values, 6), Some(8.0));
    assert_eq!(Reading::Round(2).of(&values, 6), Some(3.0));
    assert_eq!(Reading::Round(3).of(&values, 6), None);
    assert_eq!(Reading::MeanOfLast(4).of(&values, 6), Some(5.5));
    assert_eq!(Reading::MeanOfLast(1).of(&values, 6), None);
    assert_eq!(Reading::Last.of(&[], 6), None);
    assert_eq!(Reading::Last.of(&[(0, f64::NAN)], 1), None);
    let design = read(json!({"seeds": 1, "metrics": ["guess.quantiles", "target"]})).unwrap();
    assert!(design.reads("guess.quantiles.q0.1") && design.reads("target"));
    assert!(!design.reads("guess.mean") && !design.reads("targets") && !design.reads("guess.quantilesx"));
}

fn expecting(expect: serde_json::Value) -> Result<Design, TreeError> {
    let scenario = json!({"seed": 4, "rounds": 3, "world": {"kind": "guess", "fraction": 0.5}});
    let design = json!({
        "arms": {"control": {}, "low": {"world.fraction": 0.2}}, "seeds": 6, "metrics": ["guess"], "expect": expect,
    });
    Design::read(&Node::from_json(&design), &Node::from_json(&scenario))
}

#[test]
fn an_interval_meets_bounds_contradicts_them_or_leaves_it_open() {
    let expect = json!([
        {"arm": "low", "minus": "control", "metric": "guess.mean", "below": 0},
        {"arm": "control", "metric": "guess.mean", "at_least": 1, "at_most": 2},
    ]);
    let design = expecting(expect).unwrap();
    let [lower, within] = design.expect.as_slice() else { panic!("{:?}", design.expect) };
    assert_eq!(lower.words(), "guess.mean, low minus control: below 0");
    assert_eq!(within.words(), "guess.mean, control: at least 1 and at most 2");
    let decided = [(-2.0, -1.0), (-1.0, 1.0), (0.0, 0.0), (1.0, 2.0)].map(|(low, high)| lower.decided(low, high));
    assert_eq!(decided, [Some(true), None, Some(false), Some(false)]);
    let decided = [(1.0, 2.0), (0.5, 1.5), (2.5, 3.0), (1.0, 1.0)].map(|(low, high)| within.decided(low, high));
    assert_eq!(decided, [Some(true), None, Some(false), Some(true)]);
    let text = serde_json::to_string(&design).unwrap();
    assert_eq!(serde_json::from_str::<Design>(&text).unwrap(), design);
    let without = serde_json::to_string(&expecting(json!([])).unwrap()).unwrap();
    assert!(!without.contains("expect"), "a design without expectations is written as before: {without}");
}

#[test]
fn wrong_expectations_say_what_is_wrong() {
    let metric = "guess.mean";
    for (expect, message) in [
        (
            json!([{"arm": "lo", "metric": metric, "below": 0}]),
            "design.expect[0].arm: there is no arm `lo`; did you mean `low`?",
        ),
        (
            json!([{"arm": "control", "minus": "low", "metric": metric, "below": 0}]),
            "design.expect[0].minus: differences are taken from the baseline, `control`, but this names `low`",
        ),
        (
            json!([{"arm": "control", "minus": "control", "metric": metric, "below": 0}]),
            "design.expect[0].minus: an arm does not differ from itself",
        ),
        (
            json!([{"arm": "low", "metric": "target", "below": 0}]),
            "design.expect[0].metric: the design does not read `target`",
        ),
        (json!([{"arm": "low", "metric": metric}]), "design.expect[0]: an expectation needs a bound"),
        (
            json!([{"arm": "low", "metric": metric, "above": 2, "below": 1}]),
            "design.expect[0]: nothing lies above 2 and below 1",
        ),
        (json!([{"arm": "low", "metric": metric, "over": 2}]), "design.expect[0].over: unknown key `over`"),
    ] {
        assert!(expecting(expect.clone()).unwrap_err().to_string().starts_with(message), "{expect}");
    }
}

#[test]
fn ranges_are_sampled_and_lists_are_crossed() {
    let design = read(json!({
        "factors": {
            "fraction": {"path": "world.fraction", "range": [0.1, 0.9]},
            "rounds": [3, 4],
            "mean": {"path": "cohorts.thinkers.policy.mean", "range": [1, 100], "scale": "log", "whole": true},
        },
        "sample": {"latin-hypercube": 20}, "seeds": 2,
    }))
    .unwrap();
    assert_eq!((design.arms.len(), design.runs()), (40, 80));
    let names = [0, 19, 20].map(|at: usize| design.arms[at].name.as_str());
    assert_eq!(names, ["rounds=3,point-01", "rounds=3,point-20", "rounds=4,point-01"]);
    assert_eq!(design.arms[25].levels, [5, 1, 5]);
    // Each twentieth of the linear range has one point, and half of the whole numbers lie below the middle of the log scale.
    let value = |arm: &Arm, path: &str| arm.applied(&scenario()).unwrap().find(path).unwrap().clone();
    let mut parts = BTreeSet::new();
    let mut low = 0;
    for (at, arm) in design.arms[..20].iter().enumerate() {
        let Value::Float(fraction) = value(arm, "world.fraction").value else { panic!("{arm:?}") };
        assert_eq!(design.factors[0].levels[at], fraction.to_string());
        parts.insert(((fraction - 0.1) / 0.8 * 20.0) as u32);
        let Value::Int(mean) = value(arm, "cohorts.thinkers.policy.mean").value else { panic!("{arm:?}") };
        assert!((1..=100).contains(&mean));
        low += u32::from(mean <= 10);
        assert_eq!(value(arm, "rounds").value, Value::Int(3));
        // The same points with the other level.
        assert_eq!(value(&design.arms[at + 20], "world.fraction").value, Value::Float(fraction));
    }
    assert_eq!((parts.len(), (9..=11).contains(&low)), (20, true), "{low}");
    let text = serde_json::to_string(&design).unwrap();
    assert_eq!(serde_json::from_str::<Design>(&text).unwrap(), design);
}

#[test]
fn the_seed_decides_the_points() {
    let at = |seed: u64, sample: serde_json::Value| {
        let mut tree = scenario();
        tree.edit("seed", Node::from_json(&json!(seed))).unwrap();
        let factors = json!({"world.fraction": {"path": "world.fraction", "range": [0, 1]}});
        let design = json!({"factors": factors, "sample": sample, "seeds": 1});
        Design::read(&Node::from_json(&design), &tree).unwrap().factors[0].levels.clone()
    };
    for sample in [json!({"random": 8}), json!({"latin-hypercube": 8}), json!({"sobol": 8}), json!({"saltelli": 8})] {
        assert_eq!(at(4, sample.clone()), at(4, sample.clone()));
        assert_ne!(at(4, sample.clone()), at(5, sample.clone()));
    }
    // Two samples, and the first with its one factor from the second.
    let levels = at(4, json!({"saltelli": 8}));
    assert_eq!((levels.len(), &levels[8..16]), (24, &levels[16..]));
}

#[test]
fn whole_numbers_of_a_range_are_equally_likely() {
    let range = Range { low: 1.0, high: 4.0, scale: Scale::Linear, whole: true };
    let mut counts = [0; 5];
    for i in 0..1000 {
        let Value::Int(n) = range.at((f64::from(i) + 0.5) / 1000.0) else { panic!() };
        counts[n as usize] += 1;
    }
    assert_eq!((counts, range.at(1.0)), ([0, 250, 250, 250, 250], Value::Int(4)));
}

#[test]
fn a_fraction_runs_the_arms_of_its_relation() {
    let two = json!([0, 1]);
    let factors: serde_json::Map<String, serde_json::Value> = ["a", "b", "c", "d"]
        .map(|name| (name.to_owned(), json!({"path": format!("world.{name}"), "values": two})))
        .into_iter()
        .collect();
    let design = read(json!({"factors": factors, "fraction": "1/2", "seeds": 1})).unwrap();
    let levels: Vec<&[usize]> = design.arms.iter().map(|arm| arm.levels.as_slice()).collect();
    // d = a:b:c, with levels as signs.
    let signs = |arm: &[usize]| arm.iter().map(|level| 2 * *level as i32 - 1).collect::<Vec<_>>();
    assert_eq!(levels.len(), 8);
    assert!(levels.iter().map(|arm| signs(arm)).all(|s| s[3] == s[0] * s[1] * s[2]));
    assert_eq!(design.arms[1].name, "a=0,b=0,c=1,d=1");
    assert_eq!(design.fraction.as_ref().unwrap().resolution, 4);
    // Named arms are combined with all arms of the fraction.
    let with = json!({"factors": factors, "fraction": "1/2", "seeds": 1, "arms": {"x": {}, "y": {"rounds": 9}}});
    assert_eq!(read(with).unwrap().arms[9].levels, [1, 0, 0, 1, 1]);
}

#[test]
fn levels_may_have_names() {
    let values = json!({"none": 0, "half": 0.5});
    let design = read(json!({"factors": {"f": {"path": "world.fraction", "values": values}}, "seeds": 1})).unwrap();
    assert_eq!(design.factors[0].levels, ["none", "half"]);
    assert_eq!(design.arms[1].name, "f=half");
    assert_eq!(design.arms[1].set[0].1.value, Value::Float(0.5));
}

#[test]
fn seeds_come_in_batches_until_intervals_are_narrow() {
    let until = json!({"metric": "guess.mean", "halfwidth": 0.5, "max": 12});
    let design = read(json!({"arms": {"a": {}, "b": {"rounds": 9}}, "seeds": {"until": until}})).unwrap();
    let rule = design.until.clone().unwrap();
    assert_eq!((design.arms[1].seeds.len(), rule.batch, rule.of), (12, 5, Intervals::Arms));
    assert!(rule.narrow([Some((1.0, 2.0)), Some((0.0, 0.1))]));
    assert!(!rule.narrow([Some((1.0, 2.1))]) && !rule.narrow([Some((1.0, 1.5)), None]));
}

#[test]
fn wrong_samples_and_rules_say_what_is_wrong() {
    let ranged = json!({"f": {"path": "world.fraction", "range": [0.1, 0.9]}});
    let until = |rule: serde_json::Value| json!({"seeds": {"until": rule}});
    let factor = |factor: serde_json::Value| json!({"factors": {"f": factor}, "sample": {"random": 4}, "seeds": 1});
    for (design, message) in [
        (
            json!({"factors": ranged, "seeds": 1}),
            "design.factors: the factor `f` has a range, but the design draws no sample",
        ),
        (
            json!({"factors": {"rounds": [1, 2]}, "sample": {"random": 4}, "seeds": 1}),
            "design.sample: no factor has a range to draw from",
        ),
        (
            json!({"factors": ranged, "sample": {"sobol": 40}, "seeds": 1}),
            "design.sample: a Sobol sequence needs a power of two as its number of points, and 40 is none",
        ),
        (
            json!({"factors": ranged, "sample": {"random": 1}, "seeds": 1}),
            "design.sample: a sample needs at least two points",
        ),
        (
            factor(json!({"path": "world.fraction", "range": [0.9, 0.1]})),
            "design.factors.f.range: the range ends at 0.1, which is not above its beginning 0.9",
        ),
        (
            factor(json!({"path": "world.fraction", "range": [0, 1], "scale": "log"})),
            "design.factors.f.range: a range on a log scale begins above 0, but this begins at 0",
        ),
        (
            factor(json!({"path": "world.fraction", "range": [0.5, 1], "whole": true})),
            "design.factors.f.range: the ends 0.5 and 1 are not whole numbers",
        ),
        (
            factor(json!({"path": "world.fraction", "range": [0, 1], "values": [1]})),
            "design.factors.f: a factor has either `values` or a `range`, not both",
        ),
        (factor(json!({"path": "world.fraction"})), "design.factors.f: a factor needs `values` or a `range`"),
        (
            factor(json!({"path": "world.fraction", "values": [1, 2], "scale": "log"})),
            "design.factors.f.scale: `scale` is for ranges, but this lists values",
        ),
        (
            json!({"factors": {"rounds": [1, 2, 3], "a": [1, 2], "b": [1, 2]}, "fraction": "1/2", "seeds": 1}),
            "design.fraction: a fraction is of factors with two levels, but the factor `rounds` has 3",
        ),
        (
            until(json!({"metric": "x", "halfwidth": 0, "max": 9})),
            "design.seeds.until.halfwidth: the half-width must be above 0, but this is 0",
        ),
        (
            until(json!({"metric": "x", "halfwidth": 1, "max": 9, "batch": 1})),
            "design.seeds.until.batch: a batch has 2 seeds or more, but this has 1",
        ),
        (
            until(json!({"metric": "x", "halfwidth": 1, "max": 4})),
            "design.seeds.until.max: the maximum 4 is below the 5 seeds of a batch",
        ),
        (
            until(json!({"metric": "x", "halfwidth": 1, "max": 9, "of": "differences"})),
            "design.seeds.until.of: no arm is compared with the baseline: there is only one, or a factor has a range",
        ),
        (
            json!({"metrics": ["y"], "seeds": {"until": {"metric": "x", "halfwidth": 1, "max": 9}}}),
            "design.seeds.until.metric: the design does not read `x`",
        ),
    ] {
        assert_eq!(read(design.clone()).unwrap_err().to_string(), message, "{design}");
    }
}

fn searching(search: serde_json::Value, common: bool) -> Result<Design, TreeError> {
    let factors = json!({
        "fraction": {"path": "world.fraction", "range": [0.1, 0.9]},
        "rounds": {"path": "rounds", "range": [1, 8], "whole": true},
    });
    read(json!({"factors": factors, "search": search, "seeds": 2, "common_random_numbers": common}))
}

#[test]
fn a_search_begins_with_one_point_and_others_are_added() {
    let target = json!({"metric": "guess.mean", "value": 20});
    let mut design = searching(json!({"toward": target, "by": "nelder-mead", "evaluations": 50}), true).unwrap();
    assert_eq!((design.arms.len(), design.arms[0].name.as_str()), (1, "point-01"));
    assert_eq!(design.arms[0].set[0].1.value, Value::Float(0.5));
    design.add_points(&[vec![0.0, 1.0], vec![1.0, 0.0]]);
    assert_eq!(design.arms[2].name, "point-03");
    assert_eq!((&design.arms[2].levels, &design.arms[2].seeds), (&vec![2, 2], &vec![4, 5]));
    assert_eq!((design.factors[0].levels[2].as_str(), design.factors[1].levels[1].as_str()), ("0.9", "8"));
    let search = json!({"toward": [target], "by": "abc", "evaluations": 50, "keep": 0.2});
    let mut own = searching(search, false).unwrap();
    own.add_points(&[vec![0.5, 0.5]]);
    assert_eq!((&own.arms[0].seeds, &own.arms[1].seeds), (&vec![4, 5], &vec![6, 7]));
    let text = serde_json::to_string(&own).unwrap();
    assert_eq!(serde_json::from_str::<Design>(&text).unwrap(), own);
}

#[test]
fn a_loss_is_the_distance_from_all_targets() {
    let toward = json!([{"metric": "a", "value": 3}, {"metric": "b", "value": 1, "scale": 0.5}]);
    let search = searching(json!({"toward": toward, "by": "cma-es", "evaluations": 9}), true).unwrap().search.unwrap();
    let loss = search.loss(|metric| Some(if metric == "a" { 6.0 } else { 3.0 }));
    assert_eq!((loss, search.loss(|metric| (metric == "a").then_some(3.0))), (Some(5.0), None));
    let least = json!({"toward": {"metric": "a"}, "by": "random", "evaluations": 9});
    assert_eq!(searching(least, true).unwrap().search.unwrap().loss(|_| Some(-2.0)), Some(-2.0));
}

#[test]
fn wrong_searches_say_what_is_wrong() {
    let target = json!({"metric": "a", "value": 3});
    for (search, message) in [
        (json!({"toward": [], "by": "random", "evaluations": 9}), "design.search.toward: a search needs a target"),
        (
            json!({"toward": [target, {"metric": "b"}], "by": "random", "evaluations": 9}),
            "design.search.toward[1]: the target `b` needs a value",
        ),
        (
            json!({"toward": target, "by": "random", "evaluations": 1}),
            "design.search.evaluations: a search has 2 to 10000 evaluations, but this has 1",
        ),
        (
            json!({"toward": target, "by": "random", "evaluations": 9, "keep": 0.1}),
            "design.search.keep: `keep` is for `by: abc`",
        ),
        (
            json!({"toward": target, "by": "abc-smc", "evaluations": 9}),
            "design.search.population: a population has 10 points or more, but this has 9",
        ),
        (
            json!({"toward": target, "by": "abc", "evaluations": 9}),
            "design.search.by: a posterior distribution needs points with seeds of their own, so that it holds the noise of runs",
        ),
        (
            json!({"toward": target, "by": "annealing", "evaluations": 9}),
            "design.search.by: unknown choice `annealing`",
        ),
    ] {
        assert!(searching(search.clone(), true).unwrap_err().to_string().starts_with(message), "{search}");
    }
    let search = json!({"toward": target, "by": "random", "evaluations": 9});
    let range = json!({"path": "world.fraction", "range": [0.1, 0.9]});
    for (design, message) in [
        (
            json!({"factors": {"f": range}, "search": search, "sample": {"random": 4}, "seeds": 1}),
            "a search chooses its points itself; remove `sample` and `fraction`",
        ),
        (
            json!({"factors": {"f": range, "rounds": [1, 2]}, "search": search, "seeds": 1}),
            "a search is over ranges alone; remove the arms and the factors that list values",
        ),
        (json!({"search": search, "seeds": 1}), "no factor has a range to search"),
        (
            json!({"factors": {"loss": range}, "search": search, "seeds": 1}),
            "`loss` is already the name of a column in the table of a search",
        ),
        (
            json!({"factors": {"f": range}, "search": search, "seeds": 1, "metrics": ["b"]}),
            "the design does not read `a`",
        ),
    ] {
        assert!(read(design.clone()).unwrap_err().to_string().contains(message), "{design}");
    }
}
