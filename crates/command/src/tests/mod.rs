//! What the subcommands do with files, from the reader to the last page.

mod fuzz;
