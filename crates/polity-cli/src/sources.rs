//! The literature behind a leaf: the entries of its `cite.bib`, else the paragraph on sources in its README.

use polity_kernel::registry::LeafInfo;

/// The sources of a leaf, one sentence each; empty if it names none.
pub(super) fn sources(leaf: &LeafInfo) -> Vec<String> {
    let cited = entries(leaf.files.cite);
    if !cited.is_empty() {
        return cited;
    }
    let paragraph = leaf.files.readme.split("\n\n").find_map(|paragraph| {
        let rest = paragraph.strip_prefix("Sources: ").or_else(|| paragraph.strip_prefix("Source: "))?;
        Some(in_prose(&rest.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    paragraph.into_iter().collect()
}

/// Text of a README as it stands in a paragraph: without marks of code, with typographic quotes.
fn in_prose(text: &str) -> String {
    let mut open = false;
    let quote = |c: char| match c {
        '"' => {
            open = !open;
            Some(if open { '“' } else { '”' })
        }
        '`' => None,
        c => Some(c),
    };
    text.chars().filter_map(quote).collect()
}

/// The entries of a BibTeX file as sentences: `Du, Li and Torralba (2024). Title. Venue, note`.
fn entries(bib: &str) -> Vec<String> {
    let starts = bib.match_indices('@').filter(|(at, _)| *at == 0 || bib[..*at].ends_with('\n'));
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([bib.len()]);
    starts.iter().zip(ends).map(|(from, to)| sentence(&bib[*from..to])).filter(|text| !text.is_empty()).collect()
}

fn sentence(entry: &str) -> String {
    let Some(title) = field(entry, "title") else { return String::new() };
    let people: Vec<String> = field(entry, "author").unwrap_or_default().split(" and ").map(last_name).collect();
    let people = match people.as_slice() {
        [one] => one.clone(),
        [one, two] if two == "others" => format!("{one} et al."),
        [one, two] => format!("{one} and {two}"),
        [one, ..] => format!("{one} et al."),
        [] => String::new(),
    };
    let year = field(entry, "year").map_or(String::new(), |year| format!(" ({year})"));
    let venue = ["booktitle", "journal"].iter().find_map(|name| field(entry, name));
    let more: Vec<String> = venue.into_iter().chain(field(entry, "note")).collect();
    let more = if more.is_empty() { String::new() } else { format!(". {}", more.join(", ")) };
    let who = format!("{people}{year}");
    let who = if who.is_empty() { who } else { format!("{}. ", who.trim_start()) };
    format!("{who}{title}{more}")
}

/// The last name of an author: `Du, Yilun` and `Yilun Du` are `Du`.
fn last_name(author: &str) -> String {
    let name = author.trim();
    match name.split_once(',') {
        Some((last, _)) => last.trim().to_owned(),
        None => name.rsplit(' ').next().unwrap_or(name).to_owned(),
    }
}

/// The value of a field, without braces and with its spaces in order.
fn field(entry: &str, name: &str) -> Option<String> {
    let at = entry
        .lines()
        .position(|line| line.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('=')))?;
    let rest: String = entry.lines().skip(at).collect::<Vec<_>>().join(" ");
    let value = rest.split_once('=')?.1.trim_start();
    let mut depth = 0_i32;
    let mut out = String::new();
    for c in value.chars() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            // A plain number has no braces.
            ',' if depth == 0 => break,
            c => out.push(c),
        }
    }
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ").replace("--", "–");
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_people_write_them() {
        let bib = "@inproceedings{a,\n  author = {Du, Yilun and Li, Shuang and Torralba, Antonio},\n  title = {Improving {LLMs},\n    a\n    study},\n  booktitle = {ICML},\n  year = {2024},\n  note = {arXiv:1},\n}\n\
                   @misc{b,\n  title = {Two},\n  author = {Ann Lee and others},\n  year = 1999,\n}\n\n@misc{c,\n title = {Three}, }\n";
        assert_eq!(
            entries(bib),
            ["Du et al. (2024). Improving LLMs, a study. ICML, arXiv:1", "Lee et al. (1999). Two", "Three"]
        );
        assert_eq!(entries("@misc{d,\n  title = {Four},\n  year = {2000},\n}\n"), ["(2000). Four"]);
        assert!(entries("").is_empty());
        assert_eq!(in_prose("A, \"B\", in `c`"), "A, “B”, in c");
    }
}
