//! Sends the inputs of a history to one node again: `cargo run --bin repeat statements statements.history`.

use halcyon_fuzz::node::{Host, Run, inputs, paging, prepared, statements};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, history] = arguments.as_slice() else { panic!("a target and a history") };
    let run: Run = match target.as_str() {
        "statements" => statements::run,
        "paging" => paging::run,
        "prepared" => prepared::run,
        other => panic!("{other} has no history"),
    };
    let host = Host::start(run, None);
    for input in inputs(&std::fs::read(history).expect("readable")) {
        println!("{}", String::from_utf8_lossy(&input));
        host.put(&input);
    }
    host.finish();
}
