use super::influence::{Heard, Opinion};
use super::*;
use polity_kernel::rng::{Draws, Stream};

fn answered(item: u32, difficulty: f64, right: bool, answer: &str) -> Answered {
    Answered { item, difficulty, others: OPEN, right, answer: answer.into() }
}

fn one(answers: Vec<Answered>) -> Option<Fit> {
    fit(&[answers])[0]
}

#[test]
fn one_difficulty_gives_the_log_odds() {
    let fit = one((0..40).map(|i| answered(i, 1.0, i < 30, "x")).collect()).unwrap();
    // logit(3/4), with the standard error 1 / sqrt(n p (1 - p)).
    assert!((fit.skill.0 - f64::ln(3.0)).abs() < 1e-9 && (fit.skill.1 - 1.0 / f64::sqrt(7.5)).abs() < 1e-9);
    assert_eq!((fit.difficulty_response, fit.correlation, fit.lure), (None, None, None));
}

#[test]
fn two_difficulties_give_a_line_through_both_log_odds() {
    let share = |d: f64, right: u32| (0..100).map(move |i| answered(i, d, i < right, "x"));
    let fit = one(share(0.0, 80).chain(share(2.0, 50)).collect()).unwrap();
    assert!((fit.skill.0 - f64::ln(4.0)).abs() < 1e-9);
    assert!((fit.difficulty_response.unwrap().0 - f64::ln(4.0) / 2.0).abs() < 1e-9);
}

#[test]
fn all_right_and_nothing_have_no_fit() {
    assert_eq!(one(Vec::new()), None);
    assert_eq!(one(vec![answered(0, 0.0, true, "1"), answered(1, 1.0, true, "1")]), None);
}

#[test]
fn both_right_as_sheppard_has_it() {
    for c in [0.0, 0.3, 0.8] {
        let exact = 0.25 + f64::asin(c) / std::f64::consts::TAU;
        assert!((both_right(0.5, 0.5, c) - exact).abs() < 1e-6, "{c}");
    }
    assert!((both_right(0.7, 0.7, 0.0) - 0.49).abs() < 1e-9);
    assert!((both_right(0.7, 0.2, 0.0) - 0.14).abs() < 1e-9);
}

/// Answers of models with the given correlation, lure and chance of a right answer to items with six options.
fn drawn(models: &[(f64, f64, f64)], items: u32) -> Vec<Vec<Answered>> {
    let answer = |m: usize, item: u32| {
        let (c, lure, p) = models[m];
        let shared = Draws::new(7, Stream::Model, 0, item).normal();
        let mut own = Draws::new(7, Stream::Model, m as u32 + 1, item);
        let luck = c.sqrt() * shared + (1.0 - c).sqrt() * own.normal();
        let (tempted, other) = (own.chance(lure), own.below(4));
        let right = luck < normal_quantile(p);
        let answer = if tempted { "tempting".into() } else { other.to_string() };
        Answered { item, difficulty: 0.0, others: 4, right, answer }
    };
    (0..models.len()).map(|m| (0..items).map(|item| answer(m, item)).collect()).collect()
}

#[test]
fn pairs_of_models_give_correlation_and_lure_of_each() {
    let declared = [(0.8, 0.4, 0.6), (0.5, 0.6, 0.7), (0.2, 0.5, 0.4), (0.6, 0.3, 0.5)];
    let models = drawn(&declared, 20_000);
    let fits = fit(&models);
    for (fit, (c, lure, p)) in fits.iter().zip(declared) {
        let fit = fit.unwrap();
        assert!((fit.correlation.unwrap() - c).abs() < 0.05, "{fit:?}, declared {c}");
        assert!((fit.lure.unwrap() - lure).abs() < 0.06, "{fit:?}, declared {lure}");
        assert!((fit.accuracy - p).abs() < 0.02, "{fit:?}");
    }
    // The model is the one that made the answers, so its figures fit: within four standard errors, and those of the simulation.
    let of_fit = misfits(&models, &fits);
    assert_eq!(of_fit.len(), 4);
    for figure in of_fit {
        assert!((figure.observed - figure.implied).abs() < 5.7 * figure.error, "{figure:?}");
    }
}

