//! `browse`: a text browser over local pages and allowed hosts. README.md says what is shown and what is left out.

mod dom;
mod folder;
mod hidden;
mod page;
#[cfg(test)]
mod tests;

use super::http::{Asked, Fetcher};
use super::marks::between_marks;
use super::{Calling, Toolkit};
use crate::models::ProviderError;
use folder::Folder;
use page::Page;
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::tool::{Arguments, EffectClass, OutsideToolkit, ToolOutput, ToolSpec};
use polity_store::digest_of;
use polity_store::printable::{on_one_line, printable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

/// The toolkit's name.
pub const NAME: &str = "browse";
/// Bytes of a page that are read.
const PAGE: usize = 2_000_000;
/// Bytes of an address.
const ADDRESS: usize = 1_000;
/// Bytes of a session's state; the oldest pages are forgotten first.
const STATE: usize = 3_000;

/// What a scenario may set. At least one of `folder` and `hosts` must be given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrowseParams {
    /// A folder of `.html` files.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// The hosts whose pages may be opened, as for the toolkit `http`.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Words of a screen, 50 to 5,000.
    #[serde(default = "default_words")]
    pub words: usize,
    /// Seconds in which a host must answer, 1 to 600.
    #[serde(default = "default_seconds")]
    pub seconds: u64,
}

fn default_words() -> usize {
    500
}

fn default_seconds() -> u64 {
    20
}

/// Adds the declaration.
pub(super) fn register(registry: &mut Registry) {
    registry.outside_toolkit::<Browse>(LeafFiles { readme: include_str!("README.md"), ..LeafFiles::default() });
}

impl OutsideToolkit for Browse {
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "A text browser over local pages and listed hosts";
    type Params = BrowseParams;

    fn tools(params: BrowseParams, _: Option<&[ToolSpec]>) -> Result<Vec<ToolSpec>, Invalid> {
        let given = params.folder.is_some() || !params.hosts.is_empty();
        Invalid::unless(given, "folder", "is missing: give a `folder` of pages, `hosts`, or both")?;
        Ok(specs(params.folder.is_some()))
    }
}

/// The toolkit.
pub struct Browse {
    folder: Option<Arc<Folder>>,
    hosts: Option<Fetcher>,
    words: usize,
}

/// Where a session is. Everything else is read again from the page.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
struct Place {
    /// A name in the folder or an address; empty at first.
    page: String,
    /// The screen, from 0.
    screen: usize,
    /// The digest of the page as it was shown.
    seen: String,
    /// Earlier pages with their screens, the latest last.
    history: Vec<(String, usize)>,
}

/// A page that was read.
struct Loaded {
    /// Its name or address, after redirects.
    name: String,
    page: Page,
    seen: String,
}

impl Browse {
    /// Checks the parameters and the folder; no host is asked yet.
    ///
    /// # Errors
    /// The parameter that does not fit.
    pub fn open(params: &BrowseParams) -> Result<Self, Invalid> {
        Invalid::within(50..=5_000, "words", params.words)?;
        Invalid::within(1..=600, "seconds", params.seconds)?;
        let given = params.folder.is_some() || !params.hosts.is_empty();
        Invalid::unless(given, "folder", "is missing: give a `folder` of pages, `hosts`, or both")?;
        let folder = params.folder.as_ref().map(|folder| Folder::open(folder)).transpose();
        let folder = folder.map_err(|message| Invalid { key: "folder".into(), message })?;
        let fetcher = Fetcher::new(&params.hosts, params.seconds);
        let fetcher = fetcher.map_err(|message| Invalid { key: "hosts".into(), message })?;
        let hosts = (!params.hosts.is_empty()).then_some(fetcher);
        Ok(Browse { folder: folder.map(Arc::new), hosts, words: params.words })
    }

    /// Reads a page, by its name or its address.
    async fn load(&self, name: &str) -> Result<Loaded, String> {
        if name.len() > ADDRESS {
            return Err(format!("an address may have {ADDRESS} bytes at most"));
        }
        let (name, page) = match name.split_once("://") {
            Some(_) => self.load_from_host(name).await?,
            None => {
                let Some(folder) = self.folder.clone() else {
                    return Err(format!(
                        "`{name}` is no address, and there are no local pages: write `https://host/path`"
                    ));
                };
                let name = name.to_string();
                blocking(move || folder.read(&name)).await?
            }
        };
        let mut text = page.lines.join("\n");
        page.links.iter().for_each(|link| text.push_str(link.as_str()));
        let seen = format!("{:016x}", digest_of(text.as_bytes()).0 >> 64);
        Ok(Loaded { name, page, seen })
    }

