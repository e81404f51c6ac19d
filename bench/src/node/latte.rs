//! The same requests by `latte`.

use std::time::Duration;

use halcyon_oracle::Result;

use crate::latte::{Latte, Work};
use crate::load::{Completed, Load, Request, Until};
use crate::server::Server;

const SCRIPT: &str = include_str!("latte.rn");
const STEP: Duration = Duration::from_secs(1);

/// Asks for a time.
pub(super) fn ask(latte: &Latte, load: &Load, server: &Server) -> Result<Completed> {
    let Until::Elapsed(time) = load.until else { return Err("latte asks for a time".into()) };
    let function = match load.request {
        Request::Write => "write",
        Request::Read => "read",
        Request::Empty => return Err("latte knows no empty request".into()),
    };
    let parameters = vec![
        ("table", format!("\"{}\"", load.table.name)),
        ("rows", load.table.rows.to_string()),
        ("blob", load.table.blob.to_string()),
    ];
    let running = latte.start(&Work {
        server,
        script: SCRIPT,
        function,
        parameters,
        in_flight: load.in_flight,
        rate: None,
        time: Some(time),
        step: STEP,
    })?;
    Ok(running.report()?.completed)
}
