//! Compactions of real and of simulated tables. One program: the merge takes long to compile.

mod corpus;
mod crash;
mod faults;
mod fuzz_smoke;
mod levels;
mod neighbours;
mod others;
mod recovery;
mod sim_table;
