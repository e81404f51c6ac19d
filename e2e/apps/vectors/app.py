"""
A store of documents that are found by their vectors, on cassio (what LangChain and LlamaIndex use for Cassandra) and on the plain
driver: nearest neighbours against brute force, metadata filters, partitions, similarity functions, updates and deletions.
"""

import os
import random
import uuid

import numpy
import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import RoundRobinPolicy
from cassio.table.tables import (
    ClusteredMetadataVectorCassandraTable, ElasticCassandraTable, MetadataVectorCassandraTable, PlainCassandraTable, VectorCassandraTable,
)

KEYSPACE = "documents"
DIMENSION = 32
DOCUMENTS = 3000
SEARCHES = 50
NEAREST = 10
RECALL = 0.95
# Cassandra 5.0.9 fails a write to a vector index while more than its cores and one are running.
WRITERS = 2
FUNCTIONS = ("cosine", "dot_product", "euclidean")


@pytest.fixture(scope="session")
def session():
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=60)
    cluster = Cluster(
        [os.environ["APP_HOST"]], port=int(os.environ["APP_PORT"]), protocol_version=5, connect_timeout=30,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    session = cluster.connect()
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.set_keyspace(KEYSPACE)
    yield session
    cluster.shutdown()


@pytest.fixture(scope="session")
def vectors():
    """Around some centres, as those of texts are; of length 1, as a dot product needs."""
    chance = numpy.random.default_rng(7)
    centres = chance.normal(size=(40, DIMENSION))
    found = centres[chance.integers(0, 40, DOCUMENTS)] + 0.4 * chance.normal(size=(DOCUMENTS, DIMENSION))
    return (found / numpy.linalg.norm(found, axis=1, keepdims=True)).astype("float32")


def similarity(function, vectors, to):
    """As Cassandra defines it."""
    if function == "euclidean":
        return 1 / (1 + ((vectors - to) ** 2).sum(axis=1))
    return (1 + vectors @ (to / numpy.linalg.norm(to) if function == "cosine" else to)) / 2


def plain_table(session, vectors, function):
    name = f"plain_{function}"
    session.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, colour text, price int, v vector<float, {DIMENSION}>)")
    options = f"{{'similarity_function': '{function}'}}"
    session.execute(f"CREATE CUSTOM INDEX ON {name} (v) USING 'StorageAttachedIndex' WITH OPTIONS = {options}")
    session.execute(f"CREATE INDEX ON {name} (colour) USING 'sai'")
    session.execute(f"CREATE INDEX ON {name} (price) USING 'sai'")
    insert = session.prepare(f"INSERT INTO {name} (id, colour, price, v) VALUES (?, ?, ?, ?)")
    rows = [(place, "red" if place % 5 == 0 else "blue", place, vector.tolist()) for place, vector in enumerate(vectors)]
    execute_concurrent_with_args(session, insert, rows, concurrency=WRITERS)
    return name


@pytest.fixture(scope="session")
def tables(session, vectors):
    return {function: plain_table(session, vectors, function) for function in FUNCTIONS}


def searches(vectors):
    chance = numpy.random.default_rng(11)
    return vectors[chance.integers(0, DOCUMENTS, SEARCHES)] + 0.05 * chance.normal(size=(SEARCHES, DIMENSION)).astype("float32")


def recall(session, select, function, vectors, chosen=None):
    """The part of the truly nearest ones that is found, over all searches."""
    among = numpy.arange(len(vectors)) if chosen is None else numpy.array(chosen)
    right = 0
    for to in searches(vectors):
        true = set(among[numpy.argsort(-similarity(function, vectors[among], to))[:NEAREST]].tolist())
        found = [row.id for row in session.execute(select, [to.tolist()])]
        assert len(found) == len(set(found)) == NEAREST
        right += len(true & set(found))
    return right / (SEARCHES * NEAREST)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_recall(session, tables, vectors, function):
    select = session.prepare(f"SELECT id FROM {tables[function]} ORDER BY v ANN OF ? LIMIT {NEAREST}")
    assert recall(session, select, function, vectors) >= RECALL


