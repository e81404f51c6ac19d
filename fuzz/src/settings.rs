//! `cassandra.yaml`.

use halcyon_server::settings::{Machine, Overrides, Settings};

pub fn settings(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // An address, because a name would be looked up.
    let overrides = Overrides { listen: Some("127.0.0.1".to_owned()), ..Overrides::default() };
    for machine in [Machine { memory: 64 << 20, cores: 1 }, Machine { memory: 1 << 40, cores: 96 }]
    {
        let Ok(settings) = Settings::load(Some(&text), &overrides, machine) else { continue };
        assert!((1..=1024).contains(&settings.engine.shards), "{}", settings.engine.shards);
        assert!(settings.engine.commitlog.segment_size > 0 && settings.disk.buffer_budget > 0);
    }
}
