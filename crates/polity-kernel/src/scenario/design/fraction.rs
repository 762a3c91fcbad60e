//! Fractional factorial designs of factors with two levels: a part of all combinations, chosen so that the effects that cannot be told
//! apart are known.

use super::{Factor, wrong};
use crate::tree::{Node, TreeError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Generators of the fractions with minimum aberration, by the number of factors and of generated ones (Box, Hunter and Hunter:
/// "Statistics for Experimenters", 2005, table 6.22). The letters of a word are the first factors; each word generates one of the last.
const GENERATORS: [(usize, usize, &[&str]); 21] = [
    (5, 2, &["AB", "AC"]),
    (6, 2, &["ABC", "BCD"]),
    (6, 3, &["AB", "AC", "BC"]),
    (7, 2, &["ABCD", "ABDE"]),
    (7, 3, &["ABC", "BCD", "ACD"]),
    (7, 4, &["AB", "AC", "BC", "ABC"]),
    (8, 2, &["ABCD", "ABEF"]),
    (8, 3, &["ABC", "ABD", "BCDE"]),
    (8, 4, &["BCD", "ACD", "ABC", "ABD"]),
    (9, 2, &["ACDFG", "BCEFG"]),
    (9, 3, &["ABCD", "ACEF", "CDEF"]),
    (9, 4, &["BCDE", "ACDE", "ABDE", "ABCE"]),
    (9, 5, &["ABC", "BCD", "ACD", "ABD", "ABCD"]),
    (10, 3, &["ABCG", "BCDE", "ACDF"]),
    (10, 4, &["BCDF", "ACDF", "ABDE", "ABCE"]),
    (10, 5, &["ABCD", "ABCE", "ABDE", "ACDE", "BCDE"]),
    (10, 6, &["ABC", "BCD", "ACD", "ABD", "ABCD", "AB"]),
    (11, 4, &["ABCG", "BCDE", "ACDF", "ABCDEFG"]),
    (11, 5, &["CDE", "ABCD", "ABF", "BDEF", "ADEF"]),
    (11, 6, &["ABC", "BCD", "CDE", "ACD", "ADE", "BDE"]),
    (11, 7, &["ABC", "BCD", "ACD", "ABD", "ABCD", "AB", "AC"]),
];

/// The part of all combinations of factors with two levels that a design runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// One in how many combinations is run: a power of two.
    pub one_in: u32,
    /// How the last factors follow from the first: `d = a:b:c`.
    pub generators: Vec<String>,
    /// The defining relation: sets of factors whose levels, as -1 and 1, have the product 1 in every arm.
    pub relation: Vec<Vec<String>>,
    /// Length of the shortest of these sets. 3: main effects are aliased with interactions of two factors; 4: interactions of two factors
    /// with one another; 5 and more: neither.
    pub resolution: u32,
}

impl Fraction {
    /// Reads the part of a design as it is written, `1/4`, for its factors with listed levels.
    pub(super) fn read(node: &Node, factors: &[&Factor]) -> Result<Fraction, TreeError> {
        let fault = |message: String, help: String| wrong("design.fraction", &node.origin, message, Some(&help));
        let text: String = node.read("design.fraction")?;
        let one_in = text.trim().strip_prefix("1/").and_then(|n| n.trim().parse::<u32>().ok());
        let Some(one_in) = one_in.filter(|n| *n >= 2 && n.is_power_of_two()) else {
            return Err(fault(
                format!("`{text}` is not a part such as 1/2, 1/4 or 1/8"),
                "write `fraction: 1/2`".into(),
            ));
        };
        if let Some(factor) = factors.iter().find(|factor| factor.levels.len() != 2) {
            let message = format!(
                "a fraction is of factors with two levels, but the factor `{}` has {}",
                factor.name,
                factor.levels.len()
            );
            return Err(fault(message, "give every factor two levels, or remove `fraction`".into()));
        }
        let (all, generated) = (factors.len(), one_in.trailing_zeros() as usize);
        let Some(words) = generators(all, generated) else {
            let possible = |p: &usize| generators(all, *p).is_some();
            let possible: Vec<String> = (1..all).filter(possible).map(|p| format!("1/{}", 1_u32 << p)).collect();
            let help = match possible.is_empty() {
                true => "a fraction needs 3 factors or more".into(),
                false => format!("of {all} factors there are the fractions {}", possible.join(", ")),
            };
            return Err(fault(format!("there is no fraction {text} of {all} factors"), help));
        };
        let name = |at: &usize| factors[*at].name.clone();
        let made = |(i, word): (usize, &BTreeSet<usize>)| {
            let of: Vec<String> = word.iter().map(name).collect();
            format!("{} = {}", factors[all - generated + i].name, of.join(":"))
        };
        let whole = words.iter().enumerate().map(|(i, word)| word ^ &BTreeSet::from([all - generated + i]));
        let whole: Vec<BTreeSet<usize>> = whole.collect();
        // All products of the words, in the order of their lengths.
        let product = |chosen: u32| {
            let chosen = whole.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
            chosen.fold(BTreeSet::new(), |product, (_, word)| &product ^ word)
        };
        let mut relation: Vec<BTreeSet<usize>> = (1..one_in).map(product).collect();
        relation.sort_by_key(|word| (word.len(), word.iter().copied().collect::<Vec<_>>()));
        Ok(Fraction {
            one_in,
            generators: words.iter().enumerate().map(made).collect(),
            resolution: relation.first().map_or(0, |word| word.len() as u32),
            relation: relation.iter().map(|word| word.iter().map(name).collect()).collect(),
        })
    }

    /// Returns whether a combination of levels is run: for each factor of a name, whether it has its second level.
    pub(super) fn has(&self, second: &dyn Fn(&str) -> bool) -> bool {
        let even = |word: &Vec<String>| word.iter().filter(|name| !second(name)).count().is_multiple_of(2);
        self.relation.iter().all(even)
    }

    /// Returns the main effects and interactions of two factors that cannot be told apart from the effect of these factors, each as the
    /// names of its factors.
    #[must_use]
    pub fn aliases(&self, effect: &[&str]) -> Vec<Vec<String>> {
        let effect: BTreeSet<&str> = effect.iter().copied().collect();
        let other = |word: &Vec<String>| {
            let word: BTreeSet<&str> = word.iter().map(String::as_str).collect();
            (&effect ^ &word).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let mut found: Vec<Vec<String>> = self.relation.iter().map(other).filter(|other| other.len() <= 2).collect();
        found.sort_by_key(|names| (names.len(), names.clone()));
        found
    }

    /// Returns the groups of main effects and interactions of two of these factors that cannot be told apart, as `a:b = c:d`.
    #[must_use]
    pub fn groups(&self, factors: &[&str]) -> Vec<String> {
        let singles = factors.iter().map(|factor| vec![*factor]);
        let pairs = factors.iter().enumerate().flat_map(|(i, a)| factors[i + 1..].iter().map(move |b| vec![*a, *b]));
        let (mut told, mut groups) = (BTreeSet::new(), Vec::new());
        for effect in singles.chain(pairs) {
            let of = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
            let aliases = self.aliases(&effect);
            let own: Vec<String> = effect.into_iter().map(str::to_owned).collect();
            if aliases.is_empty() || told.contains(&of(&own)) {
                continue;
            }
            told.extend(aliases.iter().map(|names| of(names)));
            let all: Vec<String> = std::iter::once(&own).chain(&aliases).map(|names| names.join(":")).collect();
            groups.push(all.join(" = "));
        }
        groups
    }

    /// Returns what it is in words: `1/4 of all combinations, resolution IV, d = a:b:c`.
    #[must_use]
    pub fn words(&self) -> String {
        let roman = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
        let number = self.resolution.to_string();
        let resolution = roman.get(self.resolution as usize).copied().unwrap_or(&number);
        format!("1/{} of all combinations, resolution {resolution}: {}", self.one_in, self.generators.join(", "))
    }
}

/// The words that generate the last factors, as positions of the first ones; `None` if no good fraction is known.
fn generators(all: usize, generated: usize) -> Option<Vec<BTreeSet<usize>>> {
    if generated == 1 && all >= 3 {
        return Some(vec![(0..all - 1).collect()]);
    }
    let (_, _, words) = GENERATORS.iter().find(|(factors, last, _)| (*factors, *last) == (all, generated))?;
    let positions = |word: &&str| word.bytes().map(|letter| usize::from(letter - b'A')).collect();
    Some(words.iter().map(positions).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(part: &str, factors: usize) -> Result<Fraction, TreeError> {
        let factor = |i: usize| Factor {
            name: char::from(b'a' + i as u8).to_string(),
            path: Some("x".into()),
            levels: vec!["0".into(), "1".into()],
            range: None,
        };
        let factors: Vec<Factor> = (0..factors).map(factor).collect();
        Fraction::read(&Node::from_json(&json!(part)), &factors.iter().collect::<Vec<_>>())
    }

    /// The levels of all arms, as -1 and 1.
    fn arms(fraction: &Fraction, factors: usize) -> Vec<Vec<i32>> {
        let level = |row: u32, at: usize| row >> at & 1 == 1;
        let runs = |row: &u32| fraction.has(&|name| level(*row, usize::from(name.as_bytes()[0] - b'a')));
        let signs = |row: u32| (0..factors).map(|at| if level(row, at) { 1 } else { -1 }).collect();
        (0..1_u32 << factors).filter(runs).map(signs).collect()
    }

    #[test]
    fn fractions_have_the_published_resolutions() {
        // The resolutions in table 6.22 of Box, Hunter and Hunter.
        for (factors, one_in, resolution) in [
            (3, 2, 3),
            (4, 2, 4),
            (5, 2, 5),
            (5, 4, 3),
            (6, 4, 4),
            (6, 8, 3),
            (7, 4, 4),
            (7, 8, 4),
            (7, 16, 3),
            (8, 4, 5),
            (8, 8, 4),
            (8, 16, 4),
            (9, 4, 6),
            (9, 8, 4),
            (9, 16, 4),
            (9, 32, 3),
            (10, 8, 5),
            (10, 16, 4),
            (10, 32, 4),
            (10, 64, 3),
            (11, 16, 5),
            (11, 32, 4),
            (11, 64, 4),
            (11, 128, 3),
        ] {
            let fraction = read(&format!("1/{one_in}"), factors).unwrap();
            assert_eq!((fraction.resolution, fraction.relation.len()), (resolution, one_in - 1), "{factors} {one_in}");
            // What the relation says of the arms is so: as many as there should be, and main effects are orthogonal.
            let arms = arms(&fraction, factors);
            assert_eq!(arms.len(), (1 << factors) / one_in, "{factors} {one_in}");
            for a in 0..factors {
                assert_eq!(arms.iter().map(|arm| arm[a]).sum::<i32>(), 0);
                for b in 0..a {
                    assert_eq!(arms.iter().map(|arm| arm[a] * arm[b]).sum::<i32>(), 0, "{a} {b} of {factors} {one_in}");
                }
            }
        }
    }

    #[test]
    fn aliases_are_the_effects_with_the_same_column() {
        for (factors, one_in) in [(3, 2), (5, 4), (6, 4), (7, 8), (8, 16)] {
            let fraction = read(&format!("1/{one_in}"), factors).unwrap();
            let arms = arms(&fraction, factors);
            let singles = (0..factors).map(|a| vec![a]);
            let effects: Vec<Vec<usize>> =
                singles.chain((0..factors).flat_map(|b| (0..b).map(move |a| vec![a, b]))).collect();
            let column = |effect: &[usize]| -> Vec<i32> {
                arms.iter().map(|arm| effect.iter().map(|at| arm[*at]).product()).collect()
            };
            let names = |effect: &[usize]| -> Vec<String> {
                effect.iter().map(|at| char::from(b'a' + *at as u8).to_string()).collect()
            };
            for effect in &effects {
                let same = effects.iter().filter(|other| *other != effect && column(other) == column(effect));
                let mut expected: Vec<Vec<String>> = same.map(|other| names(other)).collect();
                expected.sort_by_key(|names| (names.len(), names.clone()));
                let own = names(effect);
                let own: Vec<&str> = own.iter().map(String::as_str).collect();
                assert_eq!(fraction.aliases(&own), expected, "{own:?} of {factors} {one_in}");
            }
        }
        let fraction = read("1/4", 6).unwrap();
        assert_eq!(fraction.words(), "1/4 of all combinations, resolution IV: e = a:b:c, f = b:c:d");
        let groups = fraction.groups(&["a", "b", "c", "d", "e", "f"]);
        let expected =
            ["a:b = c:e", "a:c = b:e", "a:d = e:f", "a:e = b:c = d:f", "a:f = d:e", "b:d = c:f", "b:f = c:d"];
        assert_eq!(groups, expected);
        assert_eq!(read("1/2", 3).unwrap().groups(&["a", "b", "c"]), ["a = b:c", "b = a:c", "c = a:b"]);
    }

    #[test]
    fn wrong_fractions_say_what_is_possible() {
        let told = |part, factors| read(part, factors).unwrap_err();
        assert_eq!(told("1/3", 5).to_string(), "design.fraction: `1/3` is not a part such as 1/2, 1/4 or 1/8");
        let error = told("1/8", 5);
        assert_eq!(error.to_string(), "design.fraction: there is no fraction 1/8 of 5 factors");
        assert_eq!(error.help.as_deref(), Some("of 5 factors there are the fractions 1/2, 1/4"));
        assert_eq!(told("1/2", 2).help.as_deref(), Some("a fraction needs 3 factors or more"));
    }
}
