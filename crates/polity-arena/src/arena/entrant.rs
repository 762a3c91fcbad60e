//! A participant: a method with a team and parameters, as named on the command line.

use polity_kernel::method::Facts;
use polity_kernel::registry::Registry;
use polity_kernel::tree::{Node, nearest};
use polity_store::DriveError;
use polity_store::files::parse_edit;

/// The longest name of a folder; longer ones are cut.
const LONGEST: usize = 80;

/// A method with a team and parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// As it was named: `sc@8`, `debate:show_reasons=false`; or the label that it was given.
    pub label: String,
    /// The method's name.
    pub method: &'static str,
    /// Members of its team.
    pub members: u32,
    /// Whether its size was requested. Otherwise it is the method's usual size, and may be fitted to an allowance.
    pub sized: bool,
    /// Maximum number of rounds, as the method counts them.
    pub rounds: u32,
    /// Its own parameters: paths from the top of the scenario (`method.show_reasons`), and values.
    pub set: Vec<(String, Node)>,
    /// The name of its folders, without the size of the team.
    pub folder: String,
}

impl Entrant {
    /// Reads `[LABEL=]NAME[@MEMBERS][:KEY=VALUE,...]`, where the name may be the method's short one, and a key is any path below `method` of
    /// the scenario: `debate`, `sc@8`, `plain=debate:show_reasons=false`. `members` and `rounds` apply if the word does not set them.
    ///
    /// Errors: [`DriveError::Input`] for an unknown method, which names the nearest one, for an invalid number or label, and for a parameter
    /// that is not a key with a value.
    pub fn read(
        word: &str,
        members: Option<u32>,
        rounds: Option<u32>,
        registry: &Registry,
    ) -> Result<Entrant, DriveError> {
        let wrong = |what: String| DriveError::Input(format!("{word}: {what}"));
        let (head, parameters) = match word.split_once(':') {
            Some((head, parameters)) => (head, Some(parameters)),
            None => (word, None),
        };
        let (label, named) = match head.split_once('=') {
            Some((label, named)) => (Some(label.trim()), named.trim()),
            None => (None, head.trim()),
        };
        if let Some(label) = label
            && !is_label(label)
        {
            let what = "a label before `=` has letters, digits, spaces and any of -_.+ (60 at most)";
            return Err(wrong(what.into()));
        }
        let (name, size) = match named.split_once('@') {
            Some((name, size)) => (name, Some(size)),
            None => (named, None),
        };
        let size = match size {
            None => members,
            Some(size) => match size.parse::<u32>() {
                Ok(n @ 1..=10_000) => Some(n),
                _ => {
                    return Err(wrong(
                        "the number after @ is the size of the team, 1 to 10,000, for instance sc@8".into(),
                    ));
                }
            },
        };
        let known = registry.method_named(name).and_then(|method| Some((method, registry.facts(method)?)));
        let Some((method, Facts { usual, .. })) = known else { return Err(unknown(name, registry)) };
        let parts = parameters.map(parts).unwrap_or_default();
        let set = parts.into_iter().map(|part| {
            let how =
                || wrong(format!("`{part}` is no parameter; write KEY=VALUE, for instance {name}:show_reasons=false"));
            let (key, value) = part.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(how)?;
            parse_edit(&format!("method.{}={value}", key.trim())).map_err(|error| wrong(error.to_string()))
        });
        let set = set.collect::<Result<Vec<_>, DriveError>>()?;
        let folder = match (label, parameters) {
            (Some(label), _) => folder_name(label),
            (None, Some(parameters)) => folder_name(&format!("{method},{parameters}")),
            (None, None) => method.to_owned(),
        };
        Ok(Entrant {
            label: label.unwrap_or(word).to_owned(),
            method,
            members: size.unwrap_or(usual.members),
            sized: size.is_some(),
            rounds: rounds.unwrap_or(usual.rounds),
            set,
            folder,
        })
    }

    /// Returns the method's name in a word as [`Entrant::read`] reads it, without label, size and parameters.
    #[must_use]
    pub fn name_in(word: &str) -> &str {
        let head = word.split([':', '@']).next().unwrap_or_default();
        head.rsplit('=').next().unwrap_or_default()
    }

