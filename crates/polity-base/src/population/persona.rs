//! Persona texts: a template with the names of columns in braces, filled in for each person.

use super::{Cell, Column, Table, TextBuilder};
use std::collections::BTreeMap;

/// What the values of columns are called in a text: column, value (as the text would show it), word.
pub type Labels = BTreeMap<String, BTreeMap<String, String>>;

enum Part {
    Words(String),
    Column { index: usize, name: String },
}

/// A template: `You are {age} years old and vote {party}.` Braces themselves are written twice.
pub struct Template(Vec<Part>);

impl Template {
    /// Reads a template for a table's columns.
    ///
    /// # Errors
    /// A brace that is not closed or not opened; a name that no column has (the nearest is named).
    pub fn read(text: &str, table: &Table) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut words = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            words.push_str(&rest[..at]);
            let brace = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                words.push_str(brace);
                rest = after;
                continue;
            }
            let Some(end) = rest.find(['{', '}']).filter(|_| brace == "{") else {
                return Err(format!(
                    "a `{brace}` is unmatched; write `{{age}}` for a column, `{brace}{brace}` for a brace"
                ));
            };
            if rest[end..].starts_with('{') {
                return Err("a `{` is unmatched; write `{age}` for a column, `{{` for a brace".into());
            }
            let name = rest[..end].trim();
            let index = table.index(name).map_err(|error| error.to_string())?;
            parts.push(Part::Words(std::mem::take(&mut words)));
            parts.push(Part::Column { index, name: name.to_owned() });
            rest = &rest[end + 1..];
        }
        words.push_str(rest);
        parts.push(Part::Words(words));
        Ok(Template(parts))
    }

    /// The texts of the `wanted` rows, as a column of words; nothing for the others. Whole numbers are written without a point, others in three digits; a column
    /// with labels shows them instead of its values.
    ///
    /// # Errors
    /// A value without a label in a column that has labels.
    pub fn render(&self, table: &Table, labels: &Labels, wanted: impl Fn(usize) -> bool) -> Result<Column, String> {
        let columns: Vec<&Column> = table.columns().map(|(_, column)| column).collect();
        let mut builder = TextBuilder::default();
        let mut text = String::new();
        for row in 0..table.rows() {
            text.clear();
            for part in self.0.iter().filter(|_| wanted(row)) {
                match part {
                    Part::Words(words) => text.push_str(words),
                    Part::Column { index, name } => {
                        let value = shown(columns[*index].cell(row));
                        text.push_str(match labels.get(name) {
                            None => &value,
                            Some(labels) => labels.get(&value).ok_or_else(|| {
                                format!(
                                    "the value `{value}` of column `{name}` has no label; give labels to all values of \
                                     the column, or to none"
                                )
                            })?,
                        });
                    }
                }
            }
            builder.push(&text);
        }
        Ok(builder.finish())
    }
}

impl Template {
    /// Whether it shows the column of that name.
    #[must_use]
    pub fn shows(&self, column: &str) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Column { name, .. } if name == column))
    }
}

/// A value as a text shows it.
#[must_use]
pub fn shown(value: Cell<'_>) -> String {
    match value {
        Cell::Text(word) => word.to_owned(),
        Cell::Number(number) if number.is_nan() => "unknown".into(),
        Cell::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{:.0}", number + 0.0),
        Cell::Number(number) if (1e-3..1e15).contains(&number.abs()) => {
            // Three digits, or two after the point.
            let digits = if number.abs() >= 1.0 { 2 } else { (2.0 - libm::floor(libm::log10(number.abs()))) as usize };
            let text = format!("{number:.digits$}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Cell::Number(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> Table {
        let mut party = TextBuilder::default();
        ["green", "red"].iter().for_each(|w| party.push(w));
        let vote = Column::Number(vec![0.0, 1.0]);
        let age = Column::Number(vec![36.0, 20.5]);
        Table::new(vec![("age".into(), age), ("party".into(), party.finish()), ("vote".into(), vote)]).unwrap()
    }

    fn texts(template: &str, labels: &Labels) -> Result<Vec<String>, String> {
        let table = people();
        let Column::Text { codes, words } = Template::read(template, &table)?.render(&table, labels, |_| true)? else {
            return Err("numbers".into());
        };
        Ok(codes.iter().map(|code| words[*code as usize].clone()).collect())
    }

    #[test]
    fn columns_are_filled_in() {
        let none = Labels::new();
        assert_eq!(
            texts("You are {age} years old and vote {party}.", &none).unwrap(),
            ["You are 36 years old and vote green.", "You are 20.5 years old and vote red."]
        );
        assert_eq!(texts("{{{ age }}} {party}{vote}", &none).unwrap(), ["{36} green0", "{20.5} red1"]);
        assert_eq!(texts("nobody", &none).unwrap(), ["nobody", "nobody"]);
        let named = [("0".to_owned(), "Clinton".to_owned()), ("1".to_owned(), "Dole".to_owned())].into();
        let labels: Labels = [("vote".to_owned(), named)].into();
        assert_eq!(texts("{vote}", &labels).unwrap(), ["Clinton", "Dole"]);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |template: &str| texts(template, &Labels::new()).unwrap_err();
        assert_eq!(
            error("{agee}"),
            "column `agee`: there is no such column; did you mean `age`? the columns are: age, party, vote"
        );
        assert!(error("a { b").starts_with("a `{` is unmatched"));
        assert!(error("a } b").starts_with("a `}` is unmatched"));
        assert!(error("{age {party}").starts_with("a `{` is unmatched"));
        let labels: Labels = [("vote".to_owned(), [("0".to_owned(), "x".to_owned())].into())].into();
        let message = texts("{vote}", &labels).unwrap_err();
        assert_eq!(
            message,
            "the value `1` of column `vote` has no label; give labels to all values of the column, or to none"
        );
        // Nobody needs a name for what is left out.
        let template = Template::read("{vote}", &people()).unwrap();
        assert!(template.render(&people(), &labels, |row| row == 0).is_ok());
        assert!(template.shows("vote") && !template.shows("age"));
    }

    #[test]
    fn numbers_are_short() {
        let cases =
            [(3.0, "3"), (-0.0, "0"), (2.5, "2.5"), (2.0 / 3.0, "0.667"), (1234.567, "1234.57"), (0.012345, "0.0123")];
        for (number, text) in cases {
            assert_eq!(shown(Cell::Number(number)), text);
        }
        assert_eq!(shown(Cell::Number(-1999.999)), "-2000");
        assert_eq!(shown(Cell::Number(1e20)), "100000000000000000000");
    }
}
