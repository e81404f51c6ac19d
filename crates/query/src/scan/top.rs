//! The rows of a result that are nearest to a vector, while others are read.

use std::cmp::Ordering;

use halcyon_engine::Place;

/// Where a row stands: better scores first, then in the order of the table.
#[derive(Debug, PartialEq)]
pub(super) struct Rank {
    pub(super) score: f32,
    pub(super) place: Place,
}

impl Rank {
    fn compare(&self, other: &Rank) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.place.cmp(&other.place))
    }
}

/// At most `limit` rows, encoded, the best first.
#[derive(Debug)]
pub(super) struct Top {
    most: usize,
    rows: Vec<(Rank, Vec<u8>)>,
    /// Of the row that is being encoded.
    pub(super) next: Option<Rank>,
}

impl Top {
    pub(super) fn new(most: usize) -> Top {
        Top { most, rows: Vec::new(), next: None }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The score that a row must reach, once there are enough.
    pub(super) fn floor(&self) -> Option<f32> {
        self.rows.last().filter(|_| self.rows.len() >= self.most).map(|(rank, _)| rank.score)
    }

    pub(super) fn wants(&self, rank: &Rank) -> bool {
        let last = self.rows.last().filter(|_| self.rows.len() >= self.most);
        last.is_none_or(|(last, _)| rank.compare(last).is_lt())
    }

    /// Takes the row that was encoded; returns by how many bytes the rows have grown.
    pub(super) fn take(&mut self, bytes: Vec<u8>) -> i64 {
        let Some(rank) = self.next.take() else { return 0 };
        let size = |bytes: &Vec<u8>| (size_of::<(Rank, Vec<u8>)>() + bytes.capacity()) as i64;
        let mut grown = size(&bytes);
        let at = self.rows.partition_point(|(other, _)| other.compare(&rank).is_lt());
        self.rows.insert(at, (rank, bytes));
        while self.rows.len() > self.most {
            grown -= self.rows.pop().map_or(0, |(_, bytes)| size(&bytes));
        }
        grown
    }

    /// The number of rows, and all of them as they are sent.
    pub(super) fn into_rows(self) -> (u32, Vec<u8>) {
        let count = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        (count, self.rows.into_iter().flat_map(|(_, bytes)| bytes).collect())
    }
}
