//! Documents that are searched. See README.md.

#[cfg(test)]
mod tests;

use crate::arguments::{count, nearest, text, whole};
use crate::sources::{Content, Source, cell, column, sources};
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::scenario::Inputs;
use polity_kernel::tool::{Arguments, EffectClass, PureToolkit, ToolOutput, ToolSpec};
use polity_recall::{Bm25Settings, Date, Document, Index, Method, Passage, Settings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Maximum number of passages that a search returns.
const MOST: usize = 50;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.toolkit::<Search>(files);
}

/// Parameters of a search.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// A file of documents: a table (CSV, TSV or JSON lines) with the columns `id`, `text` and, if known, `title` and `date`; or a
    /// text (Markdown or plain), which is one document.
    file: Option<String>,
    /// Further such files.
    files: Vec<String>,
    /// A folder of texts; each file is a document.
    folder: Option<String>,
    /// How passages are ranked.
    method: Method,
    /// How many passages a search returns, unless the call says otherwise.
    #[schemars(range(min = 1, max = 50))]
    k: usize,
    /// Leaves out documents dated on this day (`YEAR-MONTH-DAY`) or later, and undated ones, as if they did not exist.
    before: Option<String>,
    /// Maximum number of words of a passage.
    #[schemars(range(min = 10, max = 2000))]
    passage_words: usize,
    /// Parameters of BM25.
    bm25: Bm25Settings,
    /// Dimensions of the vectors of `dense` and `hybrid`.
    #[schemars(range(min = 16, max = 8192))]
    dimensions: usize,
}

impl Default for Params {
    fn default() -> Self {
        let Settings { method, bm25, dimensions, passage_words } = Settings::default();
        Params {
            file: None,
            files: Vec::new(),
            folder: None,
            method,
            k: 5,
            before: None,
            passage_words,
            bm25,
            dimensions,
        }
    }
}

/// An index of documents.
pub struct Search {
    index: Index,
    k: usize,
    before: Option<Date>,
}

/// Returns the documents of a file.
fn documents(source: Source<'_>) -> Result<Vec<Document>, Invalid> {
    let table = match source.content {
        Content::Text(text) => {
            let document = Document { id: source.path.to_owned(), text: text.to_owned(), ..Document::default() };
            return Ok(vec![titled(document)]);
        }
        Content::Table(table) => table,
    };
    let columns = ["id", "text", "title", "date"].map(|name| column(table, name));
    let [Some(id), Some(body), title, date] = columns else {
        let names: Vec<&str> = table.columns().map(|(name, _)| name).collect();
        let message = "needs the columns `id` and `text` (and `title` and `date`, if known)";
        return Err(source.invalid(format!("{message}; it has {}", names.join(", "))));
    };
    let document = |row| {
        let date = match cell(date, row).as_str() {
            "" => None,
            text => Some(text.parse().map_err(|error| source.invalid(format!("row {}: {error}", row + 1)))?),
        };
        let document =
            Document { id: cell(Some(id), row), title: cell(title, row), text: body.cell(row).to_string(), date };
        Ok(if title.is_none() { titled(document) } else { document })
    };
    (0..table.rows()).map(document).collect()
}

/// Takes the first heading of a Markdown text as its title.
fn titled(document: Document) -> Document {
    let heading = document.text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
    Document { title: heading.trim().to_owned(), ..document }
}

