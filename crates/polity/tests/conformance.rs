//! Every leaf of the catalogue conforms, one test per leaf: `cargo nextest run -E 'binary(conformance) and test(worlds/opinion)'`.
//! `POLITY_BLESS=1` rewrites the goldens after an intended change.

use libtest_mimic::{Arguments, Failed, Trial};
use polity::conformance::{check, names};
use std::path::Path;
use std::process::ExitCode;

fn conforms(leaf: &str, folder: &str) -> Result<(), Failed> {
    let bless = std::env::var_os("POLITY_BLESS").is_some();
    let checked = check(&polity::registry(), leaf).ok_or("the registry has no such leaf")?;
    if bless {
        checked.write_golden(Path::new(folder))?;
    }
    let fails: Vec<&String> = checked.failures.iter().filter(|why| !(bless && why.contains("golden"))).collect();
    if fails.is_empty() { Ok(()) } else { Err(format!("{fails:#?}").into()) }
}

fn main() -> ExitCode {
    let leaves = names(&polity::registry());
    let trials = leaves.into_iter().map(|(leaf, folder)| Trial::test(leaf.clone(), move || conforms(&leaf, folder)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
