"""
Statements that nobody wrote down, asked of Cassandra and of `halcyon serve`: `cargo x differential`.

    kinds.py       types of CQL, and values of them: literal, bytes, place in the order of the type
    schema.py      a random table: keys, static and regular columns, indexes, views; types that grow
    draft.py       the text of one statement and the values bound to it: terms of every kind
    conditions.py  relations of a WHERE clause, conditions of an IF
    writes.py      INSERT, UPDATE, DELETE, batches, counters
    selects.py     SELECT: selectors, relations, groups, orders, limits, pages
    spoiled.py     statements with a fault
    session.py     a schema and what is done with it, from one seed: a list of steps
    pair.py        runs steps on both servers, and compares answers as bytes
    known.py       differences on purpose (docs/cql.md), each a narrow predicate with its reason
    shrink.py      the fewest steps that still differ
    campaign.py    sessions until the time is over, what ran, what differed

Everything is made from a seed, and a session from a seed of its own and nothing else: `--seed N --sessions 1` repeats it.
"""
