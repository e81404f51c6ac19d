//! A disk's metrics, for the registry of its node.

use halcyon_metrics::{Metric, Sample, Source};

use crate::disk::Disk;
use crate::metrics::DECLARED;

impl Source for Disk {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        self.histograms().iter().for_each(|stats| stats.walk(show));
    }
}