#[test]
fn a_wrong_model_shows_as_misfit() {
    // Two halves that share no luck: one factor cannot fit them.
    let half = drawn(&[(0.9, 0.0, 0.5); 2], 4_000);
    let other = half.iter().map(|answers| {
        answers.iter().map(|a| Answered { item: (a.item + 2_000) % 4_000, ..a.clone() }).collect::<Vec<_>>()
    });
    let models: Vec<Vec<Answered>> = half.iter().cloned().chain(other).collect();
    let fits = fit(&models);
    let none = misfits(&models, &fits).into_iter().find(|figure| figure.figure.starts_with("no answer")).unwrap();
    assert!((none.observed - none.implied).abs() > 4.0 * none.error, "{none:?}");
}

#[test]
fn a_lone_model_without_repeats_has_no_figures_of_a_team() {
    let alone = vec![(0..40).map(|i| answered(i, 1.0, i < 30, "x")).collect::<Vec<_>>()];
    assert_eq!(misfits(&alone, &fit(&alone)), Vec::new());
}

#[test]
fn influence_is_found_again() {
    let (persuadability, discernment, conformity) = (0.3, 0.6, 0.4);
    // The log-odds of a right answer are minus the difficulty.
    let alone = Fit {
        answers: 1,
        accuracy: 0.5,
        skill: (0.0, 0.0),
        difficulty_response: Some((1.0, 0.0)),
        correlation: None,
        lure: None,
    };
    let turn = |i: u32| {
        let mut draws = Draws::new(3, Stream::Model, 0, i);
        let mastery = 0.2 + 0.7 * draws.unit();
        // The right answer is 0.
        let others: Vec<Opinion> =
            (0..3).map(|_| Opinion { answer: draws.below(3) as u32, argued: draws.chance(0.5) }).collect();
        let before = draws.below(3) as u32;
        let mut after = before;
        let convinced = others.iter().filter(|said| said.argued && said.answer != before).find(|said| {
            let doubt = if said.answer == 0 { 0.0 } else { discernment * mastery };
            draws.chance(persuadability * (1.0 - doubt))
        });
        if let Some(said) = convinced {
            after = said.answer;
        } else if let Some(most) = (0..3).find(|a| others.iter().filter(|said| said.answer == *a).count() > 1) {
            let share = others.iter().filter(|said| said.answer == most).count() as f64 / 3.0;
            if most != before && draws.chance(conformity * share) {
                after = most;
            }
        }
        Heard { before, others, after, right: Some(0), difficulty: -f64::ln(mastery / (1.0 - mastery)) }
    };
    let turns: Vec<Heard> = (0..20_000).map(turn).collect();
    let found = influence::fit(&turns, Some(&alone)).unwrap();
    let close = |x: f64, declared: f64, within: f64| assert!((x - declared).abs() < within, "{found:?}");
    close(found.persuadability, persuadability, 0.03);
    close(found.discernment, discernment, 0.1);
    close(found.conformity, conformity, 0.04);
    assert_eq!(found.unheard, 0.0);
    for (observed, implied) in [found.corrected, found.misled] {
        assert!((observed - implied).abs() < 0.01, "{found:?}");
    }
    // In half of the turns the model changes to an answer that nobody gave.
    let jumps: Vec<Heard> = turns
        .iter()
        .enumerate()
        .map(|(i, t)| Heard { after: if i % 2 == 0 { 9 } else { t.after }, ..t.clone() })
        .collect();
    assert!((influence::fit(&jumps, Some(&alone)).unwrap().unheard - 0.5).abs() < 0.02);
    assert_eq!(influence::fit(&[], None), None);
}

#[test]
fn a_judge_has_distance_and_bias() {
    let choices = |first_better: bool, named: usize, of: usize| {
        (0..of).map(move |i| judging::Choice { first_better, first_named: i < named })
    };
    // 80 % right when the better is first, 60 % when it is second.
    let all: Vec<judging::Choice> = choices(true, 8_000, 10_000).chain(choices(false, 4_000, 10_000)).collect();
    let found = judging::fit(&all).unwrap();
    let (z80, z60) = (normal_quantile(0.8), normal_quantile(0.6));
    assert!((found.sensitivity.0 - (z80 + z60) / f64::sqrt(2.0)).abs() < 1e-3, "{found:?}");
    assert!((found.first_bias.0 - (z80 - z60) / f64::sqrt(2.0)).abs() < 1e-3, "{found:?}");
    // Worse than chance.
    let worse: Vec<judging::Choice> = choices(true, 30, 100).chain(choices(false, 70, 100)).collect();
    assert!(judging::fit(&worse).unwrap().sensitivity.0 < -0.5);
    assert_eq!(judging::fit(&worse[..100]), None);
}
