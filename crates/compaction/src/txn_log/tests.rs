use super::*;

/// Proves that records have the bytes of Cassandra's classes.
#[test]
fn records_are_cassandras() {
    let golden = [
        "REMOVE:[/d/ks/t-00000000000000000000000000000001/oa-1-big-,1700000000123,8][3237550150]\n",
        "ADD:[/d/ks/t-00000000000000000000000000000001/oa-2-big-,0,8][3585343934]\n",
        "COMMIT:[,0,0][2613697770]\n",
        "ABORT:[,0,0][737437348]\n",
    ];
    for line in golden {
        let record = Record::parse(line.trim_end()).expect(line);
        assert_eq!(record.to_line(), line);
    }
}

#[test]
fn a_torn_last_line_is_left_out_and_an_earlier_one_refused() {
    let text = "ADD:[/d/oa-2-big-,0,0][1]\nCOMMIT:[,0,0][2613697770]\n";
    assert_eq!(Log::parse(text).map_err(|bad| bad.line), Err(1));
    let add = Record {
        record_type: RecordType::Add,
        prefix: "/d/oa-2-big-".into(),
        update_time_ms: 0,
        files: 0,
    };
    let torn = format!("{}COMMIT:[,0,0][26136", add.to_line());
    let log = Log::parse(&torn).expect("a torn end is not corruption");
    assert!(log.torn && !log.is_committed());
    assert_eq!(log.dead().collect::<Vec<_>>(), [&add]);
}

#[test]
fn names_of_logs() {
    assert!(is_log_name("oa_txn_compaction_6f8d4c10-0001-11ef-8000-000000000001.log"));
    assert!(is_log_name("bti-da_txn_write_6f8d4c10-0001-11ef-8000-000000000001.log"));
    assert!(!is_log_name("oa-1-big-Data.db"));
    assert!(!is_log_name("debug.log"));
}

/// Proves that replicas merge to one log as in Cassandra.
#[test]
fn replicas_are_read_together() {
    let record = |record_type, prefix: &str, update_time_ms| Record {
        record_type,
        prefix: prefix.into(),
        update_time_ms,
        files: 8,
    };
    let add = record(RecordType::Add, "/a/oa-3-big-", 0).to_line();
    let remove = record(RecordType::Remove, "/b/oa-1-big-", 5000).to_line();
    let commit = Record::last(RecordType::Commit).to_line();
    let abort = Record::last(RecordType::Abort).to_line();
    let whole = format!("{add}{remove}{commit}");
    let is_committed = |replicas: &[&str]| Log::merge(replicas).map(|log| log.is_committed());
    let bad_line = |replicas: &[&str]| Log::merge(replicas).map_err(|bad| (bad.replica, bad.line));

    assert_eq!(is_committed(&[&whole, &whole]), Ok(true));
    for end in 0..whole.len() {
        let short = &whole[..end];
        assert_eq!(is_committed(&[&whole, short]), Ok(true), "{short:?}");
        assert_eq!(is_committed(&[short, &whole]), Ok(true), "{short:?}");
        let committed = end + 1 >= whole.len();
        assert_eq!(is_committed(&[short, short]), Ok(committed), "{short:?}");
        let lost = format!("{short}\0\0\0");
        assert_eq!(is_committed(&[&whole, &lost]), Ok(true), "{lost:?}");
    }
    let aborted = format!("{add}{remove}{abort}");
    assert!(bad_line(&[&whole, &aborted]).is_err_and(|(_, line)| line == 3));
    let other = format!("{add}{commit}");
    assert!(bad_line(&[&whole, &other]).is_err_and(|(_, line)| line == 2));
    let twice = format!("{add}{add}{commit}");
    assert_eq!(bad_line(&[&twice]), Err((0, 2)));
    let further = format!("{whole}{remove}");
    assert_eq!(bad_line(&[&whole, &further]), Err((1, 4)));
}

/// Proves that an output never takes an identifier of which a file exists, and that aborting leaves that file where it is.
#[test]
fn files_of_others_are_left() {
    halcyon_io::block_on(async {
        let (disk, _) = halcyon_io::Disk::simulated(1);
        let directory = std::path::Path::new("/d");
        disk.create_dir_all(directory).await.expect("created");
        let version = halcyon_sstable::Version::OA;
        let of = |id| {
            let id = halcyon_sstable::SSTableId::Sequence(id);
            halcyon_sstable::Descriptor::new(directory, version, id)
        };
        let foreign = of(1).component_path(halcyon_sstable::Component::Data);
        disk.write_new(&foreign, b"x", halcyon_io::Purpose::Flush).await.expect("written");
        let directories = [directory.to_path_buf()];
        let mut transaction =
            Transaction::begin(&disk, directories, "flush", "1", version).await.expect("begun");
        let mut ids = 1..;
        let added = transaction.add_fresh(async || Ok(of(ids.next().unwrap_or(0)))).await;
        assert_eq!(added.expect("added"), of(2));
        transaction.abort().await.expect("aborted");
        assert!(disk.exists(&foreign).await.expect("asked"));
    });
}
