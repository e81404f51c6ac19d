"""The corpus: tables written by Apache Cassandra that together cover every data feature of its SSTables."""
