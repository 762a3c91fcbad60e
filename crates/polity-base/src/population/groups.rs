//! Groups of people: those with the same values in one or several columns.

use super::table::shown_number;
use super::{Column, Table, TableError};
use schemars::JsonSchema;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Names of columns, such as those that define groups: one, or a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum By {
    /// One column.
    One(String),
    /// Several columns; a group shares its values in all of them.
    All(Vec<String>),
}

impl By {
    /// Returns the names of the columns.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            By::One(name) => std::slice::from_ref(name),
            By::All(names) => names,
        }
    }
}

impl From<&str> for By {
    fn from(name: &str) -> Self {
        By::One(name.to_owned())
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" and "))
    }
}

impl<'de> Deserialize<'de> for By {
    // Manual, because an untagged enum would lose the location of an error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = By;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a column, or a list of names")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<By, E> {
                Ok(By::One(name.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<By, A::Error> {
                let mut all: Vec<String> = Vec::new();
                while let Some(name) = names.next_element::<String>()? {
                    if all.contains(&name) {
                        return Err(A::Error::custom(format!("the column `{name}` is listed twice")));
                    }
                    all.push(name);
                }
                if all.is_empty() {
                    return Err(A::Error::custom("the list of columns is empty"));
                }
                Ok(By::All(all))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// The groups of a table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The group of each row.
    pub of_row: Vec<u32>,
    /// The values of each group, as `party=green` or `party=green, school=3`. Numbers ascend, missing ones last; words stand in order of
    /// first appearance. The first column varies slowest.
    pub labels: Vec<String>,
}

impl Table {
    /// Returns the groups of rows with the same values in these columns.
    ///
    /// ```
    /// use polity_base::population::groups::By;
    /// use polity_base::population::{Column, Table};
    ///
    /// let table = Table::new(vec![("age".into(), Column::Number(vec![40.0, 20.0, 40.0]))])?;
    /// let groups = table.groups(&By::from("age"))?;
    /// assert_eq!((groups.of_row, groups.labels), (vec![1, 0, 1], vec!["age=20".into(), "age=40".into()]));
    /// # Ok::<(), polity_base::population::TableError>(())
    /// ```
    ///
    /// # Errors
    /// An unknown column, or one that mixes numbers and words.
    pub fn groups(&self, by: &By) -> Result<Groups, TableError> {
        let mut groups = Groups { of_row: vec![0; self.rows], labels: vec![String::new()] };
        for (i, name) in by.names().iter().enumerate() {
            let (codes, values) = self.levels(name)?;
            let mut places = BTreeMap::new();
            let pairs: Vec<(u32, u32)> = groups.of_row.into_iter().zip(codes).collect();
            pairs.iter().for_each(|pair| _ = places.insert(*pair, 0u32));
            let mut labels = Vec::with_capacity(places.len());
            for (place, ((group, level), number)) in places.iter_mut().enumerate() {
                *number = place as u32;
                let (before, value) = (&groups.labels[*group as usize], &values[*level as usize]);
                labels.push(if i == 0 { format!("{name}={value}") } else { format!("{before}, {name}={value}") });
            }
            groups = Groups { of_row: pairs.iter().map(|pair| places[pair]).collect(), labels };
        }
        Ok(groups)
    }

    /// Returns the level of each row in a column, and what the levels are.
    fn levels(&self, name: &str) -> Result<(Vec<u32>, Vec<String>), TableError> {
        let index = self.index(name)?;
        // A single bad cell makes words of numbers, and each number a group of its own.
        if let Some(mixture) = self.mixture(index).strip_prefix("; ") {
            return Err(TableError::new(name, format!("{mixture}; correct it, or write words in all rows")));
        }
        Ok(match &self.columns[index] {
            Column::Text { codes, words } => (codes.clone(), words.clone()),
            Column::Number(values) => {
                // -0 and 0 are one value, and so are all NaNs: their bits depend on the processor.
                let plain = |value: &f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
                let mut distinct: Vec<f64> = values.iter().map(plain).collect();
                distinct.sort_unstable_by(f64::total_cmp);
                distinct.dedup_by(|a, b| a.total_cmp(b).is_eq());
                let level =
                    |value: &f64| distinct.partition_point(|other| other.total_cmp(&plain(value)).is_lt()) as u32;
                (values.iter().map(level).collect(), distinct.iter().map(|value| shown_number(*value)).collect())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::TextBuilder;
    use super::*;

    fn people() -> Table {
        let mut words = TextBuilder::default();
        ["red", "green", "red", "green", "red"].iter().for_each(|word| words.push(word));
        let school = Column::Number(vec![2.0, 1.0, 1.0, -0.0, 0.0]);
        Table::new(vec![("party".into(), words.finish()), ("school".into(), school)]).unwrap()
    }

    #[test]
    fn rows_with_the_same_values_are_a_group() {
        let of = |by: By| people().groups(&by).unwrap();
        assert_eq!(
            of(By::from("party")),
            Groups { of_row: vec![0, 1, 0, 1, 0], labels: vec!["party=red".into(), "party=green".into()] }
        );
        assert_eq!(of(By::from("school")).of_row, [2, 1, 1, 0, 0]);
        let gaps = Column::Number(vec![f64::NAN, 3.0, -f64::NAN]);
        let gaps = Table::new(vec![("age".into(), gaps)]).unwrap().groups(&By::from("age")).unwrap();
        assert_eq!((gaps.of_row, gaps.labels), (vec![1, 0, 1], vec!["age=3".into(), "age=missing".into()]));
        let both = of(By::All(vec!["party".into(), "school".into()]));
        let labels = ["red, school=0", "red, school=1", "red, school=2", "green, school=0", "green, school=1"];
        assert_eq!(both.labels, labels.map(|label| format!("party={label}")));
        assert_eq!(both.of_row, [2, 4, 1, 3, 0]);
    }

    #[test]
    fn names_are_read_and_checked() {
        let read = |json: &str| serde_json::from_str::<By>(json);
        assert_eq!(read("\"party\"").unwrap().names(), ["party"]);
        assert_eq!(read("[\"party\", \"school\"]").unwrap().to_string(), "party and school");
        assert!(read("[]").unwrap_err().to_string().contains("empty"));
        assert!(read("[\"a\", \"a\"]").unwrap_err().to_string().contains("listed twice"));
        assert!(people().groups(&By::from("patry")).unwrap_err().to_string().contains("did you mean `party`?"));
    }
}
