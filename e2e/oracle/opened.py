"""Cassandra on a data directory that somebody else may have written."""

import json
import os
import subprocess
from contextlib import contextmanager

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

RELEASE = "5.0.9"


@contextmanager
def cassandra(options, folder, form, *settings, jvm=""):
    """A session and what `cargo x oracle start` told; drained and stopped at the end. `jvm`: options of the node's JVM."""
    xtask, java = options.xtask, options.oracle / RELEASE / "java"
    start = [xtask, "oracle", "start", RELEASE, "--format", form, "--dir", folder]
    start += [word for setting in settings for word in ("--set", setting)]
    environment = {**os.environ, "JDK_JAVA_OPTIONS": jvm}
    facts = json.loads(subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)
    try:
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=60)
        cluster = Cluster(
            ["127.0.0.1"], port=facts["native_port"], protocol_version=5, connect_timeout=30,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        )
        yield cluster.connect(), facts
        cluster.shutdown()
        tool = [java, "org.apache.cassandra.tools.NodeTool", "-p", str(facts["jmx_port"]), "drain"]
        subprocess.run(tool, check=True, timeout=120)
    finally:
        subprocess.run([xtask, "oracle", "stop", "--dir", folder], check=True, stdout=subprocess.PIPE)
