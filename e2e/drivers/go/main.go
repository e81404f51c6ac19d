// What an application does with gocql: discovers the schema, prepares, writes, pages, batches, sets conditions.
// Arguments: host, port, protocol version, compression (none or snappy); for TLS also the files of the authority's certificate and of the
// client's certificate and key. Prints one line a step.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gocql/gocql"
)

func check(err error) {
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

func expect(what string, got, wanted interface{}) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		fmt.Printf("FAILED: %s: %v, expected %v\n", what, got, wanted)
		os.Exit(1)
	}
	fmt.Println("ok", what)
}

func main() {
	port, err := strconv.Atoi(os.Args[2])
	check(err)
	version, err := strconv.Atoi(os.Args[3])
	check(err)
	cluster := gocql.NewCluster(os.Args[1])
	cluster.Port = port
	cluster.ProtoVersion = version
	cluster.Timeout = 20 * time.Second
	cluster.ConnectTimeout = 20 * time.Second
	cluster.Consistency = gocql.One
	if os.Args[4] == "snappy" {
		cluster.Compressor = gocql.SnappyCompressor{}
	}
	if len(os.Args) > 5 {
		cluster.SslOpts = &gocql.SslOptions{CaPath: os.Args[5], CertPath: os.Args[6], KeyPath: os.Args[6], EnableHostVerification: true}
	}
	session, err := cluster.CreateSession()
	check(err)
	run := func(text string, values ...interface{}) { check(session.Query(text, values...).Exec()) }
	run("DROP KEYSPACE IF EXISTS go_driver")
	run("CREATE KEYSPACE go_driver WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	run("CREATE TYPE go_driver.address (street text, number int)")
	run("CREATE TABLE go_driver.t (k int, c int, v text, s set<int>, m map<text, bigint>, l list<double>, PRIMARY KEY (k, c))")
	keyspace, err := session.KeyspaceMetadata("go_driver")
	check(err)
	expect("columns", len(keyspace.Tables["t"].Columns), 6)
	for c := 0; c < 500; c++ {
		run("INSERT INTO go_driver.t (k, c, v, s, m, l) VALUES (?, ?, ?, ?, ?, ?)", 1, c, fmt.Sprint("v", c), []int{3, 1}, map[string]int64{"a": 1}, []float64{1.5, 2.5})
	}
	rows := session.Query("SELECT c, v, s, m, l FROM go_driver.t WHERE k = ?", 1).PageSize(70).Iter()
	var c, count int
	var v string
	var s []int
	var m map[string]int64
	var l []float64
	for rows.Scan(&c, &v, &s, &m, &l) {
		if c != count || v != fmt.Sprint("v", c) || len(s) != 2 || m["a"] != 1 || len(l) != 2 {
			expect("row", []interface{}{c, v, s, m, l}, count)
		}
		count++
	}
	check(rows.Close())
	expect("paged rows", count, 500)
	batch := session.NewBatch(gocql.LoggedBatch)
	for c := 0; c < 10; c++ {
		batch.Query("INSERT INTO go_driver.t (k, c, v) VALUES (?, ?, ?)", 2, c, "batch")
	}
	check(session.ExecuteBatch(batch))
	check(session.Query("SELECT count(*) FROM go_driver.t WHERE k = 2").Scan(&count))
	expect("batch", count, 10)
	applied, err := session.Query("INSERT INTO go_driver.t (k, c, v) VALUES (2, 0, 'x') IF NOT EXISTS").MapScanCAS(map[string]interface{}{})
	check(err)
	expect("not applied", applied, false)
	err = session.Query("SELECT nothing FROM go_driver.t").Exec()
	expect("error", err, "Undefined column name nothing in table go_driver.t")
	session.Close()
}
