//! `enablebinary`, `drain`, `stopdaemon`, `reloadssl`, `getlogginglevels`, `setlogginglevel`, `gettraceprobability`, `settraceprobability`.

use std::time::Duration;

use halcyon_io::clock::sleep;
use halcyon_server::command::{Command, LoggingLevel, TraceProbability};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;

/// Of connections that begin from now on.
pub(super) async fn allow_older_protocols(node: &mut Node, allowed: bool) -> Result<()> {
    node.set("native_transport_allow_older_protocols", &allowed.to_string()).await
}

/// How often the node is asked whether it still answers, and the pause in between. Chosen: a drain takes some seconds at most.
const LOOKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(100);

/// Returns when the node answers no more.
pub(super) async fn stop(node: &mut Node, out: &mut String) -> Result<()> {
    node.command(&Command::StopDaemon, ("", "")).await?;
    for _ in 0..LOOKS {
        if node.mode().await.is_err() {
            break;
        }
        sleep(PAUSE).await;
    }
    out.push_str("Cassandra has shutdown.\n");
    Ok(())
}

/// Opens the ports of clients. Cassandra's tool calls it wrong use of a node that was drained.
pub(super) async fn open_ports(node: &mut Node) -> Result<()> {
    let opened = node.command(&Command::EnableBinary, ("", "")).await;
    opened.map_err(|failure| match failure {
        Failure::Failed(why) if why.contains(Command::DRAINED) => Failure::Usage(why),
        failure => failure,
    })
}

pub(super) async fn drain(node: &mut Node) -> Result<()> {
    if node.mode().await? == "DRAINED" {
        return Ok(());
    }
    node.command(&Command::Drain, ("", "")).await
}

pub(super) async fn reload_certificates(node: &mut Node) -> Result<()> {
    node.command(&Command::ReloadSsl, ("", "")).await
}

/// The root first, then by name.
pub(super) async fn logging_levels(node: &mut Node, out: &mut String) -> Result<()> {
    let rows = node.rows("SELECT logger, level FROM halcyon_views.logging_levels").await?;
    out.push_str(&format!("\n{:<50}{:>10}\n", "Logger Name", "Log Level"));
    for row in rows.iter() {
        out.push_str(&format!("{:<50}{:>10}\n", row.text("logger"), row.text("level")));
    }
    Ok(())
}

pub(super) async fn set_logging_level(call: &Call, node: &mut Node) -> Result<()> {
    let (name, level) = (call.arguments.first().cloned(), call.arguments.get(1).cloned());
    let command = Command::SetLoggingLevel(LoggingLevel { name, level });
    node.command(&command, ("", "")).await
}

pub(super) async fn trace_probability(node: &mut Node, out: &mut String) -> Result<()> {
    let rows = node.rows("SELECT trace_probability FROM halcyon_views.node").await?;
    for row in rows.iter() {
        let probability = row.double("trace_probability");
        out.push_str(&format!("Current trace probability: {probability:?}\n"));
    }
    Ok(())
}

pub(super) async fn set_trace_probability(call: &Call, node: &mut Node) -> Result<()> {
    let Some(text) = call.arguments.first() else {
        return Failure::usage("Required parameters are missing: trace_probability");
    };
    match text.parse::<f64>() {
        Err(_) => {
            Failure::usage(format!("trace_probability: can not convert \"{text}\" to a Double"))
        }
        Ok(probability) if !(0.0..=1.0).contains(&probability) => {
            Failure::usage("Trace probability must be between 0 and 1")
        }
        Ok(probability) => {
            let command = Command::SetTraceProbability(TraceProbability { probability });
            node.command(&command, ("", "")).await
        }
    }
}

pub(super) async fn set_backups(node: &mut Node, enabled: bool) -> Result<()> {
    node.set("incremental_backups", &enabled.to_string()).await
}

pub(super) async fn backup_status(node: &mut Node, out: &mut String) -> Result<()> {
    let runs = node.setting("incremental_backups").await? == "true";
    out.push_str(if runs { "running\n" } else { "not running\n" });
    Ok(())
}
