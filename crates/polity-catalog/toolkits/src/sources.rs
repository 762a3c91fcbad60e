//! The files that a toolkit's parameters name.

use polity_kernel::Invalid;
use polity_kernel::population::{Column, Table};
use polity_kernel::scenario::Inputs;

/// A file that the parameters name, or a folder.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its path, as written.
    pub path: &'a str,
    /// Its content.
    pub content: Content<'a>,
}

/// The content of a source.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Rows and columns. A folder has the columns `id`, the path of a file in it, and `text`.
    Table(&'a Table),
    /// Text.
    Text(&'a str),
}

/// Returns what `file`, `files` and `folder` name, in this order.
///
/// # Errors
/// Nothing is named, or it is neither a table nor a text.
pub fn sources<'a>(
    file: Option<&'a str>,
    files: &'a [String],
    folder: Option<&'a str>,
    inputs: &'a Inputs,
) -> Result<Vec<Source<'a>>, Invalid> {
    let listed = files.iter().enumerate().map(|(i, path)| (format!("files[{i}]"), path.as_str()));
    let named = file.map(|path| ("file".to_owned(), path)).into_iter().chain(listed);
    let named = named.chain(folder.map(|path| ("folder".to_owned(), path)));
    let mut sources = Vec::new();
    for (key, path) in named {
        let content = match (inputs.tables.get(path), inputs.texts.get(path)) {
            (Some(table), _) => Content::Table(table),
            (None, Some(text)) => Content::Text(text),
            (None, None) => {
                let message = format!("`{path}` is neither a table (.csv, .tsv, .jsonl) nor a text (.md, .txt, .html)");
                return Err(Invalid { key, message });
            }
        };
        sources.push(Source { path, content });
    }
    Invalid::unless(!sources.is_empty(), "", "names no file; give it `file` or `files`")?;
    Ok(sources)
}

impl Source<'_> {
    /// Makes an error about the content. Such an error blames the toolkit as a whole and names the file.
    pub fn invalid(&self, message: impl AsRef<str>) -> Invalid {
        Invalid { key: String::new(), message: format!("`{}`: {}", self.path, message.as_ref()) }
    }
}

/// Returns a column of a table, if it has one of that name.
#[must_use]
pub fn column<'a>(table: &'a Table, name: &str) -> Option<&'a Column> {
    table.columns().find(|(other, _)| *other == name).map(|(_, column)| column)
}

/// Returns a cell as text, without the space around it; empty if there is no such column.
#[must_use]
pub fn cell(column: Option<&Column>, row: usize) -> String {
    column.map_or_else(String::new, |column| column.cell(row).to_string().trim().to_owned())
}
