use super::whole::whole;
use super::*;
use crate::population::{Column, TextBuilder};
use crate::rng::{Draws, Stream};
use proptest::prelude::*;

fn draws(seed: u64) -> Draws {
    Draws::new(seed, Stream::Population, 1, 0)
}

fn marginal(column: &str, shares: &[(&str, f64)]) -> Marginal {
    Marginal { column: column.into(), shares: shares.iter().map(|(l, s)| ((*l).to_owned(), *s)).collect() }
}

/// A 2x2 table with these counts as weights.
fn two_by_two(counts: [f64; 4]) -> (Table, Vec<f64>) {
    let mut sex = TextBuilder::default();
    ["f", "f", "m", "m"].iter().for_each(|w| sex.push(w));
    let party = Column::Number(vec![0.0, 1.0, 0.0, 1.0]);
    (Table::new(vec![("sex".into(), sex.finish()), ("party".into(), party)]).unwrap(), counts.to_vec())
}

fn odds(w: &[f64]) -> f64 {
    w[0] * w[3] / (w[1] * w[2])
}

#[test]
fn the_odds_ratio_of_a_two_by_two_table_is_kept() {
    let (table, counts) = two_by_two([30.0, 10.0, 20.0, 40.0]);
    let marginals = [marginal("sex", &[("f", 0.52), ("m", 0.48)]), marginal("party", &[("0", 0.3), ("1", 0.7)])];
    let w = weights(&table, Some(&counts), &marginals).unwrap().weights;
    assert!((odds(&w) - 6.0).abs() < 1e-6, "{}", odds(&w));
    assert!((w[0] + w[1] - 0.52).abs() < 1e-9 && (w[0] + w[2] - 0.3).abs() < 1e-9);
    // In closed form: x solves x (0.18 + x) = 6 (0.52 - x) (0.3 - x).
    let (a, b, c) = (5.0f64, -6.0 * 0.82 - 0.18, 6.0 * 0.52 * 0.3);
    let x = (-b - (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
    assert!((w[0] - x).abs() < 1e-8, "{} {x}", w[0]);
}

/// A seed table of 4 by 4 cells with counts; the fitted cells come from another program (Python, 500 sweeps).
#[test]
fn a_seed_table_is_fitted_to_its_margins() {
    let counts = [40, 30, 20, 10, 35, 50, 100, 75, 30, 80, 70, 120, 20, 30, 40, 50].map(f64::from);
    let column = |of: fn(u32) -> u32| Column::Number((0..16).map(|cell| f64::from(of(cell))).collect());
    let columns = vec![("row".into(), column(|cell| cell / 4)), ("column".into(), column(|cell| cell % 4))];
    let table = Table::new(columns).unwrap();
    let marginals = [
        marginal("row", &[("0", 0.15), ("1", 0.3), ("2", 0.4), ("3", 0.15)]),
        marginal("column", &[("0", 0.2), ("1", 0.3), ("2", 0.4), ("3", 0.1)]),
    ];
    let expected = [
        64.56, 46.23, 35.38, 3.82, 49.97, 68.16, 156.50, 25.37, 56.72, 144.43, 145.08, 53.77, 28.75, 41.18, 63.03,
        17.03,
    ];
    let fitted = weights(&table, Some(&counts), &marginals).unwrap().weights;
    for (found, expected) in fitted.iter().zip(expected) {
        assert!((found * 1000.0 - expected).abs() < 0.006, "{found} {expected}");
    }
}

#[test]
fn even_weights_give_the_product_of_the_marginals() {
    let (table, _) = two_by_two([0.0; 4]);
    let marginals = [marginal("sex", &[("m", 0.4), ("f", 0.6)]), marginal("party", &[("1", 0.9), ("0", 0.1)])];
    let w = weights(&table, None, &marginals).unwrap().weights;
    for (found, expected) in w.iter().zip([0.06, 0.54, 0.04, 0.36]) {
        assert!((found - expected).abs() < 1e-12, "{w:?}");
    }
}

#[test]
fn what_can_not_be_met_is_named() {
    let (table, counts) = two_by_two([1.0, 0.0, 0.0, 1.0]);
    let error = |base: Option<&[f64]>, marginals: &[Marginal]| {
        let error = weights(&table, base, marginals).unwrap_err();
        (error.entry, error.about, error.message)
    };
    let sex = marginal("sex", &[("f", 0.5), ("m", 0.5)]);
    // Only f0 and m1 weigh something, so that the two marginals are the same.
    let (entry, about, message) = error(Some(&counts), &[sex.clone(), marginal("party", &[("0", 0.3), ("1", 0.7)])]);
    assert!(
        entry.is_some() && matches!(about, About::Level(_)) && message.contains("contradict each other"),
        "{message}"
    );
    let half = marginal("party", &[("0", 0.5), ("1", 0.6)]);
    assert_eq!(
        error(None, &[sex.clone(), half]),
        (Some(1), About::Levels, "the shares add up to 1.1, not to 1".into())
    );
    let minus = marginal("sex", &[("f", -0.5), ("m", 1.5)]);
    let expected = "a share must be between 0 and 1, but this one is -0.5";
    assert_eq!(error(None, &[minus]), (Some(0), About::Level(0), expected.into()));
    let nobody = marginal("party", &[("0", 0.5), ("1", 0.3), ("2", 0.2)]);
    let expected = "no row has the level `2` of column `party` (it has 0, 1)";
    assert_eq!(error(None, &[sex.clone(), nobody]), (Some(1), About::Level(2), expected.into()));
    let all = marginal("party", &[("0", 1.0), ("1", 0.0)]);
    let message = error(Some(&counts), &[all, sex.clone()]).2;
    assert!(message.starts_with("level `m` of column `sex` has the share 0.5, but its rows have no weight"));
    let message = error(Some(&[1.0, -1.0, 0.0, 0.0]), &[]).2;
    assert_eq!(message, "row 1, counted from 0, has the weight -1; a weight must be 0 or more");
    for large in [1e308, 1e250, 1e-250] {
        let message = error(Some(&[large; 4]), &[]).2;
        assert!(message.contains("which is too small or too large to calculate with"), "{message}");
    }
    assert_eq!(error(Some(&[1.0]), &[]).2, "there are 1 weights for 4 rows");
    let message = error(Some(&[1e-310, 1.0, 1.0, 1.0]), &[marginal("party", &[("0", 1.0), ("1", 0.0)]), sex.clone()]).2;
    assert!(message.contains("its rows have no weight"), "{message}");
    assert_eq!(error(Some(&[0.0; 4]), &[sex]).2, "the weights add up to 0; some must be greater than 0");
}

#[test]
fn rounding_in_small_societies_is_mended() {
    // 300 rows with eight columns of three levels: nearly every row is a cell of its own.
    let mut random = draws(2);
    let columns: Vec<(String, Column)> =
        (0..8).map(|c| (format!("c{c}"), Column::Number((0..300).map(|_| random.below(3) as f64).collect()))).collect();
    let table = Table::new(columns).unwrap();
    let marginals: Vec<Marginal> =
        (0..8).map(|c| marginal(&format!("c{c}"), &[("0", 0.25), ("1", 0.35), ("2", 0.4)])).collect();
    let fit = weights(&table, None, &marginals).unwrap();
    for n in [60, 100, 137, 1000] {
        let most = |counts: &[u32]| {
            let shares = fit.obtained(&marginals, counts);
            shares.iter().map(|share| (share.obtained - share.asked).abs() * f64::from(n)).fold(0.0, f64::max)
        };
        let drawn = whole(&fit.weights, &fit.order, n, &mut draws(n.into()));
        let mended = fit.agents(n, &mut draws(n.into()));
        assert!(most(&drawn) > 2.0, "{n}: {}", most(&drawn));
        assert!(most(&mended) <= 1.01, "{n}: {} from {}", most(&mended), most(&drawn));
        assert_eq!(mended.iter().sum::<u32>(), n);
    }
}

#[test]
fn quotas_are_exact() {
    let (table, _) = two_by_two([0.0; 4]);
    let cell = |sex: &str, party: &str, share| Cell {
        levels: vec![("sex".into(), sex.into()), ("party".into(), party.into())],
        share,
    };
    let cells = [cell("m", "1", 0.1), cell("f", "0", 0.25), cell("f", "1", 0.6), cell("m", "0", 0.05)];
    for (n, expected) in [(1000, [250, 600, 50, 100]), (7, [2, 4, 0, 1])] {
        let Filled { counts, shares, .. } = quotas(&table, None, &cells, n, &mut draws(3)).unwrap();
        assert_eq!(counts, expected);
        assert_eq!((shares[1].column.as_str(), shares[1].level.as_str()), ("sex × party", "f × 0"));
        assert_eq!(shares[1].agents, expected[0]);
    }
    let error = |cells: &[Cell]| quotas(&table, None, cells, 10, &mut draws(3)).unwrap_err();
    let twice = [cells[0].clone(), cells[1].clone(), cell("f", "0", 0.65)];
    assert_eq!((error(&twice).entry, error(&twice).message.as_str()), (Some(2), "the same cell was given before"));
    let few = [cell("m", "1", 0.4), cell("f", "0", 0.6)];
    assert!(error(&few).message.starts_with("row 1 of the data, counted from 0, is in no cell of the quotas by sex"));
    let other = Cell { levels: vec![("sex".into(), "f".into())], share: 0.9 };
    assert_eq!(error(&[cells[0].clone(), other]).entry, Some(1));
    let weightless = quotas(&table, Some(&[1.0, 1.0, 1.0, 0.0]), &cells, 10, &mut draws(3)).unwrap_err();
    assert_eq!((weightless.entry, weightless.message.contains("no row with a weight")), (Some(0), true));
}

#[test]
fn weights_of_quotas_are_checked_and_shares_are_those_of_the_people() {
    let mut sex = TextBuilder::default();
    ["f", "f", "m", "m"].iter().for_each(|w| sex.push(w));
    let table = Table::new(vec![("sex".into(), sex.finish())]).unwrap();
    let cell = |sex: &str| Cell { levels: vec![("sex".into(), sex.into())], share: 0.5 };
    let of = |base: &[f64]| quotas(&table, Some(base), &[cell("f"), cell("m")], 100, &mut draws(1));
    let message = |base: &[f64]| of(base).unwrap_err().message;
    assert_eq!(message(&[-1.0, 1.0, 3.0, 1.0]), "row 0, counted from 0, has the weight -1; a weight must be 0 or more");
    assert!(message(&[1e308, 1e308, 1.0, 1.0]).contains("which is too small or too large to calculate with"));
    assert!(message(&[f64::NAN; 4]).contains("a weight must be 0 or more"));
    let filled = of(&[3.0, 1.0, 0.0, 1.0]).unwrap();
    assert_eq!((filled.counts.as_slice(), filled.weights[0]), (&[37, 13, 0, 50][..], 0.375));
    for (share, rows) in filled.shares.iter().zip([0..2, 2..4]) {
        assert_eq!(share.agents, filled.counts[rows].iter().sum::<u32>());
    }
}

#[test]
fn cells_name_their_columns_in_any_order() {
    let (table, _) = two_by_two([0.0; 4]);
    let cell = |levels: &[(&str, &str)]| Cell {
        levels: levels.iter().map(|(column, level)| ((*column).into(), (*level).into())).collect(),
        share: 0.25,
    };
    let mut cells = vec![
        cell(&[("sex", "f"), ("party", "0")]),
        cell(&[("party", "1"), ("sex", "f")]),
        cell(&[("party", "0"), ("sex", "m")]),
        cell(&[("sex", "m"), ("party", "1")]),
    ];
    let filled = quotas(&table, None, &cells, 8, &mut draws(1)).unwrap();
    assert_eq!(filled.counts, [2; 4]);
    assert_eq!(filled.shares[1].level, "f × 1");
    cells[2] = cell(&[("sex", "m"), ("sex", "m")]);
    let error = quotas(&table, None, &cells, 8, &mut draws(1)).unwrap_err();
    assert_eq!((error.entry, error.message.contains("must name the columns of the first one")), (Some(2), true));
}

/// Where the solution has zeros sweeps come near like one by their number and never arrive.
#[test]
fn marginals_that_leave_nothing_for_some_rows_are_met() {
    let mut sex = TextBuilder::default();
    ["f", "f", "m"].iter().for_each(|w| sex.push(w));
    let columns = vec![("a".into(), sex.finish()), ("b".into(), Column::Number(vec![0.0, 1.0, 1.0]))];
    let table = Table::new(columns).unwrap();
    let of = |f: f64, zero: f64| {
        let marginals = [marginal("a", &[("f", f), ("m", 1.0 - f)]), marginal("b", &[("0", zero), ("1", 1.0 - zero)])];
        (weights(&table, None, &marginals), vec![vec![f, 1.0 - f], vec![zero, 1.0 - zero]])
    };
    let (fit, asked) = of(0.5, 0.5);
    let weights = fit.unwrap().weights;
    let slow = plain(&[vec![0, 0, 1], vec![0, 1, 1]], &[1.0; 3], &asked);
    for ((found, expected), slow) in weights.iter().zip([0.5, 0.0, 0.5]).zip(slow) {
        assert!((found - expected).abs() < 1e-9 && (found - slow).abs() < 2e-4, "{weights:?} {slow}");
    }
    // A little inside, nothing has to vanish; a little outside, nothing helps.
    let (fit, asked) = of(0.51, 0.5);
    for (found, slow) in fit.unwrap().weights.iter().zip(plain(&[vec![0, 0, 1], vec![0, 1, 1]], &[1.0; 3], &asked)) {
        assert!((found - slow).abs() < 1e-8, "{found} {slow}");
    }
    let message = of(0.49, 0.5).0.unwrap_err().message;
    assert!(message.contains("contradict each other"), "{message}");
}

/// Not mended, the largest share is off by points.
#[test]
fn rounding_of_wide_data_is_mended() {
    let mut random = draws(5);
    let shares = [0.1, 0.1, 0.15, 0.15, 0.2, 0.3];
    let rows = 50_000;
    let columns =
        (0..10).map(|c| (format!("c{c}"), Column::Number((0..rows).map(|_| random.below(6) as f64).collect())));
    let table = Table::new(columns.collect()).unwrap();
    let marginals: Vec<Marginal> = (0..10)
        .map(|c| Marginal {
            column: format!("c{c}"),
            shares: shares.iter().enumerate().map(|(l, share)| (l.to_string(), *share)).collect(),
        })
        .collect();
    let fit = weights(&table, None, &marginals).unwrap();
    let most = |counts: &[u32]| {
        let shares = fit.obtained(&marginals, counts);
        shares.iter().map(|share| (share.obtained - share.asked).abs()).fold(0.0, f64::max)
    };
    // By one agent, at most.
    for (n, allowed) in [(1000, 0.0011), (100, 0.011)] {
        let drawn = most(&whole(&fit.weights, &fit.order, n, &mut draws(1)));
        let mended = fit.agents(n, &mut draws(1));
        assert_eq!(mended.iter().sum::<u32>(), n);
        assert!(drawn > 0.01 && most(&mended) < allowed, "{n}: {} from {drawn}", most(&mended));
    }
}

#[test]
fn parts_by_largest_remainder() {
    assert_eq!(apportion(&[0.5, 0.3, 0.2], 11), [6, 3, 2]);
    assert_eq!(apportion(&[1.0, 1.0, 1.0], 10), [4, 3, 3]);
}

/// The sweeps on a full table of rows, each row with its own weight: no cells, no sorting.
fn plain(codes: &[Vec<usize>], base: &[f64], asked: &[Vec<f64>]) -> Vec<f64> {
    let mut w = base.to_vec();
    for _ in 0..5000 {
        for (codes, asked) in codes.iter().zip(asked) {
            for (level, share) in asked.iter().enumerate() {
                let sum: f64 = (0..w.len()).filter(|r| codes[*r] == level).map(|r| w[r]).sum();
                (0..w.len()).filter(|r| codes[*r] == level).for_each(|r| w[r] *= share / sum);
            }
        }
    }
    w
}

/// Rows with three columns of 2, 3 and 4 levels, each combination at least once, so that every marginal can be met.
fn people(extra: &[(usize, usize, usize)]) -> (Table, Vec<Vec<usize>>) {
    let mut codes = vec![vec![], vec![], vec![]];
    let all = (0..24).map(|i| (i % 2, i / 2 % 3, i / 6)).chain(extra.iter().copied());
    all.for_each(|(a, b, c)| [a, b, c].into_iter().zip(&mut codes).for_each(|(v, codes)| codes.push(v)));
    let column = |codes: &Vec<usize>| Column::Number(codes.iter().map(|c| *c as f64).collect());
    let named = ["a", "b", "c"].iter().zip(&codes).map(|(n, codes)| ((*n).to_owned(), column(codes)));
    (Table::new(named.collect()).unwrap(), codes)
}

fn some_shares(levels: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.05f64..1.0, levels).prop_map(|s| {
        let sum: f64 = s.iter().sum();
        s.iter().map(|x| x / sum).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn agrees_with_a_plain_fit_and_keeps_margins_near(
        extra in prop::collection::vec((0usize..2, 0usize..3, 0usize..4), 0..60),
        base_seed: u64,
        asked in (some_shares(2), some_shares(3), some_shares(4)),
        n in 1u32..5000,
    ) {
        let (table, codes) = people(&extra);
        let mut random = draws(base_seed);
        let base: Vec<f64> = (0..table.rows()).map(|_| 0.1 + random.unit()).collect();
        let asked = [asked.0, asked.1, asked.2];
        let marginals: Vec<Marginal> = ["a", "b", "c"].iter().zip(&asked).map(|(name, shares)| Marginal {
            column: (*name).into(),
            shares: shares.iter().enumerate().map(|(l, s)| (l.to_string(), *s)).collect(),
        }).collect();
        let fit = weights(&table, Some(&base), &marginals).unwrap();
        for (found, expected) in fit.weights.iter().zip(plain(&codes, &base, &asked)) {
            prop_assert!((found - expected).abs() < 1e-8, "{} {}", found, expected);
        }
        let mut again = random.clone();
        let counts = fit.agents(n, &mut random);
        prop_assert_eq!(counts.iter().sum::<u32>(), n);
        for (count, weight) in counts.iter().zip(&fit.weights) {
            prop_assert!((f64::from(*count) - weight * f64::from(n)).abs() < 1.0 + 1e-6);
        }
        // Runs in the order of the cells are rounded once: the first column has one run a level, the second two, the last six.
        // Mending makes the sum of squares smaller still.
        let drawn = whole(&fit.weights, &fit.order, n, &mut again);
        let off = |counts: &[u32]| -> Vec<f64> {
            let shares = fit.obtained(&marginals, counts);
            shares.iter().map(|share| (share.obtained - share.asked).abs() * f64::from(n)).collect()
        };
        for (off, runs) in off(&drawn).iter().zip([1, 1, 2, 2, 2, 6, 6, 6, 6]) {
            prop_assert!(*off < f64::from(runs) + 1e-3, "a share is off by {} agents of {}", off, n);
        }
        let squares = |counts: &[u32]| off(counts).iter().map(|off| off * off).sum::<f64>();
        prop_assert!(squares(&counts) <= squares(&drawn) + 1e-6);
    }

    /// Rows below the diagonal are there, and the marginals leave nothing for them: the first row takes all of the first
    /// column, so that the second row has to take all of the second, and so on.
    #[test]
    fn staircases_are_met_by_their_diagonal(shares in (2usize..5).prop_flat_map(some_shares), base_seed: u64) {
        let k = shares.len();
        let (i, j): (Vec<usize>, Vec<usize>) = (0..k).flat_map(|i| (0..=i).map(move |j| (i, j))).unzip();
        let column = |codes: &[usize]| Column::Number(codes.iter().map(|code| *code as f64).collect());
        let table = Table::new(vec![("i".into(), column(&i)), ("j".into(), column(&j))]).unwrap();
        let mut random = draws(base_seed);
        let base: Vec<f64> = (0..table.rows()).map(|_| 0.1 + random.unit()).collect();
        let of = |column: &str| Marginal {
            column: column.into(),
            shares: shares.iter().enumerate().map(|(l, share)| (l.to_string(), *share)).collect(),
        };
        let fit = weights(&table, Some(&base), &[of("i"), of("j")]).unwrap();
        let slow = plain(&[i.clone(), j.clone()], &base, &[shares.clone(), shares.clone()]);
        for row in 0..table.rows() {
            let expected = if i[row] == j[row] { shares[i[row]] } else { 0.0 };
            prop_assert!((fit.weights[row] - expected).abs() < 1e-3, "{} {}", fit.weights[row], expected);
            prop_assert!((fit.weights[row] - slow[row]).abs() < 2e-2, "{} {}", fit.weights[row], slow[row]);
        }
    }

    #[test]
    fn parts_add_up(shares in prop::collection::vec(0.0f64..1.0, 1..20), n in 0u32..100_000) {
        prop_assume!(shares.iter().sum::<f64>() > 0.0);
        let parts = apportion(&shares, n);
        prop_assert_eq!(parts.iter().sum::<u32>(), n);
        let total: f64 = shares.iter().sum();
        for (part, share) in parts.iter().zip(&shares) {
            prop_assert!((f64::from(*part) - share / total * f64::from(n)).abs() < 1.0 + 1e-6);
        }
    }
}
