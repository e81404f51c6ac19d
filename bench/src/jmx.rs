//! `e2e/oracle/Jmx.java`: a line out, a line back, over one connection that is already there.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use halcyon_oracle::{Oracle, Result};

pub(super) struct Jmx {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Jmx {
    pub(super) fn connect(oracle: &Oracle, port: u16) -> Result<Jmx> {
        let mut command = oracle.java(&["-Xmx64m".to_owned()], "Jmx");
        command.arg(port.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("no answers")?);
        Ok(Jmx { child, commands, answers })
    }

    /// Does not wait for the answer. Nothing else can be asked afterwards.
    pub(super) fn tell(&mut self, fields: &[&str]) -> Result<()> {
        let commands = self.commands.as_mut().ok_or("closed")?;
        writeln!(commands, "{}", fields.join("\t"))?;
        Ok(commands.flush()?)
    }

    pub(super) fn ask(&mut self, fields: &[&str]) -> Result<()> {
        self.tell(fields)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        match answer.trim_end() {
            "ok" => Ok(()),
            "" => Err(format!("the JMX client died on {fields:?}").into()),
            other => Err(format!("{fields:?}: {other}").into()),
        }
    }
}

impl Drop for Jmx {
    fn drop(&mut self) {
        // At the end of its input it ends itself.
        self.commands = None;
        let _ = self.child.wait();
    }
}
