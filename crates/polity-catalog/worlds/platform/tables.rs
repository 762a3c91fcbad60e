//! What the platform records of its own: its posts, and who dealt with whose.

use super::posts::Post;
use super::store::{Kind, NOWHERE, Store};
use polity_kernel::sight::{CellColumn, CellKind, Cells, TableKind};

const fn column(name: &'static str, kind: CellKind, doc: &'static str) -> CellColumn {
    CellColumn { name, kind, doc }
}

/// A row a post, in the round in which it appeared.
pub const POSTS: TableKind = TableKind {
    name: "posts",
    doc: "One row a post; what is shared or quoted is a post, too.",
    columns: &[
        column("post", CellKind::Whole, "its number, which acts name"),
        column("author", CellKind::Whole, "who wrote it, shared it or quoted it"),
        column("of", CellKind::Whole, "the post that it shares or quotes"),
        column("origin", CellKind::Whole, "the post whose content it shows: itself, unless it is a share"),
        column("root", CellKind::Whole, "the post at the beginning of its chain of shares and quotes"),
        column("depth", CellKind::Whole, "shares and quotes from there to it"),
        column("topic", CellKind::Whole, "its topic, 0 to 31"),
        column("seed", CellKind::Whole, "number of the seed that it is or comes from, from 1"),
        column("stance", CellKind::Number, "what it argues for, -1 to 1"),
        column("text", CellKind::Text, "its words, where it has some"),
    ],
};

/// In the order of [`Kind`], from [`Kind::Share`] on.
const REACTIONS: &[&str] = &["share", "quote", "comment", "like", "dislike", "report"];

/// A row a reaction.
pub const INFLUENCE: TableKind = TableKind {
    name: "influence",
    doc: "One row a reaction to a post that somebody was shown: who dealt with whose post.",
    columns: &[
        column("agent", CellKind::Whole, "who reacted"),
        column("act", CellKind::Word(REACTIONS), "how"),
        column("post", CellKind::Whole, "the post that it was shown"),
        column("by", CellKind::Whole, "who had written or shared that"),
        column("origin", CellKind::Whole, "the post whose content that shows"),
        column("writer", CellKind::Whole, "who had written that content"),
        column("age", CellKind::Whole, "rounds since the post that it was shown appeared"),
    ],
};

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
