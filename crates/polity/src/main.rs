//! The polity command.

/// Rounds allocate and free the same blocks of memory again and again; the allocators of glibc and musl return them to the system in
/// between.
#[global_allocator]
static MEMORY: polity::cli::Allocator = polity::cli::Allocator;

fn main() -> std::process::ExitCode {
    polity::cli::main(polity::registry())
}
