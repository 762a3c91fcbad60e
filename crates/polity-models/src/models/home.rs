//! Where a provider is, and how it authenticates.

/// Maximum bytes of an answer; longer ones are cut while reading. (A streamed answer takes 20 to 50 times its text.)
pub const LONGEST_ANSWER: usize = 10_000_000;

/// Where a provider is and how it authenticates, in terms that users know.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    /// The part of a model's name before the slash.
    pub name: &'static str,
    /// Synonyms of the name.
    pub aliases: &'static [&'static str],
    /// An example of a model's full name.
    pub model: &'static str,
    /// The variable that holds the address.
    pub base_variable: &'static str,
    /// The default address.
    pub base_url: &'static str,
    /// An example of an address.
    pub base_example: &'static str,
    /// The usual end of an address, if notable.
    pub base_end: &'static str,
    /// Completes an abbreviated address.
    pub base_of: fn(&str) -> String,
    /// The variables for the key; the first one set counts.
    pub key_variables: &'static [&'static str],
    /// Whether a key must be given.
    pub needs_key: bool,
    /// The header for the key, and the prefix of its value.
    pub key_header: (&'static str, &'static str),
    /// Headers of every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// The part before the slash under which `prices.json` lists its models.
    pub listed_as: &'static str,
}

impl Home {
    /// The key's variable, as named in messages.
    pub(super) fn key_variable(&self) -> &'static str {
        self.key_variables.first().copied().unwrap_or_default()
    }

    /// The usual end of addresses, as part of a sentence.
    pub(super) fn usual_end(&self) -> String {
        match self.base_end {
            "" => String::new(),
            end => format!(", which usually ends in {end}"),
        }
    }
}
