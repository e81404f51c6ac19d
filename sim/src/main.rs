//! `cargo x sim`: a whole node under a simulated clock, scheduler, network and disk, driven by a seed.
//!
//! ```text
//!  clients ─► Session ─► simulated sockets ─► halcyon_server::serve_on ─► query, engine, commit log, compaction
//!     │                                                                                  │
//!   model ◄── every answer                                simulated disk ◄───────────────┘  kills, power cuts, faults
//! ```

#![forbid(unsafe_code)]

mod counter_deletions;
mod counters;
mod disturb;
#[cfg(test)]
mod fuzz_smoke;
mod registers;
mod roles;
mod rows;
mod run;
mod session;
mod world;

use std::process::ExitCode;

use clap::Parser;

use crate::run::{Outcome, run};
use crate::world::Counts;

#[derive(Parser)]
#[command(name = "cargo x sim", about = "Runs a whole node under simulation, once for each seed")]
struct Arguments {
    #[arg(required_unless_present = "campaign")]
    seeds: Vec<u64>,
    /// Many seeds, with a progress bar and a summary
    #[arg(long)]
    campaign: bool,
    /// How many seeds a campaign has
    #[arg(long = "seeds", default_value_t = 2_000)]
    count: u64,
    /// A campaign's first seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Set the calendar back too, not only forward
    #[arg(long)]
    clock_back: bool,
    /// How many of the last events of a failed seed to show
    #[arg(long, default_value_t = 60)]
    events: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds: Vec<u64> = match arguments.campaign {
        true => (arguments.from..arguments.from.saturating_add(arguments.count)).collect(),
        false => arguments.seeds,
    };
    let mut total = Counts::default();
    let mut failed = Vec::new();
    let bar = indicatif::ProgressBar::new(seeds.len() as u64);
    if !arguments.campaign {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    for seed in seeds {
        let outcome = run(seed, arguments.clock_back);
        total.add(&outcome.counts);
        if outcome.failure.is_some() {
            failed.push(seed);
        }
        let again = format!("{seed}{}", if arguments.clock_back { " --clock-back" } else { "" });
        bar.suspend(|| report(&again, &outcome, (!arguments.campaign).then_some(arguments.events)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("{total}");
    match failed.as_slice() {
        [] => ExitCode::SUCCESS,
        failed => {
            println!("{} seeds failed: {failed:?}", failed.len());
            ExitCode::FAILURE
        }
    }
}

/// `seed`: with the options that it ran with.
fn report(seed: &str, outcome: &Outcome, events: Option<usize>) {
    let Some(failure) = &outcome.failure else {
        if events.is_some() {
            println!("seed {seed}: trace {:016x}: {}", outcome.trace, outcome.counts);
        }
        return;
    };
    println!("seed {seed} FAILED; to repeat it: cargo x sim {seed}");
    if let Some(shown) = events {
        println!("last events:");
        let skipped = failure.events.len().saturating_sub(shown);
        failure.events.iter().skip(skipped).for_each(|line| println!("  {line}"));
        println!("last lines of the node's log:");
        failure.node_log.iter().for_each(|line| println!("  {line}"));
    }
    println!("{}", failure.why);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a seed repeats itself, event for event, so that one number is enough to find a failure again.
    #[test]
    fn a_seed_repeats_itself() {
        for seed in [1, 2] {
            let (first, second) = (run(seed, true), run(seed, true));
            assert_eq!(first.trace, second.trace, "seed {seed}");
            assert_eq!(first.counts, second.counts, "seed {seed}");
        }
    }
}