    async fn load_from_host(&self, name: &str) -> Result<(String, Page), String> {
        let url = Url::parse(name).map_err(|error| format!("`{name}` is no address: {error}"))?;
        let Some(hosts) = &self.hosts else {
            return Err(format!("`{name}` is refused: only the local pages may be opened"));
        };
        let fetched = hosts.fetch(Asked::get(url), PAGE).await?;
        if !fetched.status.is_success() {
            return Err(format!("`{}` answered with status {}", fetched.url, fetched.status));
        }
        let kind = fetched.content_type.split(';').next().unwrap_or_default().trim();
        let Some((text, _)) = fetched.text() else {
            return Err(format!("`{}` is no text, but `{kind}`", fetched.url));
        };
        let url = fetched.url.clone();
        let cut = fetched.cut;
        let mut page = match kind {
            "" | "text/html" | "application/xhtml+xml" => blocking(move || Ok(Page::of_html(&text, &url))).await?,
            kind if kind.starts_with("text/") || kind == "application/json" => Page::of_text(&text),
            kind => return Err(format!("`{}` is no page, but `{kind}`", fetched.url)),
        };
        page.cut |= cut;
        match fetched.url.as_str().len() > ADDRESS {
            true => Err(format!("an address may have {ADDRESS} bytes at most")),
            false => Ok((fetched.url.into(), page)),
        }
    }

    async fn act(&self, tool: &str, arguments: &Arguments, place: Place) -> Result<(String, Place), String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().trim();
        match tool {
            "open" => {
                let loaded = self.load(text("page")).await?;
                self.show(&loaded, &place.onward(&loaded), "")
            }
            "back" => {
                let mut place = place;
                let (page, screen) = place.history.pop().ok_or("there is no earlier page")?;
                let loaded = self.load(&page).await?;
                let (page, seen) = (loaded.name.clone(), loaded.seen.clone());
                self.show(&loaded, &Place { page, screen, seen, ..place }, "")
            }
            "search" => {
                let folder = self.folder.clone().ok_or("there are no local pages to search")?;
                let query = text("query").to_string();
                let found = blocking(move || folder.search(&query)).await?;
                Ok((found, place))
            }
            _ => {
                if place.page.is_empty() {
                    return Err("no page is open: use `open`".into());
                }
                let loaded = self.load(&place.page).await?;
                self.act_on(tool, arguments, place, loaded).await
            }
        }
    }

    /// What works on the page that is open.
    async fn act_on(
        &self,
        tool: &str,
        arguments: &Arguments,
        place: Place,
        loaded: Loaded,
    ) -> Result<(String, Place), String> {
        let changed = loaded.seen != place.seen;
        let note = if changed { "The page has changed since it was shown. " } else { "" };
        let screens = loaded.page.screens(self.words);
        let at = |screen: usize| Place { screen, seen: loaded.seen.clone(), ..place.clone() };
        match tool {
            "next" if place.screen + 1 >= screens.len() => Err(format!("{note}This is the last screen.")),
            "next" => self.show(&loaded, &at(place.screen + 1), note),
            "find" => {
                let wanted = plain(arguments.get("text").and_then(Value::as_str).unwrap_or_default());
                if wanted.is_empty() {
                    return Err("`text` is empty".into());
                }
                // From the next screen on to the end, then from the start to this one.
                let order = (0..screens.len()).map(|step| (place.screen + 1 + step) % screens.len());
                let holding: Vec<usize> = order.filter(|&screen| plain(&screens[screen]).contains(&wanted)).collect();
                let Some(&first) = holding.first() else {
                    return Err(format!(
                        "{note}The page does not contain this text; `find` ignores case and line breaks."
                    ));
                };
                self.show(&loaded, &at(first), &format!("{note}Found on {} of the page's screens. ", holding.len()))
            }
            "follow" if changed => {
                Err("the page has changed since it was shown, and so may its links: `open` it again".into())
            }
            "follow" => {
                let count = loaded.page.links.len();
                let number = arguments.get("link").and_then(Value::as_u64).and_then(|link| usize::try_from(link).ok());
                let link = number.and_then(|number| number.checked_sub(1)).and_then(|at| loaded.page.links.get(at));
                let link = link.ok_or_else(|| match count {
                    0 => "the page has no links".to_string(),
                    _ => format!("`link` must be the number of a link of this page, 1 to {count}"),
                })?;
                let to = self.load(&folder::name_of(link)).await?;
                self.show(&to, &place.onward(&to), "")
            }
            other => Err(format!("there is no tool `{other}`")),
        }
    }

    /// Shows the screen of a place.
    fn show(&self, loaded: &Loaded, place: &Place, note: &str) -> Result<(String, Place), String> {
        let screens = loaded.page.screens(self.words);
        // The page may have become shorter since.
        let screen = place.screen.min(screens.len() - 1);
        let mut head = format!("{note}{}, screen {} of {}.", on_one_line(&loaded.name), screen + 1, screens.len());
        match loaded.page.links.len() {
            0 => {}
            1 => head.push_str(" 1 link on the page, numbered in brackets."),
            count => head.push_str(&format!(" {count} links on the page, numbered in brackets.")),
        }
        if loaded.page.hidden > 0 {
            head.push_str(&format!(" Hidden text was left out in {} places.", loaded.page.hidden));
        }
        if loaded.page.cut {
            head.push_str(" The page is too large or too deeply nested: its end was left out.");
        }
        let title = match loaded.page.title.as_str() {
            "" => String::new(),
            title => format!("Title: {title}\n\n"),
        };
        let text = printable(&format!("{title}{}", screens[screen])).into_owned();
        Ok((format!("{head}\n{}", between_marks("page", &text)), Place { screen, ..place.clone() }))
    }
}

