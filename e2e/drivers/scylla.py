"""What scylla-driver does beyond cassandra-driver: it asks for shards. Arguments: host, port."""

import sys

from cassandra.cluster import Cluster

cluster = Cluster([sys.argv[1]], port=int(sys.argv[2]), protocol_version=4, connect_timeout=20)
session = cluster.connect()
session.execute("CREATE KEYSPACE IF NOT EXISTS scylla_py WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
session.execute("CREATE TABLE IF NOT EXISTS scylla_py.t (k int PRIMARY KEY, v int)")
insert = session.prepare("INSERT INTO scylla_py.t (k, v) VALUES (?, ?)")
for k in range(200):
    session.execute(insert, (k, k))
assert sum(row.v for row in session.execute("SELECT v FROM scylla_py.t")) == sum(range(200))
shards = cluster.shard_aware_stats()
print("ok shard aware" if cluster.is_shard_aware() else "FAILED: not shard aware", shards)
cluster.shutdown()
