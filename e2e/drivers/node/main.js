// What an application does with the Node.js driver: discovers the schema, prepares, writes, pages, batches, sets conditions.
// Arguments: host, port, protocol version; then `--login NAME PASSWORD`, `--tls AUTHORITY CERTIFICATE` (files in PEM, the client's with its
// key). Prints one line a step.
"use strict";

const fs = require("fs");
const cassandra = require("cassandra-driver");

function expect(what, got, wanted) {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) {
    throw new Error(`${what}: ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
  }
  console.log("ok", what);
}

function options([host, port, version, ...more]) {
  const made = {
    contactPoints: [`${host}:${port}`],
    localDataCenter: "datacenter1",
    protocolOptions: { maxVersion: Number(version) },
    socketOptions: { readTimeout: 60000, connectTimeout: 60000 },
    queryOptions: { consistency: cassandra.types.consistencies.one },
  };
  for (let at = 0; at < more.length; at += 3) {
    if (more[at] === "--login") {
      made.authProvider = new cassandra.auth.PlainTextAuthProvider(more[at + 1], more[at + 2]);
    } else {
      const own = fs.readFileSync(more[at + 2]);
      made.sslOptions = { ca: [fs.readFileSync(more[at + 1])], cert: own, key: own, rejectUnauthorized: true, host };
    }
  }
  return made;
}

async function main() {
  const client = new cassandra.Client(options(process.argv.slice(2)));
  await client.connect();
  expect("protocol", client.controlConnection.protocolVersion, Number(process.argv[4]));
  const run = (text, values) => client.execute(text, values, { prepare: values !== undefined });
  await run("DROP KEYSPACE IF EXISTS node_driver");
  await run("CREATE KEYSPACE node_driver WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  await run("CREATE TYPE node_driver.address (street text, number int)");
  await run(
    "CREATE TABLE node_driver.t (k int, c int, v text, s set<int>, m map<text, bigint>, l list<double>, a frozen<address>, d decimal, u uuid, PRIMARY KEY (k, c))"
  );
  const table = await client.metadata.getTable("node_driver", "t");
  expect("columns", table.columns.length, 9);
  const id = cassandra.types.Uuid.fromString("6bddc89a-5644-41e4-97fc-56847afe9799");
  const price = cassandra.types.BigDecimal.fromString("-12.50");
  const insert = "INSERT INTO node_driver.t (k, c, v, s, m, l, a, d, u) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
  for (let c = 0; c < 300; c++) {
    const large = cassandra.types.Long.fromString("9007199254740993");
    await run(insert, [1, c, `v${c}`, [3, 1], { a: large }, [1.5, 2.5], { street: "s", number: 7 }, price, id]);
  }
  let count = 0;
  const select = "SELECT c, v, s, m, l, a, d, u FROM node_driver.t WHERE k = ?";
  for await (const row of client.stream(select, [1], { prepare: true, fetchSize: 70, autoPage: true })) {
    const told = [row.c, row.v, row.s, row.m.a.toString(), row.l, row.a, row.d.toString(), row.u.toString()];
    const wanted = [count, `v${count}`, [1, 3], "9007199254740993", [1.5, 2.5], { street: "s", number: 7 }, "-12.50", id.toString()];
    if (JSON.stringify(told) !== JSON.stringify(wanted)) {
      expect("row", told, wanted);
    }
    count++;
  }
  expect("paged rows", count, 300);
  const first = await client.execute(select, [1], { prepare: true, fetchSize: 10 });
  const next = await client.execute(select, [1], { prepare: true, fetchSize: 10, pageState: first.pageState });
  expect("page of a state", next.rows[0].c, 10);
  const writes = Array.from({ length: 10 }, (_, c) => ({ query: insert, params: [2, c, "batch", null, null, null, null, null, null] }));
  await client.batch(writes, { prepare: true });
  expect("batch", (await run("SELECT count(*) AS n FROM node_driver.t WHERE k = 2")).rows[0].n.toNumber(), 10);
  expect("not applied", (await run("INSERT INTO node_driver.t (k, c, v) VALUES (2, 0, 'x') IF NOT EXISTS")).wasApplied(), false);
  const traced = await client.execute("SELECT * FROM node_driver.t WHERE k = 2", [], { traceQuery: true });
  const trace = await client.metadata.getTrace(traced.info.traceId);
  expect("trace", trace.events.length > 0, true);
  const refused = await run("SELECT nothing FROM node_driver.t").catch((error) => error);
  expect("error", refused.message, "Undefined column name nothing in table node_driver.t");
  await client.shutdown();
}

main().catch((error) => {
  console.log("FAILED:", error);
  process.exit(1);
});
