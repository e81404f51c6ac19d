//! The page: a section and bars for each compressor.

use halcyon_oracle::Result;
use serde_json::{Value, json};

use crate::dataset::Codec;
use crate::page::Page;
use crate::record::{Contender, Record};

const SPEED: &str = "raw_mib_per_second";

/// The limits that the codec and the device set, if they were measured.
fn bounds(record: &Record, codec: &str) -> Option<[(&'static str, f64); 2]> {
    let bounds = record.beside.get("bounds")?.get(codec)?;
    let of = |key: &str| bounds[key].as_f64();
    Some([("codec", of("codec_raw_mib_per_second")?), ("device", of("device_raw_mib_per_second")?)])
}

/// The rival with the best median.
fn best_rival<'a>(record: &'a Record, codec: &str) -> Option<(&'a Contender, f64)> {
    let rivals = record.contenders(codec).into_iter().filter(|who| !who.is_halcyon());
    let speeds = rivals.filter_map(|who| Some((who, record.median(codec, who, SPEED)?)));
    speeds.max_by(|a, b| a.1.total_cmp(&b.1))
}

pub(super) fn page(record: &mut Record) -> Result<Page> {
    record.derive("speed_by_bound", |rounds| {
        let [(_, codec), (_, device)] = bounds(rounds.record, rounds.heading)?;
        Some(rounds.median(SPEED)? / codec.min(device))
    });
    record.derive("speed_by_rival", |rounds| {
        Some(rounds.median(SPEED)? / best_rival(rounds.record, rounds.heading)?.1)
    });
    let headings = record.headings();
    let (buffers, codecs): (Vec<&str>, Vec<&str>) =
        headings.iter().partition(|heading| heading.starts_with("buffers "));
    let title = |codec: &str| Codec(codec.to_owned()).title();
    let engine = record.turns.first().and_then(|turn| turn.details["output"]["engine"].as_str());
    Ok(Page {
        template: include_str!("../../compaction/page.md"),
        names: json!({
            "drawn": codecs.iter().map(|codec| (*codec, title(codec))).collect::<Vec<_>>(),
            "bounds": codecs
                .iter()
                .filter_map(|codec| Some((*codec, bounds(record, codec)?.to_vec())))
                .collect::<std::collections::BTreeMap<_, _>>(),
            "codecs": codecs.iter().map(|codec| section(record, codec)).collect::<Vec<_>>(),
            "buffers": buffers,
            "engine": engine.unwrap_or("?"),
        }),
        ..Page::default()
    })
}

/// What the section of a compressor names.
fn section(record: &Record, codec: &str) -> Value {
    let contenders = record.contenders(codec);
    let rounds = |who| record.rounds(codec, who).turns().next();
    // A thread as busy as the clock is what the run waits for.
    let ours = contenders.iter().filter(|who| who.is_halcyon());
    let busy = ours.filter_map(|who| {
        let turn = rounds(who)?;
        let threads = &turn.details["cpu_seconds_by_thread"];
        Some(json!({ "who": who.name(), "threads": threads, "seconds": turn.get("seconds") }))
    });
    let rivals = contenders.iter().filter(|who| !who.is_halcyon());
    let cpu = rivals.filter_map(|who| record.median(codec, who, "cpu_seconds_per_gib"));
    let best = best_rival(record, codec);
    json!({
        "heading": codec,
        "title": Codec(codec.to_owned()).title(),
        "first": contenders.first().and_then(|who| rounds(who)).map(|turn| &turn.figures),
        "bounds": bounds(record, codec).map(|_| &record.beside["bounds"][codec]),
        "busy": busy.collect::<Vec<_>>(),
        "rival": best.map(|(who, _)| who.name()),
        "rival_speed": best.map(|(_, speed)| speed),
        "rival_cpu": cpu.reduce(f64::min),
    })
}
