//! `cargo x corpus`: starts one node per SSTable version and lets `e2e/corpus` write tables through it.

use std::path::PathBuf;
use std::process::Command;

use halcyon_oracle::{Format, Node, StartOptions, python};

use crate::{Result, call, repository};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// SSTable versions to write
    #[arg(long, value_delimiter = ',', default_value = "nb,oa,da,pa,ea")]
    versions: Vec<Format>,
    /// Where the tables go, as DIR/<version>/<table>
    #[arg(long, default_value = "target/corpus")]
    out: PathBuf,
    /// A line of cassandra.yaml, as often as needed, e.g. 'cursor_compaction_enabled: true'
    #[arg(long = "set")]
    settings: Vec<String>,
    /// Also replace the golden tables under testdata/
    #[arg(long)]
    golden: bool,
    /// Only tables whose names start with one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let python = python::interpreter()?;
    for format in &arguments.versions {
        let oracle = halcyon_oracle::open(format.release())?;
        let mut options = StartOptions::for_format(*format);
        options.settings.clone_from(&arguments.settings);
        let node = Node::start(&oracle, &options)?;
        let mut script = Command::new(&python);
        script.arg("-m").arg("corpus").current_dir(repository().join("e2e"));
        script.arg("--out").arg(std::path::absolute(&arguments.out)?.join(format.name()));
        script.args(["--version", format.name(), "--release", oracle.version().name()]);
        script.args(["--native-port", &node.native_port().to_string()]);
        script.args(["--jmx-port", &node.jmx_port().to_string()]);
        script.arg("--storage-dir").arg(node.storage_dir());
        script.arg("--java").arg(oracle.java_script());
        if arguments.golden {
            script.arg("--golden-dir").arg(repository().join("testdata").join(format.name()));
        }
        script.args(arguments.only.iter().flat_map(|prefix| ["--only", prefix]));
        call(&mut script)?;
    }
    Ok(())
}
