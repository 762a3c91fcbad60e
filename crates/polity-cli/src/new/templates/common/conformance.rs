//! What every leaf must keep. `POLITY_BLESS=1 cargo test` writes golden.json anew, for a change that is meant.

#[test]
fn the_leaves_of_this_crate_conform() {
    let failures = polity::conformance::own_leaves(&own_leaf::registry());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
