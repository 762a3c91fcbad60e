//! Paths into a tree, `cohorts[1].policy.mean`: how errors write them and how `-P` edits are addressed.

use super::nearest::excerpt;

/// The most steps a path may have.
pub const MAX_STEPS: usize = 64;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A bare word: a key of a map; in a list an index, or the `name` of an entry.
    Word(String),
    /// A quoted word, `"gpt-4.1"`: a key or a name, never an index.
    Name(String),
    /// `[2]`: an index into a list.
    Index(usize),
}

/// The path of a key under `path`.
pub fn child(path: &str, key: &str) -> String {
    join(path, &[Step::Word(key.to_owned())])
}

/// The path of a list's entry under `path`.
pub fn item(path: &str, index: usize) -> String {
    join(path, &[Step::Index(index)])
}

/// Appends steps to a written path.
pub(super) fn join(path: &str, steps: &[Step]) -> String {
    let mut text = path.to_owned();
    for step in steps {
        match step {
            Step::Index(at) => text.push_str(&format!("[{at}]")),
            Step::Word(word) | Step::Name(word) => {
                if !text.is_empty() {
                    text.push('.');
                }
                push_word(&mut text, word, matches!(step, Step::Name(_)));
            }
        }
    }
    text
}

fn push_word(text: &mut String, word: &str, quoted: bool) {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '.' | '[' | ']' | '"' | '\\' | '=');
    if !quoted && !word.is_empty() && word.chars().all(plain) {
        text.push_str(word);
        return;
    }
    text.push('"');
    for c in word.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
}

/// Reads a path: words and quoted names separated by dots, indices in brackets. The error says what is wrong with it.
pub fn parse_path(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        let (step, after) = next_step(rest, steps.is_empty())?;
        steps.push(step);
        if steps.len() > MAX_STEPS {
            return Err(format!("a path has at most {MAX_STEPS} steps"));
        }
        if after.is_empty() {
            return Ok(steps);
        }
        rest = after;
    }
}

fn next_step(rest: &str, first: bool) -> Result<(Step, &str), String> {
    if let Some(inside) = rest.strip_prefix('[') {
        let (number, after) = inside.split_once(']').ok_or("a `[` in the path is not closed")?;
        let at = number.parse().map_err(|_| format!("`[{}]` in the path is not an index", excerpt(number)))?;
        return Ok((Step::Index(at), after));
    }
    let rest = match (first, rest.strip_prefix('.')) {
        (true, _) => rest,
        (false, Some(after)) => after,
        (false, None) => return Err("a `.` is missing in the path".to_owned()),
    };
    if let Some(quoted) = rest.strip_prefix('"') {
        return next_name(quoted);
    }
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    if word.is_empty() {
        return Err("a step of the path is empty".to_owned());
    }
    Ok((Step::Word(word.to_owned()), after))
}

fn next_name(quoted: &str) -> Result<(Step, &str), String> {
    let mut name = String::new();
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                name.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Ok((Step::Name(name), &quoted[at + 1..])),
            _ => name.push(c),
        }
    }
    Err("a quote in the path is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_read() {
        let word = |w: &str| Step::Word(w.into());
        let name = |w: &str| Step::Name(w.into());
        assert_eq!(parse_path("a.b-c.1").unwrap(), [word("a"), word("b-c"), word("1")]);
        assert_eq!(
            parse_path("a[1].b[0][2]").unwrap(),
            [word("a"), Step::Index(1), word("b"), Step::Index(0), Step::Index(2)]
        );
        assert_eq!(parse_path(r#"prices."gpt-4.1".x"#).unwrap(), [word("prices"), name("gpt-4.1"), word("x")]);
        assert_eq!(parse_path(r#""a\"\\b""#).unwrap(), [name(r#"a"\b"#)]);
        assert_eq!(parse_path("[3]").unwrap(), [Step::Index(3)]);
    }

    #[test]
    fn wrong_paths_are_errors() {
        for wrong in ["", ".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "a[1]b", "\"a", "\"a\"b", "a.[1]", "a[]"] {
            assert!(parse_path(wrong).is_err(), "{wrong}");
        }
        assert!(parse_path(&"a.".repeat(100_000)).is_err());
        assert_eq!(parse_path(&vec!["a"; MAX_STEPS].join(".")).unwrap().len(), MAX_STEPS);
        assert!(parse_path(&vec!["a"; MAX_STEPS + 1].join(".")).is_err());
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(path in any::<String>()) {
            let _ = parse_path(&path);
        }

        #[test]
        fn a_written_key_is_read_back(parent in "[a-z]{1,3}", key in any::<String>(), index in 0..9_usize) {
            let steps = parse_path(&item(&child(&parent, &key), index)).unwrap();
            prop_assert!(matches!(&steps[1], Step::Word(k) | Step::Name(k) if *k == key));
            prop_assert_eq!(&steps[2], &Step::Index(index));
        }
    }
}
