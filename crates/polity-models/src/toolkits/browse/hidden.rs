//! What a reader of a page would not see: by attributes, by styles on elements, and by simple rules of the page's own style sheets.

use super::dom::{Dom, Kind, Node};
use std::collections::BTreeSet;

/// Selectors of one name each (`div`, `.class`, `#id`) whose rules hide.
#[derive(Default)]
pub(super) struct Sheet(BTreeSet<String>);

impl Sheet {
    /// Reads the style sheets in a page. Rules with more than one name are not understood, and hide nothing.
    pub(super) fn of(dom: &Dom) -> Sheet {
        let mut sheet = Sheet::default();
        for node in dom.nodes.iter().filter(|node| node.tag() == "style") {
            for &child in &node.children {
                let Kind::Text(css) = &dom.nodes[child].kind else { continue };
                for rule in without_comments(css).split('}') {
                    let Some((selectors, style)) = rule.rsplit_once('{') else { continue };
                    // What comes before is the condition of a block of rules: for other media than screens it does not count.
                    let (media, selectors) = selectors.rsplit_once('{').unwrap_or(("", selectors));
                    if hides(style) && !media.contains("print") {
                        sheet.0.extend(selectors.split(',').map(|selector| selector.trim().to_ascii_lowercase()));
                    }
                }
            }
        }
        sheet
    }

    /// Whether an element, and all in it, is hidden.
    pub(super) fn hides(&self, node: &Node) -> bool {
        let listed = |selector: String| self.0.contains(&selector.to_ascii_lowercase());
        node.attribute("hidden").is_some()
            || node.attribute("style").is_some_and(hides)
            || (node.tag() == "font"
                && node.attribute("color").is_some_and(|color| is_white(&color.to_ascii_lowercase())))
            || (!self.0.is_empty()
                && !node.tag().is_empty()
                && (listed(node.tag().into())
                    || node.attribute("id").is_some_and(|id| listed(format!("#{id}")))
                    || node
                        .attribute("class")
                        .is_some_and(|classes| classes.split_whitespace().any(|class| listed(format!(".{class}"))))))
    }
}

fn without_comments(css: &str) -> String {
    let mut pieces = css.split("/*");
    let first = pieces.next().unwrap_or_default().to_string();
    pieces.fold(first, |all, piece| all + piece.split_once("*/").map_or("", |(_, rest)| rest))
}

/// Whether a style hides what it applies to.
fn hides(style: &str) -> bool {
    let style = style.to_ascii_lowercase();
    let declared = |name: &str| {
        let mut latest = style.rsplit(';').filter_map(|one| one.split_once(':'));
        latest
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().trim_end_matches("!important").trim().to_string())
    };
    let is = |name: &str, values: &[&str]| declared(name).is_some_and(|value| values.contains(&value.as_str()));
    // 0, 0.01, 1px, 0%.
    let at_most = |name: &str, most: f64| {
        declared(name).is_some_and(|value| {
            let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
            digits.parse::<f64>().is_ok_and(|number| number <= most)
        })
    };
    let far = |name: &str| at_most(name, -500.0);
    let background = declared("background-color").or_else(|| declared("background"));
    let unseen = declared("color").is_some_and(|color| match &background {
        _ if color == "transparent" => true,
        Some(background) => background == &color || (is_white(background) && is_white(&color)),
        // Pages are white unless they say otherwise.
        None => is_white(&color),
    });
    unseen
        || is("display", &["none"])
        || is("visibility", &["hidden", "collapse"])
        || is("content-visibility", &["hidden"])
        || at_most("opacity", 0.05)
        || at_most("font-size", 2.0)
            && !declared("font-size").is_some_and(|size| size.ends_with("em") && !size.starts_with("0"))
        || ["left", "top", "right", "text-indent", "margin-left", "margin-top"].into_iter().any(far)
        || (is("overflow", &["hidden"])
            && (at_most("height", 1.0) || at_most("width", 1.0) || at_most("max-height", 1.0)))
        || declared("clip")
            .is_some_and(|clip| clip.replace([' ', ','], "").starts_with("rect(000") || clip.contains("rect(1px"))
        || declared("transform").is_some_and(|change| change.contains("scale(0)"))
}

fn is_white(color: &str) -> bool {
    let color = color.replace(' ', "");
    matches!(color.as_str(), "white" | "#fff" | "#ffffff" | "snow" | "ivory")
        || ["#fe", "#fd", "#fc"]
            .iter()
            .any(|start| color.starts_with(start) && color.len() == 7 && color[3..].starts_with('f'))
        || ["rgb(255,255,255", "rgba(255,255,255", "hsl(0,0%,100%"].iter().any(|start| color.starts_with(start))
}

/// Whether a character has no width, so that it hides text or splits words.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