/// Returns what a document is called: its title and its date, as far as they are known, after a space.
fn name(document: &Document) -> String {
    let mut name = String::new();
    if !document.title.is_empty() {
        name.push_str(&format!(" {}", document.title.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    if let Some(date) = document.date {
        name.push_str(&format!(" ({date})"));
    }
    name
}

impl PureToolkit for Search {
    const NAME: &'static str = "search";
    const SUMMARY: &'static str = "Finds passages in documents, to be cited";
    type Params = Params;

    fn open(params: Params, inputs: &Inputs) -> Result<Self, Invalid> {
        let Params { file, files, folder, method, k, before, passage_words, bm25, dimensions } = params;
        Invalid::within(1..=MOST, "k", k)?;
        Invalid::within(10..=2_000, "passage_words", passage_words)?;
        Invalid::within(16..=8_192, "dimensions", dimensions)?;
        Invalid::within(0.0..=100.0, "bm25.k1", bm25.k1)?;
        Invalid::within(0.0..=1.0, "bm25.b", bm25.b)?;
        let before: Option<Date> = match before {
            None => None,
            Some(text) => {
                let invalid =
                    |error: polity_recall::DateError| Invalid { key: "before".into(), message: error.to_string() };
                Some(text.parse().map_err(invalid)?)
            }
        };
        let sources = sources(file.as_deref(), &files, folder.as_deref(), inputs)?;
        let mut all: Vec<Document> = Vec::new();
        for source in sources {
            all.extend(documents(source)?);
        }
        if let Some(day) = before {
            let (found, undated) = (all.len(), all.iter().filter(|document| document.date.is_none()).count());
            all.retain(|document| document.date.is_some_and(|date| date < day));
            let message =
                format!("no document is dated before {day}: there are {found}, of which {undated} have no date");
            Invalid::unless(!all.is_empty(), "before", message)?;
        }
        let settings = Settings { method, bm25, dimensions, passage_words };
        let index =
            Index::new(all, &settings).map_err(|error| Invalid { key: String::new(), message: error.to_string() })?;
        Ok(Search { index, k, before })
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let documents = count(self.index.documents().len(), "document", "documents");
        let dated = self.before.map_or(String::new(), |day| format!(", all dated before {day}"));
        let doc = format!(
            "Searches {documents}{dated}. Returns the passages that fit best, with the id to cite each by in square brackets."
        );
        let search = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "the words to look for"},
                "k": {
                    "type": "integer", "minimum": 1, "maximum": MOST,
                    "description": format!("maximum number of passages; default {}", self.k),
                },
                "before": {"type": "string", "description": "only documents dated before this day, YEAR-MONTH-DAY"},
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        let read = json!({
            "type": "object",
            "properties": {"id": {"type": "string", "description": "the id of a document, or of a passage: the document's id, # and a number"}},
            "required": ["id"],
            "additionalProperties": false,
        });
        vec![
            ToolSpec::new("search", &doc, &search, EffectClass::Pure),
            ToolSpec::new("read", "Returns a whole document, or one passage of it.", &read, EffectClass::Pure),
        ]
    }

    fn call(&self, tool: &str, arguments: &Arguments) -> ToolOutput {
        let called = match tool {
            "search" => self.search(arguments),
            "read" => self.read(text(arguments, "id")),
            _ => Err(format!("there is no tool `{tool}`")),
        };
        called.map_or_else(ToolOutput::error, ToolOutput::text)
    }
}

impl Search {
    fn search(&self, arguments: &Arguments) -> Result<String, String> {
        let query = text(arguments, "query");
        if query.is_empty() {
            return Err("the query is empty; give the words to look for".into());
        }
        let before: Option<Date> = match text(arguments, "before") {
            "" => None,
            day => Some(day.parse().map_err(|error| format!("before: {error}"))?),
        };
        let k = whole(arguments, "k").unwrap_or(self.k).clamp(1, MOST);
        let hits = self.index.search(query, k, before);
        if hits.is_empty() {
            let when = before.map_or(String::new(), |day| format!(" in documents dated before {day}"));
            return Ok(format!("No passage{when} fits `{query}`. Try other words."));
        }
        let shown = (1..).zip(&hits).map(|(rank, hit)| {
            let Passage { document, text, .. } = &hit.passage;
            format!("{rank}. [{}]{}\n{text}", hit.passage.citation(), name(document))
        });
        Ok(shown.collect::<Vec<_>>().join("\n\n"))
    }

    fn read(&self, id: &str) -> Result<String, String> {
        // Models copy the brackets.
        let id = id.trim_matches(['[', ']']);
        if let Some((document, passages)) = self.index.document(id) {
            let parts = passages.iter().map(|passage| format!("[{}]\n{}", passage.citation(), passage.text));
            let parts = parts.collect::<Vec<_>>().join("\n\n");
            return Ok(format!(
                "[{id}]{}, {}\n\n{parts}",
                name(document),
                count(passages.len(), "passage", "passages")
            ));
        }
        if let Some(passage) = self.index.passage(id) {
            return Ok(format!("[{id}]{}\n{}", name(passage.document), passage.text));
        }
        if let Some((whole, (_, passages))) =
            id.rsplit_once('#').and_then(|(whole, _)| Some((whole, self.index.document(whole)?)))
        {
            let has = count(passages.len(), "passage", "passages");
            return Err(format!(
                "there is no `{id}`: `{whole}` has {has}, from `{whole}#1` to `{whole}#{}`",
                passages.len()
            ));
        }
        let known = self.index.documents().iter().map(|document| document.id.as_str());
        Err(format!("there is no document `{id}`{}", nearest(id, known)))
    }
}
