//! The `iit` binary: parses the command line and hands over to [`iit_manager::boot`].

use std::process::ExitCode;

fn main() -> ExitCode {
    iit_manager::boot::main()
}
