//! Saves the caches of a running node, and warms them at its start.
//!
//! 1. Clients are served at once; the caches are warmed in the background, for at most `cache_load_timeout`.
//! 2. A cache with a period other than 0 is saved once per period, and before a drain.

use std::sync::{Arc, Weak};
use std::time::Duration;

use halcyon_engine::{Engine, SavedCache};
use halcyon_io::clock::{self, now};
use halcyon_io::{contained, kept, spawn};

use crate::log::Log;
use crate::settings::{SavedCaches, SavedEntries};

/// Each cache with its period and its largest number of saved entries.
fn caches(settings: &SavedCaches) -> [(SavedCache, Option<Duration>, SavedEntries); 2] {
    let (keys, rows) = (&settings.key_cache_keys_to_save, &settings.row_cache_keys_to_save);
    [
        (SavedCache::Keys, settings.key_cache_save_period, keys.clone()),
        (SavedCache::Rows, settings.row_cache_save_period, rows.clone()),
    ]
}

/// Warms the caches, then saves them periodically while the engine exists.
pub(crate) fn keep(engine: &Arc<Engine>, settings: &SavedCaches, log: &Log) {
    let timeout = settings.cache_load_timeout;
    for (cache, period, most) in caches(settings) {
        let (engine, log) = (Arc::downgrade(engine), log.clone());
        let saved = (engine.clone(), log.clone());
        let saving = move || {
            let ((engine, log), most) = (saved.clone(), most.clone());
            async move {
                let Some(period) = period else { return };
                loop {
                    clock::sleep(period).await;
                    let Some(engine) = engine.upgrade() else { return };
                    save(&engine, cache, most.get(), &log).await;
                }
            }
        };
        spawn(async move {
            contained(load(&engine, cache, timeout, &log)).await;
            kept(saving).await;
        })
        .detach();
    }
}

async fn load(engine: &Weak<Engine>, cache: SavedCache, timeout: Duration, log: &Log) {
    let began = now();
    let Some(engine) = engine.upgrade() else { return };
    match engine.saved_caches().load(cache, began + timeout).await {
        Ok(None) => {}
        Ok(Some(entries)) => {
            let ms = (now() - began).as_millis();
            log.say(format_args!("{cache}: {entries} saved entries looked up in {ms} ms"));
        }
        Err(e) => log.warning(format_args!("ignoring a saved cache: {e}")),
    }
}

async fn save(engine: &Engine, cache: SavedCache, most: usize, log: &Log) {
    match engine.saved_caches().save(cache, most).await {
        Ok(_) => {}
        Err(e) => log.warning(format_args!("{cache} cannot be saved: {e}")),
    }
}

/// Saves the caches before a drain.
pub(crate) async fn save_all(engine: &Engine, settings: &SavedCaches, log: &Log) {
    for (cache, period, most) in caches(settings) {
        if period.is_some() {
            save(engine, cache, most.get(), log).await;
        }
    }
}
