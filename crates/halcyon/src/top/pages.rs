//! The lines of each page.

use halcyon_model::value::timestamp_iso_string;
use ratatui::text::{Line, Span};

use super::grid::{Column, grid};
use super::sample::{Pace, Percentiles, Sample};
use super::screen::{Look, Page, Role, Screen};
use super::units::{NOTHING, latency, rate, span};
use crate::nodetool::file_size;

type Lines = Vec<Line<'static>>;

pub(super) fn lines(screen: &Screen, now: &Sample, page: Page, width: usize) -> Lines {
    match page {
        Page::Overview => overview(screen, now, width),
        Page::Tables => tables(screen, now, width),
        Page::Slow => slow(screen, now, width),
        Page::Clients => clients(screen, now, width),
    }
}

/// From the symptom to its causes.
fn overview(screen: &Screen, now: &Sample, width: usize) -> Lines {
    let mut lines = latencies(screen, now, width);
    lines.extend(per_read(screen, now, width));
    lines.extend(compactions(screen, now, width));
    lines.extend(io(screen, now, width));
    lines.extend(caches(screen, now, width));
    lines
}

/// The figures of a request, and its p99 over time in the rest of the line.
fn latencies(screen: &Screen, now: &Sample, width: usize) -> Lines {
    const LATENCIES: usize = 52;
    let room = width.saturating_sub(LATENCIES);
    let title = screen.style(Role::Title);
    let over_time = match room {
        0..10 => String::new(),
        _ => format!(
            "p99, last {}",
            span(screen.interval.as_secs_f64().mul_add(room as f64, 0.5) as u64)
        ),
    };
    let heads = format!(
        "{:<10}{:>9}{:>10}{:>10}{:>10}   {over_time}",
        "Latency", "p50", "p99", "p99.9", "per s"
    );
    let mut lines = vec![Line::styled(heads, title)];
    type Of = (&'static str, fn(&Sample) -> &Percentiles, fn(&Look) -> u64);
    let requests: [Of; 3] = [
        ("reads", |of| &of.reads, |moment| moment.reads_p99),
        ("ranges", |of| &of.ranges, |moment| moment.ranges_p99),
        ("writes", |of| &of.writes, |moment| moment.writes_p99),
    ];
    for (name, of, p99) in requests {
        let Percentiles { p50, p99: now_p99, p999, .. } = *of(now);
        let per_second = screen.rate(|sample| of(sample).count);
        let figures = format!(
            "{:<10}{:>9}{:>10}{:>10}{:>10}   ",
            format!(" {name}"),
            latency(p50),
            latency(now_p99),
            latency(p999),
            rate(per_second)
        );
        let mut spans = vec![Span::raw(figures)];
        spans.extend(sparks(screen, room, p99));
        lines.push(Line::from(spans));
    }
    let mut marks = vec![Span::raw(format!("{:<LATENCIES$}", " compacting"))];
    let moments = last(screen, room).map(|moment| moment.is_some_and(|of| of.is_compacting));
    let marked: String =
        moments.map(|is_compacting| if is_compacting { '■' } else { ' ' }).collect();
    marks.push(Span::styled(marked, screen.style(Role::Compacting)));
    lines.push(Line::from(marks));
    lines
}

/// The last moments that fit into `room` columns.
fn last(screen: &Screen, room: usize) -> impl Iterator<Item = Option<Look>> {
    let skipped = screen.moments.len().saturating_sub(room);
    screen.moments.iter().skip(skipped).copied()
}

/// A bar for each moment, of eight heights; those with a compaction in another colour.
fn sparks(screen: &Screen, room: usize, value: fn(&Look) -> u64) -> Vec<Span<'static>> {
    const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let most = last(screen, room).flatten().map(|of| value(&of)).max().unwrap_or(0).max(1);
    let bar = |moment: Option<Look>| match moment.map(|of| (value(&of), of.is_compacting)) {
        None | Some((0, _)) => Span::raw(" "),
        Some((value, is_compacting)) => {
            let height = (value as f64 / most as f64 * 7.0).round() as usize;
            let bar = BARS.get(height).copied().unwrap_or("█");
            match is_compacting {
                true => Span::styled(bar, screen.style(Role::Compacting)),
                false => Span::raw(bar),
            }
        }
    };
    last(screen, room).map(bar).collect()
}

