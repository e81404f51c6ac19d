//! A stream whose first fragment may be fetched before it is used, so that a reader waits for several streams at once.

use crate::fragment::{Fragment, FragmentStream};

pub struct Primed<S> {
    stream: S,
    /// The result of an `advance` before the reader's first one.
    first: Option<bool>,
}

impl<S: FragmentStream> Primed<S> {
    /// Fetches the first fragment.
    pub async fn fetch(mut stream: S) -> Result<Primed<S>, S::Error> {
        let first = Some(stream.advance().await?);
        Ok(Primed { stream, first })
    }

    /// Fetches nothing.
    pub fn lazy(stream: S) -> Primed<S> {
        Primed { stream, first: None }
    }

    /// The first fragment, if it is fetched and the reader has not advanced to it.
    pub fn first(&self) -> Option<Fragment<'_>> {
        self.first.filter(|exists| *exists).map(|_| self.stream.fragment())
    }
}

impl<S: FragmentStream> FragmentStream for Primed<S> {
    type Error = S::Error;

    async fn advance(&mut self) -> Result<bool, S::Error> {
        match self.first.take() {
            Some(first) => Ok(first),
            None => self.stream.advance().await,
        }
    }

    fn row_index_size(&self) -> u64 {
        self.stream.row_index_size()
    }

    fn fragment(&self) -> Fragment<'_> {
        self.stream.fragment()
    }
}