    /// Returns the size of the team in a word as [`Entrant::read`] reads it, if the word has one.
    pub(super) fn size_in(word: &str) -> Option<u32> {
        let head = word.split(':').next().unwrap_or_default();
        head.rsplit_once('@')?.1.parse().ok()
    }

    /// Returns the name of the folder of its runs, which differs between teams.
    #[must_use]
    pub fn slug(&self) -> String {
        format!("{}@{}", self.folder, self.members)
    }

    /// Returns its own parameters as words: `show_reasons=false`.
    #[must_use]
    pub fn parameters(&self) -> Vec<String> {
        let word = |(path, value): &(String, Node)| {
            format!("{}={}", path.strip_prefix("method.").unwrap_or(path), value.to_json())
        };
        self.set.iter().map(word).collect()
    }

    /// Returns why two participants cannot be in one comparison, if so.
    pub(super) fn clash(&self, other: &Entrant) -> Option<String> {
        if self.label == other.label {
            return Some(format!(
                "`{}` is named twice; give one of the two another label, for instance plain={}",
                self.label, self.method
            ));
        }
        let same = self.method == other.method && self.set == other.set;
        (self.folder == other.folder && !same).then(|| {
            format!(
                "`{}` and `{}` would have the same folder, `{}`; give one of the two another label, for instance \
                 plain={}",
                self.label, other.label, self.folder, self.method
            )
        })
    }
}

/// Whether a text can be a label.
fn is_label(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || " -_.+".contains(c);
    !text.is_empty() && text.chars().count() <= 60 && text.chars().all(plain)
}

/// Splits parameters at the commas that are neither in quotes nor in brackets.
fn parts(parameters: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, c) in parameters.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                parts.push(&parameters[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&parameters[from..]);
    parts
}

/// Returns a name for a folder: letters, digits and a few signs; a long one is cut, and ends with its digest.
pub(super) fn folder_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.=,+".contains(c) { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    let name = match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => name,
    };
    if name.len() <= LONGEST {
        return name;
    }
    let digest = polity_kernel::digest::FileHash::of(text.as_bytes()).to_string();
    format!("{}-{}", &name[..LONGEST - 13], &digest[..12.min(digest.len())])
}

fn unknown(name: &str, registry: &Registry) -> DriveError {
    let shorts = |card: &&polity_kernel::registry::LeafInfo| registry.facts(card.name).and_then(|facts| facts.short);
    let cards = registry.methods();
    let known: Vec<&str> = cards.iter().flat_map(|card| [Some(card.name), shorts(card)]).flatten().collect();
    let near = nearest(name, known.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    DriveError::Input(format!("there is no method `{name}`{near} (polity list methods shows all)"))
}

#[cfg(test)]
mod tests {
    use super::{Entrant, folder_name, is_label, parts};

    #[test]
    fn a_word_has_the_name_of_a_method_and_the_size_of_its_team() {
        for word in ["debate", "debate@3", "plain=debate", "plain=debate@3:show_reasons=false,x=a@b:c"] {
            assert_eq!(Entrant::name_in(word), "debate", "{word}");
            assert_eq!(Entrant::size_in(word), word.contains("debate@3").then_some(3), "{word}");
        }
    }

    #[test]
    fn parameters_are_split_at_commas_outside_of_texts_and_lists() {
        assert_eq!(
            parts("a=1,b=[1, 2],c=\"x, y\",d={e: 1, f: '2, 3'}"),
            ["a=1", "b=[1, 2]", "c=\"x, y\"", "d={e: 1, f: '2, 3'}"]
        );
        assert_eq!(parts("a=1"), ["a=1"]);
        assert_eq!(parts("a=1,"), ["a=1", ""]);
    }

    #[test]
    fn folders_have_plain_names_that_differ() {
        assert_eq!(folder_name("openai/gpt-4o mini"), "openai_gpt-4o_mini");
        assert_eq!(folder_name("../x"), "_._x");
        let long = |end: &str| folder_name(&format!("{}{end}", "x".repeat(200)));
        assert!(long("a") != long("b") && long("a").len() <= 80, "{}", long("a"));
    }

    #[test]
    fn labels_are_plain() {
        assert!(is_label("debate, plain".replace(',', "").as_str()) && is_label("ohne Gründe"));
        ["", "a/b", "a@3", "a:b", &"x".repeat(61)].iter().for_each(|text| assert!(!is_label(text), "{text}"));
    }
}