def test_recall_with_a_filter(session, tables, vectors):
    select = session.prepare(f"SELECT id FROM {tables['cosine']} WHERE colour = 'red' ORDER BY v ANN OF ? LIMIT {NEAREST}")
    assert recall(session, select, "cosine", vectors, range(0, DOCUMENTS, 5)) >= RECALL


def test_recall_with_a_range(session, tables, vectors):
    select = session.prepare(f"SELECT id FROM {tables['cosine']} WHERE price >= 100 AND price < 400 ORDER BY v ANN OF ? LIMIT {NEAREST}")
    assert recall(session, select, "cosine", vectors, range(100, 400)) >= RECALL


@pytest.mark.parametrize("function", FUNCTIONS)
def test_similarity_and_order(session, tables, vectors, function):
    to = searches(vectors)[0].tolist()
    rows = list(session.execute(
        f"SELECT id, similarity_{function}(v, %s) AS s FROM {tables[function]} ORDER BY v ANN OF %s LIMIT 20", [to, to]
    ))
    found = [row.s for row in rows]
    true = similarity(function, vectors, numpy.array(to, dtype="float32"))
    assert found == sorted(found, reverse=True)
    assert all(abs(row.s - float(true[row.id])) < 1e-4 for row in rows)


def test_a_row_is_nearest_to_itself(session, tables, vectors):
    for place in (0, 17, 2999):
        row = session.execute(f"SELECT id FROM {tables['cosine']} ORDER BY v ANN OF %s LIMIT 1", [vectors[place].tolist()]).one()
        assert row.id == place


def test_update_and_delete(session):
    session.execute("CREATE TABLE changing (id int PRIMARY KEY, v vector<float, 2>)")
    session.execute("CREATE INDEX ON changing (v) USING 'sai'")
    for place, vector in enumerate(([1, 0.1], [0.9, 0.3], [0.1, 1])):
        session.execute("INSERT INTO changing (id, v) VALUES (%s, %s)", [place, vector])

    def nearest():
        return [row.id for row in session.execute("SELECT id FROM changing ORDER BY v ANN OF [1, 0] LIMIT 2")]

    assert nearest() == [0, 1]
    session.execute("UPDATE changing SET v = [-1, 0.5] WHERE id = 0")
    assert nearest() == [1, 2]
    session.execute("DELETE v FROM changing WHERE id = 1")
    assert nearest() == [2, 0]
    session.execute("DELETE FROM changing WHERE id = 2")
    assert nearest() == [0]


def test_expiry_and_null(session):
    session.execute("CREATE TABLE sparse (id int PRIMARY KEY, t text, v vector<float, 2>)")
    session.execute("CREATE INDEX ON sparse (v) USING 'sai'")
    session.execute("INSERT INTO sparse (id, t) VALUES (1, 'no vector')")
    session.execute("INSERT INTO sparse (id, v) VALUES (2, [0.2, 0.4]) USING TTL 1000")
    assert [row.id for row in session.execute("SELECT id FROM sparse ORDER BY v ANN OF [1, 0] LIMIT 5")] == [2]


def test_refusals(session, tables):
    def refused(text, words):
        with pytest.raises(Exception, match=words):
            session.execute(text)

    table, zeros = tables["cosine"], [0.0] * DIMENSION
    refused(f"SELECT id FROM {table} ORDER BY v ANN OF {[1.0] * DIMENSION}", "must have a limit")
    refused(f"SELECT id FROM {table} ORDER BY v ANN OF [1.0, 2.0] LIMIT 1", "Invalid vector literal|Not enough bytes|expected")
    refused(f"SELECT id FROM {table} ORDER BY v ANN OF {[1.0] * DIMENSION} LIMIT 5000", "1000")
    refused(f"SELECT id FROM {table} ORDER BY v ANN OF {zeros} LIMIT 1", "Zero vectors|failure")


