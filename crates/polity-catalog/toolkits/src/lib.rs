//! Toolkits of the catalogue, one folder each. Leaves do not name each other; scenarios compose them.
//!
//! How toolkits read the files of a scenario and the arguments of calls is in [`sources`] and [`arguments`].
//! `leaves.rs` beside it collects the folders, so there is no list to maintain. The tests of a leaf are in its folder.

pub mod arguments;
pub mod sources;

include!(concat!(env!("OUT_DIR"), "/leaves.rs"));

#[cfg(test)]
mod tests {
    use polity_kernel::registry::Registry;

    #[test]
    fn every_toolkit_is_registered_under_the_name_of_its_folder() {
        let mut registry = Registry::new();
        crate::register_all(&mut registry);
        for leaf in registry.toolkits() {
            assert!(leaf.files.folder.ends_with(leaf.name), "{} is in {}", leaf.name, leaf.files.folder);
            assert!(leaf.files.readme.starts_with(&format!("# {}\n", leaf.name)), "{}", leaf.name);
        }
        assert!(!registry.toolkits().is_empty());
    }
}
