//! The report's sections on a method as a chain of conditional probabilities, and on its degrees of freedom; the same side by side.

use polity_arena::report::{DataTable, Section, short};
use polity_driver::chain::{Chain, Factor};

/// Maximum factors in the report.
const MOST_FACTORS: usize = 60;

/// Returns the sections of a run with finished items.
pub fn sections(chain: &Chain) -> Vec<Section> {
    let section = |title: &str, text: String, table: DataTable| Section {
        title: title.into(),
        text: Some(text),
        figures: Vec::new(),
        table: Some(table),
    };
    let text = |word: &str| word.to_owned();
    let factors = DataTable {
        columns: ["factor", "value", "model", "temperature", "calls"].map(String::from).to_vec(),
        rows: rows(chain),
        caption: total(chain),
        links: Vec::new(),
    };
    let freedoms = DataTable {
        columns: ["name", "number", "what it counts"].map(String::from).to_vec(),
        rows: chain.freedoms.iter().map(|f| vec![text(f.name), short(f.value), text(f.meaning)]).collect(),
        caption: "Degrees of freedom of the method, as far as these items show them.".into(),
        links: Vec::new(),
    };
    vec![
        section("Chain of conditional probabilities", notation(chain), factors),
        section(
            "Degrees of freedom",
            "What can be changed in the method, and how much its calls depend on each other. “polity compare RUN RUN” shows the \
             chains of runs side by side."
                .into(),
            freedoms,
        ),
    ]
}

/// Explains the factors.
fn notation(chain: &Chain) -> String {
    let which = match chain.items == chain.of {
        true => format!("all {} items", chain.of),
        false => format!("the first {} of {} items", chain.items, chain.of),
    };
    format!(
        "The probability of an answer is the product of these factors, one for each call. The chain is derived from the record \
         of {which}. “p(check[1] | question, own solve[0])” is the probability of the reply to a question with the purpose \
         check in round 1, given the question of the item and the reply of the same member to a question with the purpose solve \
         in round 0. A reply counts as given if the request repeats it: as a statement of its member, or word for word with at \
         least 20 characters; letters and numbers in plain text are not recognised. f is code: its value follows from its \
         arguments, which are the replies that no later call was shown."
    )
}

/// What the numbers of calls add up to.
fn total(chain: &Chain) -> String {
    let mut parts = vec![format!("{} calls", chain.calls - chain.again - chain.scoring)];
    if chain.again > 0 {
        parts.push(format!("{} that ask again", chain.again));
    }
    if chain.scoring > 0 {
        parts.push(format!("{} that score the answer", chain.scoring));
    }
    format!("Factors of the chain. In all {} calls: {}.", chain.calls, parts.join(", "))
}

/// The rows of factors; what is left out is summed up.
fn rows(chain: &Chain) -> Vec<Vec<String>> {
    let row = |factor: &Factor| {
        let temperature = factor.temperature.map_or(String::new(), short);
        vec![
            factor.conditional.clone(),
            factor.drawn.word().to_owned(),
            factor.model.clone(),
            temperature,
            factor.calls.to_string(),
        ]
    };
    // The team's answer has lines of its own, which stay.
    let (calls, answers): (Vec<&Factor>, Vec<&Factor>) = chain.factors.iter().partition(|factor| !factor.is_answer());
    let (shown, left) = calls.split_at(calls.len().min(MOST_FACTORS));
    let mut rows: Vec<Vec<String>> = shown.iter().copied().map(row).collect();
    if !left.is_empty() {
        let calls: u64 = left.iter().map(|factor| factor.calls).sum();
        let name = format!("{} other factors", left.len());
        rows.push(vec![name, String::new(), String::new(), String::new(), calls.to_string()]);
    }
    rows.extend(answers.into_iter().take(MOST_FACTORS).map(row));
    rows
}