fn per_read(screen: &Screen, now: &Sample, width: usize) -> Lines {
    let columns = [
        Column::Text("Read meets"),
        Column::Number("p50"),
        Column::Number("p99"),
        Column::Number("p99.9"),
        Column::Number("most"),
    ];
    let row = |name: &str, of: &Percentiles| {
        let numbers = [of.p50, of.p99, of.p999, of.max].map(|number| match of.count {
            0 => NOTHING.to_owned(),
            _ => number.to_string(),
        });
        std::iter::once(format!(" {name}")).chain(numbers).collect()
    };
    let rows =
        [row("SSTables", &now.sstables_per_read), row("tombstones", &now.tombstones_per_read)];
    grid(&columns, &rows, width, None, screen.style(Role::Title))
}

fn compactions(screen: &Screen, now: &Sample, width: usize) -> Lines {
    let backlog = &now.backlog;
    let title = Span::styled("Compaction", screen.style(Role::Title));
    let text = format!(
        "  {} running, {} waiting; due: {} tasks, {}, {} excess SSTables",
        now.tasks.len(),
        now.pace.waiting,
        backlog.tasks,
        file_size(backlog.bytes),
        backlog.excess_sstables
    );
    let mut lines = vec![Line::from(vec![title, Span::raw(text)]), pace(screen, &now.pace)];
    if backlog.write_wait_us > 0 {
        let text = format!(" each write waits {} µs for compaction", backlog.write_wait_us);
        lines.push(Line::styled(text, screen.style(Role::Warning)));
    }
    let columns = [
        Column::Text("table"),
        Column::Text("kind"),
        Column::Text("progress"),
        Column::Number(""),
        Column::Number(""),
        Column::Number("of"),
    ];
    let rows: Vec<Vec<String>> = now
        .tasks
        .iter()
        .map(|task| {
            let ratio = (task.progress as f64 / task.total.max(1) as f64).min(1.0);
            let size = |number: u64| match task.unit.as_str() {
                "bytes" => file_size(number),
                unit => format!("{number} {unit}"),
            };
            vec![
                format!(" {}", task.table),
                task.kind.clone(),
                progress(ratio),
                format!("{:.0} %", ratio * 100.0),
                size(task.progress),
                size(task.total),
            ]
        })
        .collect();
    let titled = grid(&columns, &rows, width, None, screen.style(Role::Title));
    lines.extend(titled.into_iter().skip(1));
    lines
}

fn progress(ratio: f64) -> String {
    const WIDTH: usize = 16;
    let done = (ratio * WIDTH as f64).round() as usize;
    "█".repeat(done) + &"░".repeat(WIDTH.saturating_sub(done))
}

/// How fast compaction goes, and what limits it.
fn pace(screen: &Screen, pace: &Pace) -> Line<'static> {
    let rate = |rate: Option<u64>| match rate {
        None | Some(0) => "none".to_owned(),
        Some(bytes) => format!("{}/s", file_size(bytes)),
    };
    let micros = |micros: Option<u64>| latency(micros.unwrap_or(0).saturating_mul(1000));
    let text = format!(
        " pace {}, limit {}; reads' p99 {}, target {}",
        rate(pace.bytes_per_second),
        rate(pace.throughput),
        micros(pace.read_p99_us),
        micros(pace.latency_target_us)
    );
    let mut spans = vec![Span::raw(text)];
    if pace.urgent {
        let why = ", ignored: urgent";
        spans.push(Span::styled(why, screen.style(Role::Warning)));
    }
    Line::from(spans)
}

fn io(screen: &Screen, now: &Sample, width: usize) -> Lines {
    let columns = [
        Column::Text("I/O"),
        Column::Number("ops/s"),
        Column::Number("bytes/s"),
        Column::Number("p50"),
        Column::Number("p99"),
        Column::Number("p99.9"),
        Column::Number("in flight"),
        Column::Number("errors"),
    ];
    let used = now.io.iter().filter(|io| io.operations > 0);
    let rows: Vec<Vec<String>> = used
        .map(|io| {
            let (operations, bytes) = screen.io_rates(io);
            vec![
                format!(" {}", io.purpose.replace('_', " ")),
                rate(operations),
                bytes.map_or(NOTHING.to_owned(), |bytes| file_size(bytes as u64)),
                latency(io.p50),
                latency(io.p99),
                latency(io.p999),
                io.queue_depth.to_string(),
                io.errors.to_string(),
            ]
        })
        .collect();
    grid(&columns, &rows, width, None, screen.style(Role::Title))
}

