//! The platform's own tables: its posts, and who reacted to whose.

use super::posts::NOWHERE;
use super::posts::Post;
use super::store::{Kind, Store};
use polity_kernel::interface::{CellColumn, CellKind, Cells, TableKind};

fn table<const N: usize>(
    name: &'static str,
    doc: &'static str,
    columns: [(&'static str, CellKind, &'static str); N],
) -> TableKind {
    let column = |(name, kind, doc): (&'static str, CellKind, &'static str)| CellColumn {
        name: name.into(),
        kind,
        doc: doc.into(),
    };
    TableKind { name: name.into(), doc: doc.into(), columns: columns.map(column).into() }
}

/// One row per post, in the round in which it appeared.
pub fn posts_table() -> TableKind {
    let doc = "One row per post; shares and quotes are posts, too.";
    let columns = [
        ("post", CellKind::Whole, "its number, by which acts refer to it"),
        ("author", CellKind::Whole, "who wrote it, shared it or quoted it"),
        ("of", CellKind::Whole, "the post that it shares or quotes"),
        ("origin", CellKind::Whole, "the post whose content it shows: itself, unless it is a share"),
        ("root", CellKind::Whole, "the post at the beginning of its chain of shares and quotes"),
        ("depth", CellKind::Whole, "number of shares and quotes from the root to it"),
        ("topic", CellKind::Whole, "its topic, 0 to 31"),
        ("seed", CellKind::Whole, "number of the seed that it is or comes from, from 1"),
        ("stance", CellKind::Number, "what it argues for, -1 to 1"),
        ("text", CellKind::Text, "its words, if it has any"),
    ];
    table("posts", doc, columns)
}

/// In the order of [`Kind`], from [`Kind::Share`] on.
const REACTIONS: &[&str] = &["share", "quote", "comment", "like", "dislike", "report"];

/// One row per reaction.
pub fn influence_table() -> TableKind {
    let doc = "One row per reaction to a post that somebody was shown: who reacted to whose post.";
    let columns = [
        ("agent", CellKind::Whole, "who reacted"),
        ("act", CellKind::Word(REACTIONS.iter().map(|name| (*name).into()).collect()), "how"),
        ("post", CellKind::Whole, "the post that the agent was shown"),
        ("by", CellKind::Whole, "who wrote or shared that post"),
        ("origin", CellKind::Whole, "the post whose content it shows"),
        ("writer", CellKind::Whole, "who wrote that content"),
        ("age", CellKind::Whole, "rounds since the post that the agent was shown appeared"),
    ];
    table("influence", doc, columns)
}

fn some(number: u32) -> Option<u32> {
    (number != NOWHERE).then_some(number)
}

pub fn posts(store: &Store) -> Vec<Cells> {
    let range = store.of_last_round();
    let rows = store.posts.rows(range.clone());
    let whole = |value: &dyn Fn(&Post) -> Option<u32>| Cells::Whole(rows.iter().map(value).collect());
    vec![
        Cells::Whole(range.clone().map(Some).collect()),
        whole(&|post| Some(post.author)),
        whole(&|post| some(post.of)),
        whole(&|post| Some(post.origin)),
        whole(&|post| Some(post.root)),
        whole(&|post| Some(u32::from(post.depth))),
        whole(&|post| Some(u32::from(post.topic))),
        whole(&|post| (post.seed > 0).then_some(post.seed)),
        Cells::Number(rows.iter().map(|post| f64::from(post.stance)).collect()),
        Cells::Text(range.map(|post| store.words(post).map(str::to_owned)).collect()),
    ]
}

pub fn influence(store: &Store) -> Vec<Cells> {
    let rows = &store.influenced;
    let post = |number: u32| &store.posts[number];
    let whole = |value: &dyn Fn(u32, u32) -> u32| {
        Cells::Whole(rows.iter().map(|(who, _, number)| Some(value(*who, *number))).collect())
    };
    let ended = store.round.saturating_sub(1);
    vec![
        whole(&|who, _| who),
        Cells::Word(rows.iter().map(|(_, kind, _)| *kind as u16 - Kind::Share as u16).collect()),
        whole(&|_, number| number),
        whole(&|_, number| post(number).author),
        whole(&|_, number| post(number).origin),
        whole(&|_, number| store.posts.origin_of(post(number)).author),
        whole(&|_, number| ended.saturating_sub(post(number).round)),
    ]
}
