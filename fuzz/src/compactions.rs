//! What an Apache Cassandra says to the process that compacts for it.

use halcyon_compactor::frame::Frame;
use halcyon_compactor::messages::Request;

/// A conversation; a task holds no more than was said.
pub fn requests(bytes: &[u8]) {
    let mut from = bytes;
    while let Ok(Some(frame)) = Frame::read(&mut from) {
        let again = frame.encode().expect("no longer than what was read");
        assert_eq!(Frame::read(&mut &again[..]).expect("a frame"), Some(frame.clone()));
        match Request::decode(&frame) {
            Ok(Request::Task(task)) => {
                assert!(task.inputs.len() + task.split.tokens.len() <= bytes.len());
                assert!(task.bloom_filter_fp_chance > 0.0 && task.min_index_interval > 0);
            }
            Ok(Request::Bounds(bounds)) => assert!(bounds.ahead.len() * 8 <= bytes.len()),
            Ok(_) | Err(_) => {}
        }
    }
}