fn caches(screen: &Screen, now: &Sample, width: usize) -> Lines {
    let columns = [
        Column::Text("Cache"),
        Column::Number("hits"),
        Column::Number("lookups/s"),
        Column::Number("size"),
        Column::Number("of"),
    ];
    let used = now.caches.iter().filter(|cache| cache.capacity > 0);
    let rows: Vec<Vec<String>> = used
        .map(|cache| {
            vec![
                format!(" {}", cache.name),
                format!("{:.1} %", cache.hit_ratio * 100.0),
                rate(Some(cache.requests_per_second as f64)),
                file_size(cache.size),
                file_size(cache.capacity),
            ]
        })
        .collect();
    let mut lines = grid(&columns, &rows, width, None, screen.style(Role::Title));
    let memtables = now.tables.iter().map(|table| table.memtable).sum();
    let text = format!(
        "  {} of {}, of which memtables {}",
        file_size(now.node.memory),
        file_size(now.node.memory_max),
        file_size(memtables)
    );
    let title = Span::styled("Memory", screen.style(Role::Title));
    lines.push(Line::from(vec![title, Span::raw(text)]));
    lines
}

fn tables(screen: &Screen, now: &Sample, width: usize) -> Lines {
    let columns = [
        Column::Text("table"),
        Column::Number("reads/s"),
        Column::Number("writes/s"),
        Column::Number("read p99"),
        Column::Number("write p99"),
        Column::Number("SSTables"),
        Column::Number("tombstones"),
        Column::Number("size"),
        Column::Number("memtable"),
    ];
    let rows: Vec<Vec<String>> = screen
        .tables(now)
        .into_iter()
        .map(|(table, [reads, writes])| {
            vec![
                table.name.clone(),
                rate(reads),
                rate(writes),
                latency(table.read_p99),
                latency(table.write_p99),
                table.sstables.to_string(),
                format!("{:.1}", table.tombstones_per_read),
                file_size(table.disk_space),
                file_size(table.memtable),
            ]
        })
        .collect();
    let sorted = screen.sorted_by(Page::Tables);
    grid(&columns, &rows, width, Some(sorted), screen.style(Role::Title))
}

fn slow(screen: &Screen, now: &Sample, width: usize) -> Lines {
    let columns = [
        Column::Number("ended"),
        Column::Number("time"),
        Column::Number("waited"),
        Column::Number("executed"),
        Column::Number("log"),
        Column::Number("device"),
        Column::Number("SSTables"),
        Column::Text("table"),
        Column::Text("client"),
        Column::Text("query"),
    ];
    let time = |micros: u64| latency(micros.saturating_mul(1000));
    let rows: Vec<Vec<String>> = screen
        .slow(now)
        .into_iter()
        .map(|of| {
            let ended = timestamp_iso_string(of.ended_ms);
            vec![
                ended.get(11..19).unwrap_or_default().to_owned(),
                time(of.waited_us.saturating_add(of.executed_us)),
                time(of.waited_us),
                time(of.executed_us),
                time(of.log_us),
                time(of.device_us),
                of.sstables.to_string(),
                of.table.clone(),
                of.client.clone(),
                of.query.clone(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return vec![Line::raw("No request took longer than slow_query_log_timeout.")];
    }
    let sorted = screen.sorted_by(Page::Slow);
    grid(&columns, &rows, width, Some(sorted), screen.style(Role::Title))
}

fn clients(screen: &Screen, now: &Sample, width: usize) -> Lines {
    let columns = [
        Column::Text("client"),
        Column::Text("user"),
        Column::Text("keyspace"),
        Column::Text("TLS"),
        Column::Number("requests/s"),
        Column::Number("requests"),
        Column::Text("driver"),
    ];
    let rows: Vec<Vec<String>> = screen
        .clients(now)
        .into_iter()
        .map(|(client, per_second)| {
            vec![
                client.address.clone(),
                client.user.clone(),
                client.keyspace.clone(),
                if client.is_encrypted { "yes" } else { "no" }.to_owned(),
                rate(per_second),
                client.requests.to_string(),
                client.driver.clone(),
            ]
        })
        .collect();
    let sorted = screen.sorted_by(Page::Clients);
    grid(&columns, &rows, width, Some(sorted), screen.style(Role::Title))
}
