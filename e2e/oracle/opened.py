"""Cassandra on a data directory that another program may have written."""

import json
import os
import subprocess
from contextlib import contextmanager

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy

from patience import PATIENCE_SECONDS

RELEASE = "5.0.9"


def start(options, folder, form, *settings, jvm="", class_path="", more=(), release=RELEASE):
    """What `cargo x oracle start` told. `jvm`: options of the node's JVM; `class_path`: jars beside Cassandra's; `more`: of the command."""
    command = [options.xtask, "oracle", "start", release, "--format", form, "--dir", folder, *more]
    command += [word for setting in settings for word in ("--set", setting)]
    environment = {**os.environ, "JDK_JAVA_OPTIONS": jvm, "EXTRA_CLASSPATH": str(class_path)}
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)


def stop(options, folder):
    subprocess.run([options.xtask, "oracle", "stop", "--dir", folder], check=True, stdout=subprocess.PIPE)


def cluster(facts):
    """Sends every request to this node, also if there are more."""
    address = facts["address"]
    policy = WhiteListRoundRobinPolicy([address])
    profile = ExecutionProfile(load_balancing_policy=policy, request_timeout=PATIENCE_SECONDS)
    return Cluster(
        [address], port=facts["native_port"], protocol_version=5, connect_timeout=PATIENCE_SECONDS, execution_profiles={EXEC_PROFILE_DEFAULT: profile}
    )


def java(options, release):
    """What runs a release's tools: for 4.1 those of 5.0, which read what it writes, for its runtime has no names of RMI."""
    return options.oracle / (RELEASE if release.startswith("4.") else release) / "java"


def nodetool(options, facts, *arguments, release=RELEASE):
    """Answers what it printed."""
    tool = [java(options, release), "org.apache.cassandra.tools.NodeTool", "-p", str(facts["jmx_port"]), *arguments]
    return subprocess.run(tool, check=True, timeout=PATIENCE_SECONDS, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def cassandra(options, folder, form, *settings, jvm="", more=(), release=RELEASE):
    """A session and what `start` told; drained and stopped at the end."""
    facts = start(options, folder, form, *settings, jvm=jvm, more=more, release=release)
    try:
        clients = cluster(facts)
        yield clients.connect(), facts
        clients.shutdown()
        nodetool(options, facts, "drain", release=release)
    finally:
        stop(options, folder)
