//! Strategies: lists of SSTables and the tasks that they give.

mod asked;
mod life;
mod picks;
