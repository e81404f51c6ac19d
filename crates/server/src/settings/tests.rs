use super::*;
use halcyon_engine::{SyncMode, Version};

const MACHINE: Machine = Machine { memory: 8 << 30, cores: 4 };

fn load(text: &str) -> Result<Settings> {
    Settings::load(Some(text), &Overrides::default(), MACHINE)
}

/// Proves what runs without any configuration: loopback, durable writes, the format that the directory says.
#[test]
fn defaults() {
    let settings = Settings::load(None, &Overrides::default(), MACHINE).unwrap();
    assert_eq!(settings.transport.address.to_string(), "127.0.0.1:9042");
    assert_eq!(settings.engine.data_directories, [PathBuf::from("halcyon-data/data")]);
    assert_eq!(settings.engine.commitlog.directory, PathBuf::from("halcyon-data/commitlog"));
    assert_eq!(settings.engine.commitlog.sync, SyncMode::Batch);
    assert_eq!(settings.engine.version, None);
    assert_eq!(settings.engine.shards, 4);
    assert_eq!(settings.transport.max_frame_size, 16 << 20);
    assert_eq!(settings.transport.idle_timeout, None);
    assert!(settings.meaningless.is_empty());
}

/// Proves that what a stock installation of Cassandra 5.0 says starts, with its meaning.
#[test]
fn a_stock_file_is_taken() {
    let settings = load(include_str!("stock-5.0.yaml")).unwrap();
    assert_eq!(settings.cluster_name.as_deref(), Some("Test Cluster"));
    let sync = SyncMode::Periodic { period: Duration::from_secs(10) };
    assert_eq!(settings.engine.commitlog.sync, sync);
    assert_eq!(settings.engine.version, Some(Version::NB));
    assert!(settings.meaningless.contains(&"hinted_handoff_enabled"));
    assert!(!settings.meaningless.contains(&"cluster_name"));
    let listed: BTreeMap<_, _> = settings.listed.into_iter().collect();
    assert_eq!(listed["num_tokens"].as_deref(), Some("16"));
    assert_eq!(listed["max_value_size"].as_deref(), Some("256MiB"));
    assert_eq!(listed["initial_token"], None);
}

/// Proves that names of 4.0 mean what they meant there, with the unit that they name.
#[test]
fn older_names() {
    let settings = load(
        "commitlog_segment_size_in_mb: 16\ncompaction_throughput_mb_per_sec: 0\n\
         native_transport_idle_timeout_in_ms: 1500\nkey_cache_save_period: 14400\n\
         native_transport_max_concurrent_requests_in_bytes: -1\nenable_materialized_views: true\n",
    )
    .unwrap();
    assert_eq!(settings.engine.commitlog.segment_size, 16 << 20);
    assert_eq!(settings.engine.compaction_throughput, None);
    assert_eq!(settings.transport.idle_timeout, Some(Duration::from_millis(1500)));
    assert_eq!(settings.transport.max_request_data_in_flight, (8 << 30) / 10);
    assert!(settings.engine.views.is_creation_allowed);
}

/// Proves that the command line goes before the file.
#[test]
fn the_command_line_goes_first() {
    let overrides = Overrides {
        data_dir: Some("/d".into()),
        listen: Some("::1".to_owned()),
        port: Some(7),
        shards: Some(2),
        io_engine: Some(BackendChoice::Pool),
        rackdc: None,
    };
    let text = "native_transport_port: 9\nrpc_address: 127.0.0.2\nshards: 3\nio_engine: uring\n\
                storage_compatibility_mode: NONE\nsstable:\n  selected_format: bti\n";
    let settings = Settings::load(Some(text), &overrides, MACHINE).unwrap();
    assert_eq!(settings.transport.address.to_string(), "[::1]:7");
    assert_eq!(settings.engine.shards, 2);
    assert_eq!(settings.engine.version, Some(Version::DA));
    assert_eq!(settings.disk.backend, Some(BackendChoice::Pool));
    assert_eq!(settings.engine.saved_caches_directory, PathBuf::from("/d/saved_caches"));
}

