//! Macros for a crate with its own leaves, besides the kernel's traits. `polity new` creates such a crate.

/// Declares the version of the library that a crate was written for, `polity::made_for!("0.1")`. With any other version the crate does
/// not compile, and this error comes before those caused by the change.
#[macro_export]
macro_rules! made_for {
    // The only place with this version; a test compares it with the crate's version.
    ("0.1") => {};
    ($version:literal) => {
        compile_error!(concat!(
            "this crate was made for version ",
            $version,
            " of the library polity, and is built with version 0.1. Use the library it was made for (the line `polity = ...` in \
             Cargo.toml), or compare it with what `polity new` of this version writes, change what differs and then the \
             number in `made_for!`"
        ));
    };
}

/// The texts beside a leaf's code: README.md, scenario.yaml and golden.json in the crate's folder. Call it in a file of `src/`.
/// A world with templates for minds names them: `leaf_files!("rules", "observation", "question")` are `mind/rules.md` and so on.
#[macro_export]
macro_rules! leaf_files {
    ($($prompt:literal),*) => {
        $crate::kernel::registry::LeafFiles {
            readme: include_str!("../README.md"),
            scenario: include_str!("../scenario.yaml"),
            golden: include_str!("../golden.json"),
            cite: "",
            prompts: &[$(($prompt, include_str!(concat!("../mind/", $prompt, ".md")))),*],
            folder: env!("CARGO_MANIFEST_DIR"),
        }
    };
}
