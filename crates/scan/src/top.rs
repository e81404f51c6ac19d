//! The rows of a result that are nearest to a vector, while others are read.

use std::cmp::Ordering;

use halcyon_stream::PrimaryKey;

/// Where a row stands: better scores first, then in the order of the table.
#[derive(Debug, PartialEq)]
pub(crate) struct Rank {
    pub(crate) score: f32,
    pub(crate) place: PrimaryKey,
}

impl Rank {
    fn compare(&self, other: &Rank) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.place.cmp(&other.place))
    }
}

/// At most `limit` rows, encoded, the best first.
#[derive(Debug)]
pub(crate) struct Top {
    most: usize,
    rows: Vec<(Rank, Vec<u8>)>,
    /// Of the row that is being encoded.
    pub(crate) next: Option<Rank>,
}

impl Top {
    pub(crate) fn new(most: usize) -> Top {
        Top { most, rows: Vec::new(), next: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The score that a row must reach, once there are enough.
    pub(crate) fn floor(&self) -> Option<f32> {
        self.rows.last().filter(|_| self.rows.len() >= self.most).map(|(rank, _)| rank.score)
    }

    pub(crate) fn wants(&self, rank: &Rank) -> bool {
        let last = self.rows.last().filter(|_| self.rows.len() >= self.most);
        last.is_none_or(|(last, _)| rank.compare(last).is_lt())
    }

    /// Takes the row that was encoded; returns by how many bytes the rows have grown.
    pub(crate) fn take(&mut self, bytes: Vec<u8>) -> i64 {
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
    pub(crate) fn into_rows(self) -> (u32, Vec<u8>) {
        let count = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        (count, self.rows.into_iter().flat_map(|(_, bytes)| bytes).collect())
    }
}