def test_vectors_of_a_partition(session, vectors):
    session.execute(f"CREATE TABLE parted (p int, c int, v vector<float, {DIMENSION}>, PRIMARY KEY (p, c))")
    session.execute("CREATE INDEX ON parted (v) USING 'sai'")
    insert = session.prepare("INSERT INTO parted (p, c, v) VALUES (?, ?, ?)")
    execute_concurrent_with_args(session, insert, [(c % 7, c, vector.tolist()) for c, vector in enumerate(vectors[:700])], concurrency=WRITERS)
    to = vectors[3]
    among = [c for c in range(700) if c % 7 == 2]
    true = sorted(among, key=lambda c: -float(vectors[c] @ to))[:5]
    rows = session.execute("SELECT c FROM parted WHERE p = 2 ORDER BY v ANN OF %s LIMIT 5", [to.tolist()])
    assert [row.c for row in rows] == true


@pytest.fixture(scope="session")
def store(session, vectors):
    """Documents with metadata, as a chain of LangChain stores them."""
    store = MetadataVectorCassandraTable(
        session=session, keyspace=KEYSPACE, table="store", vector_dimension=DIMENSION, primary_key_type="TEXT",
        vector_similarity_function="cosine", metadata_indexing="all",
    )
    for place in range(600):
        metadata = {"topic": "tea" if place % 3 else "coffee", "page": place % 10, "draft": place % 2 == 0}
        store.put(row_id=f"doc{place}", body_blob=f"text {place}", vector=vectors[place].tolist(), metadata=metadata)
    return store


def test_store_finds_nearest(store, vectors):
    hits = list(store.metric_ann_search(vector=vectors[5].tolist(), n=4, metric="cos"))
    true = numpy.argsort(-(vectors[:600] @ vectors[5]))[:4].tolist()
    assert [hit["row_id"] for hit in hits] == [f"doc{place}" for place in true]
    assert abs(hits[0]["distance"] - 1) < 1e-4 and hits[0]["body_blob"] == "text 5"


def test_store_filters_by_metadata(store, vectors):
    hits = list(store.metric_ann_search(vector=vectors[5].tolist(), n=6, metric="cos", metadata={"topic": "coffee"}))
    true = sorted(range(0, 600, 3), key=lambda place: -float(vectors[place] @ vectors[5]))[:6]
    assert [hit["row_id"] for hit in hits] == [f"doc{place}" for place in true]


def test_store_filters_by_several(store, vectors):
    wanted = {"topic": "coffee", "page": 3, "draft": False}
    hits = list(store.ann_search(vector=vectors[5].tolist(), n=50, metadata=wanted))
    true = {f"doc{place}" for place in range(600) if place % 3 == 0 and place % 10 == 3}
    assert {hit["row_id"] for hit in hits} == true
    assert all(hit["metadata"] == {"topic": "coffee", "page": "3.0", "draft": "false"} for hit in hits)


def test_store_threshold(store, vectors):
    hits = list(store.metric_ann_search(vector=vectors[5].tolist(), n=20, metric="cos", metric_threshold=0.9))
    assert hits and all(hit["distance"] >= 0.9 for hit in hits)


def test_store_finds_entries_without_a_vector(store):
    found = list(store.find_entries(n=1000, metadata={"page": 7}))
    assert {row["row_id"] for row in found} == {f"doc{place}" for place in range(7, 600, 10)}
    assert len(list(store.find_entries(n=3, metadata={"page": 7}))) == 3


def test_store_gets_replaces_and_deletes(session, vectors):
    table = MetadataVectorCassandraTable(
        session=session, keyspace=KEYSPACE, table="edited", vector_dimension=DIMENSION, primary_key_type="TEXT"
    )
    table.put(row_id="a", body_blob="1", vector=vectors[0].tolist(), metadata={"k": "x"})
    table.put(row_id="a", body_blob="2", vector=vectors[1].tolist(), metadata={"k": "y"}, ttl_seconds=1000)
    table.put(row_id="b", body_blob="3", vector=vectors[2].tolist(), metadata={"k": "x"})
    assert table.get(row_id="a")["body_blob"] == "2"
    assert [row["row_id"] for row in table.find_entries(n=5, metadata={"k": "x"})] == ["b"]
    assert table.find_and_delete_entries(metadata={"k": "x"}) == 1
    table.delete(row_id="a")
    assert table.get(row_id="a") is None
    table.put(row_id="c", body_blob="4", vector=vectors[3].tolist(), metadata={})
    table.clear()
    assert list(table.ann_search(vector=vectors[3].tolist(), n=3)) == []


