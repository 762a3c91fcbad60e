//! The command `polity`, with this crate's leaf.

/// Societies are faster with it than with the system's; yours to change.
#[global_allocator]
static MEMORY: polity::cli::Allocator = polity::cli::Allocator;

fn main() -> std::process::ExitCode {
    polity::cli::main(own_leaf::registry())
}
