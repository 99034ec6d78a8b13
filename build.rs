//! Rebuilds when a migration appears: the macro that embeds them can't see a new file by itself.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