/// Proves that refusals name key, value and what is allowed, in Cassandra's words where it has some.
#[test]
fn refusals() {
    let cases = [
        (
            "foo: 1\nbar_in_ms: 2\n",
            "Invalid yaml. Please remove properties [foo, bar_in_ms] from your cassandra.yaml",
        ),
        (
            "commitlog_sync: often\n",
            "Invalid value `often` of commitlog_sync; allowed: periodic, batch, group",
        ),
        (
            "column_index_size: 64\n",
            "Invalid value `64` of column_index_size; allowed: a size with a unit: KiB, MiB, GiB",
        ),
        (
            "read_request_timeout: soon\n",
            "Invalid value `soon` of read_request_timeout; allowed: a duration with a unit: ms, s, m, h, d",
        ),
        (
            "native_transport_port: 70000\n",
            "Invalid value `70000` of native_transport_port; allowed: 0 to 65535",
        ),
        ("num_tokens: [1]\n", "Invalid value `[1]` of num_tokens; allowed: a whole number"),
        ("commitlog_sync: periodic\n", "Missing value for commitlog_sync_period"),
        (
            "authenticator:\n  class_name: org.apache.cassandra.auth.PasswordAuthenticator\n",
            "Invalid value `{class_name=org.apache.cassandra.auth.PasswordAuthenticator}` of authenticator; allowed: \
             AllowAllAuthenticator (others are not supported yet)",
        ),
        (
            "default_compaction:\n  class_name: FooStrategy\n",
            "Invalid value `{class_name=FooStrategy}` of default_compaction; allowed: a compaction strategy (Unable to \
             find compaction strategy class 'org.apache.cassandra.db.compaction.FooStrategy')",
        ),
        ("- a\n- b\n", "Invalid yaml: the file is not a mapping of keys to values"),
        ("shards: 0\n", "Invalid value `0` of shards; allowed: 1 to 1024"),
    ];
    for (text, message) in cases {
        assert_eq!(load(text).unwrap_err().to_string(), message);
    }
    assert!(matches!(load("a: [\n"), Err(Error::Syntax(_))));
}

/// Proves that a setting that protects and is not supported is refused by its name, and taken at values that protect nothing.
#[test]
fn protection_is_obeyed_or_refused() {
    let refused = [
        ("cdc_enabled: true\n", "cdc_enabled"),
        ("incremental_backups: true\n", "incremental_backups"),
        ("tables_fail_threshold: 1\n", "tables_fail_threshold"),
        ("allow_filtering_enabled: false\n", "allow_filtering_enabled"),
        ("column_value_size_fail_threshold: 1MiB\n", "column_value_size_fail_threshold"),
        ("table_properties_disallowed: gc_grace_seconds\n", "table_properties_disallowed"),
        ("page_size_warn_threshold: 100\n", "page_size_warn_threshold"),
        ("read_consistency_levels_warned: [ANY]\n", "read_consistency_levels_warned"),
        ("corrupted_tombstone_strategy: exception\n", "corrupted_tombstone_strategy"),
        ("max_mutation_size: 1MiB\n", "max_mutation_size"),
        ("startup_checks:\n  check_data_resurrection:\n    enabled: true\n", "startup_checks"),
        ("native_transport_port_ssl: 9142\n", "native_transport_port_ssl"),
        ("audit_logging_options:\n  enabled: true\n", "audit_logging_options"),
        (
            "transparent_data_encryption_options.enabled: true\n",
            "transparent_data_encryption_options",
        ),
        ("client_encryption_options:\n  optional: true\n", "client_encryption_options"),
        ("role_manager: org.example.Roles\n", "role_manager"),
        ("network_authorizer: CassandraNetworkAuthorizer\n", "network_authorizer"),
    ];
    for (text, name) in refused {
        let message = load(text).unwrap_err().to_string();
        assert!(message.contains(name), "{text}: {message}");
    }
    let harmless = "page_size_warn_threshold: -1\ncorrupted_tombstone_strategy: disabled\ncdc_enabled: false\nincremental_backups: False\ntables_fail_threshold: -1\nallow_filtering_enabled: TRUE\n\
                    table_properties_disallowed: []\ncolumn_value_size_fail_threshold:\naudit_logging_options:\n  enabled: false\n\
                    client_encryption_options:\n  enabled: false\n  optional: false\n";
    assert!(load(harmless).is_ok());
}

