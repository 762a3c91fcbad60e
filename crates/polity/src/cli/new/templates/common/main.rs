//! The command `polity`, with this crate's leaf.

fn main() -> std::process::ExitCode {
    polity::cli::main(own_leaf::registry())
}