impl Place {
    /// The start of another page, with this one in the history.
    fn onward(&self, to: &Loaded) -> Place {
        let mut history = self.history.clone();
        if !self.page.is_empty() {
            history.push((self.page.clone(), self.screen));
        }
        Place { page: to.name.clone(), screen: 0, seen: to.seen.clone(), history }
    }

    fn read(state: &str) -> Result<Place, ProviderError> {
        if state.is_empty() {
            return Ok(Place::default());
        }
        serde_json::from_str(state)
            .map_err(|error| ProviderError::Fatal { why: format!("`{NAME}`: the session's state is damaged: {error}") })
    }

    fn write(mut self) -> String {
        loop {
            let text = json!(self).to_string();
            if text.len() <= STATE || self.history.is_empty() {
                return text;
            }
            self.history.remove(0);
        }
    }
}

/// The tools of a browser with local pages, or without.
fn specs(local: bool) -> Vec<ToolSpec> {
    let tool = |name: &str, tells: &str, argument: Option<(&str, &str)>, effect| {
        let schema = match argument {
            Some((argument, kind)) => json!({
                "type": "object", "properties": {argument: {"type": kind}}, "required": [argument],
                "additionalProperties": false,
            }),
            None => json!({"type": "object", "properties": {}, "additionalProperties": false}),
        };
        ToolSpec::new(name, tells, &schema, effect).in_session(NAME)
    };
    let (text, moves) = (|name| Some((name, "string")), EffectClass::Writes);
    let mut tools = vec![
        tool("open", "Opens a page by its name or its address and shows its first screen.", text("page"), moves),
        tool("follow", "Opens the page behind a numbered link of the open page.", Some(("link", "integer")), moves),
        tool("find", "Goes to the next screen of the open page that contains a text.", text("text"), moves),
        tool("next", "Shows the next screen of the open page.", None, moves),
        tool("back", "Goes back to the page before.", None, moves),
    ];
    if local {
        let tells = "Lists local pages that contain the words of a query, the best first.";
        tools.push(tool("search", tells, text("query"), EffectClass::Reads));
    }
    tools
}

impl Toolkit for Browse {
    fn tools(&self) -> Vec<ToolSpec> {
        specs(self.folder.is_some())
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments, state: &'a str) -> Calling<'a> {
        Box::pin(async move {
            match self.act(tool, arguments, Place::read(state)?).await {
                Ok((text, place)) => Ok(ToolOutput { text, error: false, state: place.write() }),
                Err(why) => Ok(ToolOutput { state: state.into(), ..ToolOutput::error(printable(&why).into_owned()) }),
            }
        })
    }
}

/// Work on files and pages, away from the tasks that wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(format!("the page cannot be read: {error}")))
}

/// A text for comparison: lower case, single spaces.
fn plain(text: &str) -> String {
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}
