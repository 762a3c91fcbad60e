//! The names most similar to a mistyped one.

use crate::Bag;

/// Returns the `n` known names that are most similar to a name, the most similar first; ties go to the first. Names are compared by
/// their runs of three characters, in lower case. Fewer known names are all returned.
///
/// ```
/// use polity_recall::similar_names;
///
/// let known = ["Charles Babbage", "Ada Lovelace", "Alan Turing"];
/// assert_eq!(similar_names("ada lovlace", known, 1), ["Ada Lovelace"]);
/// ```
#[must_use]
pub fn similar_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, n: usize) -> Vec<&'a str> {
    let wanted = trigrams(name);
    let mut all: Vec<(f64, usize, &str)> =
        known.into_iter().enumerate().map(|(i, other)| (trigrams(other).cosine(&wanted), i, other)).collect();
    all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    all.into_iter().take(n).map(|(.., other)| other).collect()
}

/// Returns the runs of three characters of a name, counted. Its ends count as characters, so that beginnings matter more.
fn trigrams(name: &str) -> Bag {
    let padded: Vec<char> = "  ".chars().chain(name.trim().to_lowercase().chars()).chain([' ']).collect();
    Bag::of_hashes(padded.windows(3).map(|run| crate::hash(run.iter().collect::<String>().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::similar_names;

    #[test]
    fn typos_are_found_first() {
        let known = ["report-2023", "report-2024", "minutes", "Report on rents"];
        assert_eq!(similar_names("report-2O24", known, 2), ["report-2024", "report-2023"]);
        assert_eq!(similar_names("MINUTE", known, 1), ["minutes"]);
        assert_eq!(similar_names("xyz", known, 2), ["report-2023", "report-2024"], "nothing in common: the first");
        assert_eq!(similar_names("", known, 9).len(), 4);
        assert_eq!(similar_names("a", [], 3), [""; 0]);
    }
}