def test_clustered_store(session, vectors):
    table = ClusteredMetadataVectorCassandraTable(
        session=session, keyspace=KEYSPACE, table="clustered", vector_dimension=DIMENSION, primary_key_type=["TEXT", "TEXT"],
        partition_id="none", ordering_in_partition="ASC",
    )
    for place in range(60):
        table.put(
            partition_id=f"p{place % 3}", row_id=f"{place:03}", body_blob=str(place), vector=vectors[place].tolist(), metadata={"even": place % 2 == 0}
        )
    assert [row["row_id"] for row in table.get_partition(partition_id="p1", n=3)] == ["001", "004", "007"]
    hits = table.ann_search(vector=vectors[10].tolist(), n=3, partition_id="p1", metadata={"even": True})
    true = sorted((c for c in range(60) if c % 3 == 1 and c % 2 == 0), key=lambda c: -float(vectors[c] @ vectors[10]))[:3]
    assert [hit["row_id"] for hit in hits] == [f"{place:03}" for place in true]
    table.delete_partition(partition_id="p1")
    assert list(table.get_partition(partition_id="p1")) == []


def test_vector_store_with_uuids_and_euclidean(session, vectors):
    table = VectorCassandraTable(
        session=session, keyspace=KEYSPACE, table="uuids", vector_dimension=DIMENSION, primary_key_type="UUID",
        vector_similarity_function="euclidean",
    )
    keys = [uuid.UUID(int=place + 1) for place in range(100)]
    for key, vector in zip(keys, vectors):
        table.put(row_id=key, body_blob="x", vector=vector.tolist())
    hits = list(table.metric_ann_search(vector=vectors[50].tolist(), n=3, metric="l2"))
    true = numpy.argsort(((vectors[:100] - vectors[50]) ** 2).sum(axis=1))[:3].tolist()
    assert [hit["row_id"] for hit in hits] == [keys[place] for place in true]


def test_key_value_tables(session):
    elastic = ElasticCassandraTable(session=session, keyspace=KEYSPACE, table="elastic", keys=["a", "b"], primary_key_type=["TEXT", "TEXT"])
    elastic.put(a=1, b="two", body_blob="body", ttl_seconds=1000)
    assert elastic.get(a=1, b="two")["body_blob"] == "body" and elastic.get(a=2, b="two") is None
    elastic.delete(a=1, b="two")
    assert elastic.get(a=1, b="two") is None
    plain = PlainCassandraTable(session=session, keyspace=KEYSPACE, table="plain", primary_key_type="TEXT")
    plain.put(row_id="x", body_blob="y")
    assert plain.get(row_id="x")["body_blob"] == "y"


def test_searches_while_rows_are_written(session, tables, vectors):
    """A search during writes answers with rows of the table, in order."""
    table, chance = tables["euclidean"], random.Random(3)
    insert = session.prepare(f"INSERT INTO {table} (id, v) VALUES (?, ?)")
    select = session.prepare(f"SELECT id, similarity_euclidean(v, ?) AS s FROM {table} ORDER BY v ANN OF ? LIMIT {NEAREST}")
    for step in range(40):
        place = chance.randrange(DOCUMENTS)
        written = [session.execute_async(insert, (DOCUMENTS + WRITERS * step + i, vectors[place].tolist())) for i in range(WRITERS)]
        found = [row.s for row in session.execute(select, [vectors[place].tolist()] * 2)]
        assert found == sorted(found, reverse=True) and abs(found[0] - 1) < 1e-4
        for future in written:
            future.result()
