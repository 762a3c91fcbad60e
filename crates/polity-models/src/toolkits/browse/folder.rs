//! Local pages: `.html` files below a folder.

use super::page::Page;
use polity_kernel::tree::nearest;
use polity_store::disk::{Disk, EntryKind, RealDisk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use url::Url;

/// Pages of a folder.
const PAGES: usize = 10_000;
/// Folders within folders.
const DEPTH: usize = 20;
/// Pages that a search lists.
const LISTED: usize = 10;
/// The host of local pages in links; no real host can have this name (RFC 2606).
const HOST: &str = "local.invalid";

pub(super) struct Folder {
    /// Without links.
    root: PathBuf,
    /// Names of all pages, `sub/page.html`, in order.
    pages: Vec<String>,
}

/// The name of a page that a link leads to: local pages have no scheme.
pub(super) fn name_of(link: &Url) -> String {
    if link.host_str() != Some(HOST) {
        return link.to_string();
    }
    let name = percent_encoding::percent_decode_str(link.path().trim_start_matches('/')).decode_utf8_lossy();
    if name.is_empty() || name.ends_with('/') { format!("{name}index.html") } else { name.into_owned() }
}

impl Folder {
    pub(super) fn open(folder: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        let root = folder.canonicalize().map_err(told)?;
        let mut pages = Vec::new();
        collect(&root, "", 0, &mut pages)?;
        pages.sort_unstable();
        match pages.is_empty() {
            true => Err(format!("{} has no .html files", folder.display())),
            false => Ok(Folder { root, pages }),
        }
    }

    /// Reads a page; returns its name too, without what does not matter.
    pub(super) fn read(&self, name: &str) -> Result<(String, Page), String> {
        let plain = name.split(['#', '?']).next().unwrap_or_default().trim_start_matches("./");
        // Links were resolved when the folder was opened: only listed names are read.
        let Some(name) = self.pages.iter().find(|page| **page == plain) else {
            let meant = nearest(plain, self.pages.iter().map(String::as_str));
            let meant = meant.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            let first: Vec<&str> = self.pages.iter().take(LISTED).map(String::as_str).collect();
            let (first, count) = (first.join(", "), self.pages.len());
            return Err(format!("there is no page `{name}`{meant} (there are {count}: {first}{})", more(count)));
        };
        Ok((name.clone(), self.page(name)?))
    }

    fn page(&self, name: &str) -> Result<Page, String> {
        let unreadable = |error: std::io::Error| format!("the page `{name}` cannot be read: {}", error.kind());
        let path = self.root.join(name);
        // A folder on the way may have become a link since.
        let real = path.canonicalize().map_err(unreadable)?;
        if real != path {
            return Err(format!("the page `{name}` is refused: it is behind a link"));
        }
        if RealDisk.len(&path).map_err(unreadable)? > super::PAGE as u64 {
            return Err(format!("the page `{name}` is too large: more than {} bytes", super::PAGE));
        }
        let bytes = RealDisk.read(&path).map_err(unreadable)?;
        let mut base = Url::parse(&format!("http://{HOST}/")).map_err(|error| error.to_string())?;
        base.set_path(name);
        Ok(Page::of_html(&String::from_utf8_lossy(&bytes), &base))
    }

    /// Lists pages by how many words of the query they contain, then by how often, then by name.
    pub(super) fn search(&self, query: &str) -> Result<String, String> {
        let wanted: BTreeSet<String> = words(query).collect();
        if wanted.is_empty() {
            return Err("`query` has no words".into());
        }
        let mut found = Vec::new();
        for name in &self.pages {
            let Ok(page) = self.page(name) else { continue };
            let mut has: BTreeSet<String> = BTreeSet::new();
            let mut times = 0;
            let mut excerpt: Option<&str> = None;
            for line in std::iter::once(&page.title).chain(&page.lines) {
                let before = times;
                for word in words(line).filter(|word| wanted.contains(word)) {
                    times += 1;
                    has.insert(word);
                }
                if times > before && excerpt.is_none() {
                    excerpt = Some(line);
                }
            }
            if let Some(excerpt) = excerpt {
                let excerpt: String = excerpt.chars().take(200).collect();
                found.push((std::cmp::Reverse((has.len(), times)), name, format!("{}: {excerpt}", page.title)));
            }
        }
        found.sort_unstable();
        if found.is_empty() {
            return Ok("No local page contains any of these words.".into());
        }
        let lines: Vec<String> = found.iter().take(LISTED).map(|(_, name, text)| format!("{name} - {text}")).collect();
        let text = polity_store::printable::printable(&lines.join("\n")).into_owned();
        let head = format!("{} of {} local pages match; open one by its name.", found.len(), self.pages.len());
        Ok(format!("{head}\n{}", super::between_marks("results", &text)))
    }
}

fn more(count: usize) -> &'static str {
    if count > LISTED { ", ..." } else { "" }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Collects pages; neither links nor hidden files are followed.
fn collect(folder: &Path, prefix: &str, depth: usize, pages: &mut Vec<String>) -> Result<(), String> {
    for name in RealDisk.list(folder).map_err(|error| error.to_string())? {
        if name.starts_with('.') {
            continue;
        }
        let path = folder.join(&name);
        let end = Path::new(&name).extension().map(|end| end.to_ascii_lowercase());
        match RealDisk.kind(&path) {
            Ok(EntryKind::Folder) if depth < DEPTH => collect(&path, &format!("{prefix}{name}/"), depth + 1, pages)?,
            Ok(EntryKind::File) if end.is_some_and(|end| end == "html" || end == "htm") => {
                pages.push(format!("{prefix}{name}"));
            }
            _ => {}
        }
        if pages.len() > PAGES {
            return Err(format!("there are more than {PAGES} pages"));
        }
    }
    Ok(())
}
