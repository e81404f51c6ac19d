mod cassandra;
mod damage;
mod partitions;
mod rows;
mod tries;
