//! A participant: a method with a team, as named on the command line.

use polity_kernel::method::Facts;
use polity_kernel::registry::Registry;
use polity_kernel::tree::nearest;
use polity_store::DriveError;

/// A method with a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrant {
    /// As it was named: `sc@8`.
    pub label: String,
    /// The method's name.
    pub method: &'static str,
    /// Members of its team.
    pub members: u32,
    /// Whether its size was requested. Otherwise it is the method's usual size, and may be fitted to an allowance.
    pub sized: bool,
    /// Maximum number of rounds, as the method counts them.
    pub rounds: u32,
}

impl Entrant {
    /// Reads `NAME` or `NAME@MEMBERS`, where the name may be the method's short one. `members` and `rounds` apply if the name does not
    /// set them.
    ///
    /// Errors: [`DriveError::Input`] for an unknown method, which names the nearest one, and for an invalid number.
    pub fn read(
        word: &str,
        members: Option<u32>,
        rounds: Option<u32>,
        registry: &Registry,
    ) -> Result<Entrant, DriveError> {
        let (name, size) = match word.split_once('@') {
            Some((name, size)) => (name, Some(size)),
            None => (word, None),
        };
        let size = match size {
            None => members,
            Some(size) => match size.parse::<u32>() {
                Ok(n @ 1..=10_000) => Some(n),
                _ => {
                    let what = "the number after @ is the size of the team, 1 to 10,000, for instance sc@8";
                    return Err(DriveError::Input(format!("{word}: {what}")));
                }
            },
        };
        let known = registry.method_named(name).and_then(|method| Some((method, registry.facts(method)?)));
        let Some((method, Facts { usual, .. })) = known else { return Err(unknown(name, registry)) };
        Ok(Entrant {
            label: word.to_owned(),
            method,
            members: size.unwrap_or(usual.members),
            sized: size.is_some(),
            rounds: rounds.unwrap_or(usual.rounds),
        })
    }

    /// Returns the name of its run folder, which differs between teams.
    #[must_use]
    pub fn slug(&self) -> String {
        format!("{}@{}", self.method, self.members)
    }
}

fn unknown(name: &str, registry: &Registry) -> DriveError {
    let shorts = |card: &&polity_kernel::registry::LeafInfo| registry.facts(card.name).and_then(|facts| facts.short);
    let cards = registry.methods();
    let known: Vec<&str> = cards.iter().flat_map(|card| [Some(card.name), shorts(card)]).flatten().collect();
    let near = nearest(name, known.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    DriveError::Input(format!("there is no method `{name}`{near} (polity list methods shows all)"))
}