/// Proves that neither `system_views.settings` nor an error shows a secret.
#[test]
fn secrets_are_redacted() {
    let options =
        "{enabled: false, keystore: /k, keystore_password: hush1, truststore_password: hush2}";
    let provider =
        "[{class_name: P, parameters: [{key_password: hush3, keystore_password: hush4}]}]";
    let text = format!(
        "client_encryption_options: {options}\n\
         transparent_data_encryption_options: {{enabled: false, key_provider: {provider}}}\n"
    );
    let listed = format!("{:?}", load(&text).unwrap().listed);
    assert!(!listed.contains("hush"), "{listed}");
    assert!(listed.contains("keystore_password=<REDACTED>"), "{listed}");
    let wrong = format!("commitlog_sync: {options}\n");
    let message = load(&wrong).unwrap_err().to_string();
    assert!(!message.contains("hush"), "{message}");
}

/// Proves that aliases cannot make a small file fill the memory.
#[test]
fn aliases_are_bounded() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    assert!(matches!(load(&text), Err(Error::Syntax(_))));
}

/// Proves that caches have half of the memory, whichever of them is set, and chunks an eighth at least, or what they are given.
#[test]
fn half_of_the_memory_is_for_caches() {
    let caches = |text: &str| {
        let engine = load(text).expect("valid").engine;
        let others = engine.index_summary_capacity + engine.key_cache_size;
        (engine.chunk_cache_size, others, engine.chunk_cache_least)
    };
    let half = MACHINE.memory / 2;
    for text in ["# nothing\n", "key_cache_size: 1GiB\n", "index_summary_capacity: 10MiB\n"] {
        let (chunks, others, least) = caches(text);
        assert_eq!((chunks + others, least), (half, MACHINE.memory / 8), "{text}");
    }
    assert_eq!(caches("key_cache_size: 100GiB\n").0, MACHINE.memory / 8);
    let (chunks, _, least) = caches("file_cache_size: 3GiB\n");
    assert_eq!((chunks, least), (3 << 30, 3 << 30));
}

/// Proves that data centre and rack come from the snitch's file, otherwise from the data directory.
#[test]
fn data_centre_and_rack() {
    let place = |text: &str, rackdc: Option<&str>| {
        let overrides = Overrides { rackdc: rackdc.map(str::to_owned), ..Overrides::default() };
        let settings = Settings::load(Some(text), &overrides, MACHINE)?;
        Ok::<_, Error>(settings.data_center.zip(settings.rack))
    };
    let both = |dc: &str, rack: &str| Ok(Some((dc.to_owned(), rack.to_owned())));
    let gossiping = "endpoint_snitch: GossipingPropertyFileSnitch\n";
    let properties = "# where\ndc=Berlin\n rack = r7 \n# dc=other\n";
    assert_eq!(place("", Some(properties)), Ok(None));
    assert_eq!(place("endpoint_snitch: SimpleSnitch\n", None), both("datacenter1", "rack1"));
    assert_eq!(place(gossiping, Some(properties)), both("Berlin", "r7"));
    assert!(place(gossiping, None).is_err());
}

/// Proves that no setting of Cassandra that ends in a threshold is passed over in silence, except for the two that stock files set.
#[test]
fn thresholds_are_obeyed_or_refused() {
    // What they are about does not exist here: streams of other nodes, the JVM's collector, gossip, memtable cleanup.
    let about_nothing = [
        "sai_",
        "phi_",
        "memtable_cleanup",
        "reject_repair",
        "dynamic_snitch",
        "gc_",
        "queue_max_item_age",
        "consecutive_message_errors",
    ];
    let passed_over = ["partition_size_warn_threshold", "partition_tombstones_warn_threshold"];
    for key in keys::keys().iter().filter(|key| key.name.contains("_threshold")) {
        let nothing = about_nothing.iter().any(|part| key.name.contains(part));
        let ignored = key.support == Support::Meaningless;
        assert!(!ignored || nothing || passed_over.contains(&key.name), "{}", key.name);
    }
}
