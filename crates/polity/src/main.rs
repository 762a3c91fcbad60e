//! The polity command.

fn main() -> std::process::ExitCode {
    polity::cli::main(polity::registry())
}
