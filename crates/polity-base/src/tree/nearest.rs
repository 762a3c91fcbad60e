//! The nearest known word to a mistyped one.

/// The longest word that is compared, in characters: names are short, and what a person mistypes is too.
const LONGEST: usize = 64;

/// Returns the known word that was probably meant: the least Damerau-Levenshtein distance (adjacent characters may be swapped),
/// with case and `_` against `-` counted as equal, and at most a third of the characters wrong; else the first that begins or ends with
/// this word, as `deffuant-weisbuch` does with `deffuant`. Ties go to the first.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = letters(word)?;
    let mut part = None;
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in known {
        let Some(other) = letters(candidate) else {
            continue;
        };
        if part.is_none() && is_part(&word, &other) {
            part = Some(candidate);
        }
        let allowed = (word.len().max(other.len()) + 1) / 3;
        if word.len().abs_diff(other.len()) > allowed {
            continue;
        }
        let distance = distance(&word, &other);
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate).or(part)
}

/// Whether a word is the first or the last of the words of a name, which are separated by `-`.
fn is_part(word: &[char], name: &[char]) -> bool {
    const SHORTEST: usize = 3;
    let is_longer = word.len() >= SHORTEST && word.len() < name.len();
    let first = || name.starts_with(word) && name[word.len()] == '-';
    let last = || name.ends_with(word) && name[name.len() - word.len() - 1] == '-';
    is_longer && (first() || last())
}

/// Returns the characters that are compared; `None` for a word too long to be a name.
fn letters(word: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = word.chars().take(LONGEST + 1).collect();
    let plain = |c: char| {
        if c == '_' { '-' } else { c.to_ascii_lowercase() }
    };
    (letters.len() <= LONGEST).then(|| letters.into_iter().map(plain).collect())
}

/// Optimal string alignment distance: insert, delete, replace, swap two neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// The start of a text on one line, short enough for a message.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

/// Keys of scenarios that were renamed: old and new name. `polity migrate` renames them.
const RENAMED: [(&str, &str); 9] = [
    ("window", "max_concurrent"),
    ("people", "humans"),
    ("again", "max_retries"),
    ("hear", "max_messages"),
    ("tell", "broadcast"),
    ("misleads", "adversarial"),
    ("lure", "distractor"),
    ("sight", "observation"),
    ("want", "response_format"),
];

pub(super) fn meant(word: &str, known: &[&str]) -> String {
    let renamed = RENAMED.into_iter().find(|(old, new)| *old == word && known.contains(new)).map(|(_, new)| new);
    match renamed.or_else(|| nearest(word, known.iter().copied())) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

pub(super) fn known_list(what: &str, known: &[&str]) -> String {
    match known.is_empty() {
        true => format!("{what}: none"),
        false => format!("{what}: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_old_name_means_the_new_one_where_there_is_that() {
        assert_eq!(meant("misleads", &["name", "adversarial"]), "; did you mean `adversarial`?");
        assert_eq!(meant("misleads", &["name"]), "");
    }

    #[test]
    fn distances_are_the_published_ones() {
        let d = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(d("kitten", "sitting"), 3);
        assert_eq!(d("teh", "the"), 1);
        assert_eq!(d("ca", "abc"), 3);
        assert_eq!(d("", "abc"), 3);
        assert_eq!(d("abc", ""), 3);
    }

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["fraction", "friction", "seed", "rounds", "level-k"];
        assert_eq!(nearest("frction", known), Some("fraction"));
        assert_eq!(nearest("ronuds", known), Some("rounds"));
        assert_eq!(nearest("LEVEL_K", known), Some("level-k"));
        assert_eq!(nearest("sed", known), Some("seed"));
        assert_eq!(nearest("zebra", known), None);
        assert_eq!(nearest("s", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"fraction".repeat(1_000_000), known), None);
    }

    proptest! {
        #[test]
        fn one_slip_is_always_found(word in "[a-z]{4,20}", at in 0..20_usize, slip in "[a-z]") {
            let mut typo = word.clone();
            typo.insert_str(at % word.len(), &slip);
            prop_assert_eq!(nearest(&typo, [word.as_str()]), Some(word.as_str()));
        }
    }
}
