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

    /// What comes behind `ok`.
    pub(super) fn ask(&mut self, fields: &[&str]) -> Result<String> {
        self.tell(fields)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let answer = answer.trim_end();
        match answer.strip_prefix("ok") {
            Some(value) => Ok(value.trim_start().to_owned()),
            None if answer.is_empty() => Err(format!("the JMX client died on {fields:?}").into()),
            None => Err(format!("{fields:?}: {answer}").into()),
        }
    }

    pub(super) fn get(&mut self, mbean: &str, attribute: &str) -> Result<String> {
        self.ask(&["get", mbean, attribute])
    }
}

impl Drop for Jmx {
    fn drop(&mut self) {
        // At the end of its input it ends itself.
        self.commands = None;
        let _ = self.child.wait();
    }
}
