//! Statements against a node of two shards on the simulated disk. One program: what a node consists of takes a minute to compile.

mod counters;
mod failures;
mod nearest;
mod node;
mod prepared;
mod revocations;
mod roles;
mod select;
mod sessions;
mod views;
mod weight;
mod writes;
