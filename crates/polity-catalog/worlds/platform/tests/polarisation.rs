//! Measures of polarisation against a plain recount.

use super::*;

/// Newman's modularity by its definition: over all pairs of the same camp, the tie minus its expected value.
fn modularity(follows: &[Vec<u32>], camps: &[i32]) -> f64 {
    let ties = follows.iter().map(Vec::len).sum::<usize>() as f64;
    let followers = |of: usize| follows.iter().filter(|all| all.contains(&(of as u32))).count() as f64;
    let followers: Vec<f64> = (0..follows.len()).map(followers).collect();
    let mut sum = 0.0;
    for (i, own) in follows.iter().enumerate() {
        for j in (0..follows.len()).filter(|j| camps[i] == camps[*j]) {
            sum += f64::from(u8::from(own.contains(&(j as u32)))) - own.len() as f64 * followers[j] / ties;
        }
    }
    sum / ties
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let (x, y) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
    let (xx, yy) = (mean(&|pair| pair.0 * pair.0) - x * x, mean(&|pair| pair.1 * pair.1) - y * y);
    (mean(&|pair| pair.0 * pair.1) - x * y) / (xx.sqrt() * yy.sqrt())
}

fn camp(stance: f64) -> i32 {
    if stance == 0.0 { 0 } else { stance.signum() as i32 }
}

#[test]
fn measures_of_polarisation_agree_with_a_plain_recount() {
    for shards in [1, 3] {
        let measures = json!(["exposure", "modularity", "echo-chambers"]);
        let mut scenario = scenario(200, 8, json!({"hours": vec![0.4; 24], "polarisation": measures}));
        scenario["cohorts"] = json!([{"policy": {"kind": "witness", "restless": true}}]);
        let mut society = witnessed(&scenario, shards);
        let graph = &society.shared_context().topology;
        let mut follows: Vec<Vec<u32>> = (0..200).map(|who| graph.neighbours(who).collect()).collect();
        let (mut stances, mut posts) = (society.column(0), Vec::new());
        let mut found = Vec::new();
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            let acts: Vec<_> = society.acts().flat_map(|block| block.rows.clone()).collect();
            let (mut own, mut all) = (0, 0);
            for act in &acts {
                let whom = act.value as u32;
                let follows = &mut follows[act.who as usize];
                match act.kind {
                    SHOWN => {
                        let sides = camp(stances[act.who as usize]) * camp(posts[act.value as usize]);
                        all += sides.abs();
                        own += i32::from(sides == 1);
                    }
                    FOLLOW if whom != act.who && !follows.contains(&whom) => follows.push(whom),
                    UNFOLLOW => follows.retain(|followed| *followed != whom),
                    _ => {}
                }
            }
            let Some(Cells::Number(new)) = society.rows(0).into_iter().nth(8) else { panic!("no stances") };
            posts.extend(new);
            stances = society.column(0);
            let camps: Vec<i32> = stances.iter().map(|stance| camp(*stance)).collect();
            let mean = |of: &Vec<u32>| of.iter().map(|who| stances[*who as usize]).sum::<f64>() / of.len() as f64;
            let followers = follows.iter().zip(&stances).filter(|(of, _)| !of.is_empty());
            let pairs: Vec<(f64, f64)> = followers.map(|(of, stance)| (*stance, mean(of))).collect();
            let expected = [f64::from(own) / f64::from(all.max(1)), modularity(&follows, &camps), correlation(&pairs)];
            let got = ["exposure", "modularity", "echo-chambers"].map(|name| metric(&report, name));
            for (got, expected) in got.iter().zip(expected) {
                assert!((got - expected).abs() < 1e-9, "round {}: {got} is not {expected}", report.round);
            }
            found.push((got, all));
        }
        assert!(found.iter().skip(1).all(|(_, all)| *all > 200), "{found:?}");
        let ties: usize = follows.iter().map(Vec::len).sum();
        assert_ne!(ties as u64, society.shared_context().topology.arcs(), "ties have changed");
        assert!(found.iter().all(|([exposure, ..], all)| *all == 0 || *exposure > 0.2 && *exposure < 0.8), "{found:?}");
    }
}

#[test]
fn measures_that_nobody_asks_for_are_not_there_and_change_nothing() {
    let chain = |measures: Value| {
        let world = json!({"hours": vec![0.4; 24], "polarisation": measures});
        let mut society = open(&by_rules(200, 5, world, json!({})), &Inputs::default(), 1).unwrap();
        let mut names = Vec::new();
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            names = report.metrics.iter().map(|(name, _)| name.clone()).collect();
        }
        (names, society.column(0), society.column(3))
    };
    let (without, with) = (chain(json!([])), chain(json!(["modularity", "echo-chambers", "exposure"])));
    assert_eq!((&without.1, &without.2), (&with.1, &with.2));
    assert!(!without.0.iter().any(|name| name == "modularity"));
    assert_eq!(with.0[without.0.len()..], ["modularity", "echo-chambers", "exposure"]);
    // Two groups that follow only their own members: maximum distance for two camps of equal size.
    let table = testing::people("side", (0..100).map(|who| if who < 50 { -0.5 } else { 0.5 }).collect());
    let ties: Vec<(u32, u32)> = (0..100u32).map(|who| (who, who / 50 * 50 + (who + 1) % 50)).collect();
    let inputs = Inputs { edges: testing::ties(&ties).edges, ..table };
    let mut apart = by_rules(
        100,
        2,
        json!({"stance": "side", "polarisation": ["modularity", "echo-chambers"]}),
        json!({"pull": 0}),
    );
    apart["population"] = json!({"file": "people"});
    apart["topology"] = json!({"kind": "file", "file": "ties", "directed": true});
    let mut society = open(&apart, &inputs, 1).unwrap_or_else(|error| panic!("{error}"));
    let Then::Round(report) = society.poll(Vec::new()).unwrap().then else { panic!("no round") };
    assert!(
        (metric(&report, "modularity") - 0.5).abs() < 1e-12 && (metric(&report, "echo-chambers") - 1.0).abs() < 1e-12
    );
}
