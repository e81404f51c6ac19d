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
    let listed = settings.listed;
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
        log_level: Some(crate::log::Level::Warn.into()),
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
            "authenticator:\n  class_name: org.example.PasswordAuthenticator\n",
            "Invalid value `{class_name=org.example.PasswordAuthenticator}` of authenticator; allowed: \
             AllowAllAuthenticator or PasswordAuthenticator or MutualTlsAuthenticator or \
             MutualTlsWithPasswordFallbackAuthenticator (others are not supported yet)",
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
        ("corrupted_tombstone_strategy: exception\n", "corrupted_tombstone_strategy"),
        ("max_mutation_size: 1MiB\n", "max_mutation_size"),
        ("startup_checks:\n  check_data_resurrection:\n    enabled: true\n", "startup_checks"),
        ("audit_logging_options:\n  enabled: true\n", "audit_logging_options"),
        (
            "transparent_data_encryption_options.enabled: true\n",
            "transparent_data_encryption_options",
        ),
        ("role_manager: org.example.Roles\n", "role_manager"),
        ("network_authorizer: CassandraNetworkAuthorizer\n", "CassandraNetworkAuthorizer"),
        ("authorizer: CassandraAuthorizer\n", "CassandraAuthorizer has authorization enabled"),
        ("cidr_authorizer: CassandraCIDRAuthorizer\n", "CassandraCIDRAuthorizer can't be used"),
        (
            "cidr_authorizer:\n  class_name: CassandraCIDRAuthorizer\n  parameters:\n    cidr_authorizer_mode: LATER\n",
            "MONITOR or ENFORCE",
        ),
        (
            "cidr_authorizer:\n  class_name: CassandraCIDRAuthorizer\n  parameters:\n    mode: ENFORCE\n",
            "not mode",
        ),
        ("auth_bcrypt_gensalt_log2_rounds: 3\n", "4 to 30"),
    ];
    for (text, name) in refused {
        let message = load(text).unwrap_err().to_string();
        assert!(message.contains(name), "{text}: {message}");
    }
    let harmless = "page_size_warn_threshold: -1\ncorrupted_tombstone_strategy: disabled\ncdc_enabled: false\ntables_fail_threshold: -1\nallow_filtering_enabled: TRUE\n\
                    table_properties_disallowed: []\ncolumn_value_size_fail_threshold:\naudit_logging_options:\n  enabled: false\n\
                    client_encryption_options:\n  enabled: false\n  optional: false\n";
    assert!(load(harmless).is_ok());
}

/// Proves that client_encryption_options are read by Cassandra's names, and that unknown members and wrong values are named.
#[test]
fn encryption_is_read() {
    use halcyon_tls::{ClientAuth, Factory, Secret};
    let of = |members: &str| {
        load(&format!("client_encryption_options: {{{members}}}\n")).map(|s| s.transport.encryption)
    };
    let defaults = of("").unwrap();
    assert_eq!((defaults.enabled, defaults.optional), (false, None));
    assert_eq!(
        (defaults.keystore.as_str(), defaults.store_type.as_str()),
        ("conf/.keystore", "JKS")
    );
    let read = of(
        "enabled: true, optional: false, require_client_auth: optional, cipher_suites: [A, B], accepted_protocols: 'C, D'",
    );
    let read = read.unwrap();
    assert_eq!((read.enabled, read.optional), (true, Some(false)));
    assert_eq!(read.require_client_auth, ClientAuth::Optional);
    let list = |names: [&str; 2]| Some(names.map(str::to_owned).to_vec());
    assert_eq!((read.cipher_suites, read.accepted_protocols), (list(["A", "B"]), list(["C", "D"])));
    for parameters in ["{private_key: K}", "[{private_key: K}]"] {
        let class = "org.apache.cassandra.security.PEMBasedSslContextFactory";
        let read =
            of(&format!("ssl_context_factory: {{class_name: {class}, parameters: {parameters}}}"));
        let expected = Factory::Pem {
            private_key: Some(Secret("K".to_owned())),
            private_key_password: None,
            trusted_certificates: None,
        };
        assert_eq!(read.unwrap().factory, expected);
    }
    for (members, part) in [
        ("keystor: x", "client_encryption_options.keystor"),
        ("enabled: perhaps", "`perhaps` of client_encryption_options.enabled"),
        ("require_client_auth: 1", "true, false or optional"),
        (
            "keystore_password: [hush]",
            "`<REDACTED>` of client_encryption_options.keystore_password",
        ),
        ("ssl_context_factory: a.b.Own", "PEMBasedSslContextFactory"),
        (
            "ssl_context_factory: {class_name: PEMBasedSslContextFactory, parameters: {key: x}}",
            "parameters.key",
        ),
    ] {
        let message = of(members).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(load("native_transport_port_ssl: 9142\n").unwrap().transport.port_ssl, Some(9142));
}

/// Proves that roles and permissions are set by Cassandra's names, as a class or as its name, and that an update interval shortens what a
/// cache believes.
#[test]
fn access_has_cassandras_settings() {
    let access = |text: &str| load(text).unwrap().access;
    let open = access("");
    assert!(!open.asks_for_login() && !open.authorizes && !open.restricts_datacenters);
    assert_eq!(open, halcyon_access::Settings::default());
    let text = "authenticator:\n  class_name: org.apache.cassandra.auth.PasswordAuthenticator\n  parameters:\n\
                authorizer: {class_name: CassandraAuthorizer}\nnetwork_authorizer: CassandraNetworkAuthorizer\n\
                role_manager: CassandraRoleManager\nroles_validity_in_ms: 500\npermissions_validity: 10s\n\
                permissions_update_interval: 3s\ncredentials_validity: 0ms\ncredentials_cache_max_entries: 7\n\
                native_transport_max_auth_threads: 2\nauth_bcrypt_gensalt_log2_rounds: 4\n\
                role_password_update_min_interval: 0ms\nsuperuser_setup_delay: 1ms\n";
    let closed = access(text);
    assert!(closed.takes_passwords() && closed.authorizes && closed.restricts_datacenters);
    let validities = [closed.roles, closed.permissions, closed.credentials].map(|of| of.validity);
    assert_eq!(validities, [500, 3000, 0].map(Duration::from_millis));
    assert_eq!((closed.credentials.max_entries, closed.auth_threads), (7, 2));
    assert_eq!((closed.hash_rounds, closed.password_update_min_interval), (4, Duration::ZERO));
    assert_eq!(closed.superuser_setup_delay, Duration::from_millis(1));
    for (class, required, is_fine) in [
        ("MutualTlsAuthenticator", "true", true),
        ("MutualTlsAuthenticator", "optional", false),
        ("MutualTlsAuthenticator", "false", false),
        ("MutualTlsWithPasswordFallbackAuthenticator", "optional", true),
        ("MutualTlsWithPasswordFallbackAuthenticator", "false", false),
    ] {
        for validator in [
            "org.apache.cassandra.auth.SpiffeCertificateValidator",
            "CommonNameCertificateValidator",
        ] {
            let text = format!(
                "authenticator: {{class_name: {class}, parameters: {{validator_class_name: {validator}}}}}\n\
                 client_encryption_options: {{enabled: true, require_client_auth: {required}}}\n"
            );
            let loaded = load(&text);
            assert_eq!(loaded.is_ok(), is_fine, "{text}");
            let message = loaded.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(is_fine || message.contains("require_client_auth to be true"), "{message}");
        }
    }
    for (parameters, part) in [
        ("", "authenticator.parameters.validator_class_name is not set"),
        (", parameters: {validator_class_name: a.b.Own}", "SpiffeCertificateValidator or Comm"),
        (", parameters: {validator_class_name: SpiffeCertificateValidator, a: b}", "not a"),
    ] {
        let text = format!("authenticator: {{class_name: MutualTlsAuthenticator{parameters}}}\n");
        let message = load(&text).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    let with_parameters =
        "authenticator: {class_name: PasswordAuthenticator, parameters: {a: b}}\n";
    assert!(load(with_parameters).unwrap_err().to_string().contains("without parameters"));
}

/// Proves that neither `system_views.settings` nor an error shows a secret.
#[test]
fn secrets_are_redacted() {
    let options = "{enabled: false, keystore: /k, keystore_password: hush1, truststore_password: hush2, \
                   ssl_context_factory: {class_name: PEMBasedSslContextFactory, parameters: {private_key: hush5}}}";
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

/// Settings of Cassandra that sound as if they restricted, and why passing them over takes nothing from anybody.
const ABOUT_NOTHING: [(&[&str], &str); 9] = [
    (
        &[
            "phi_convict_threshold",
            "hinted_handoff_enabled",
            "back_pressure_enabled",
            "dynamic_snitch_badness_threshold",
            "max_hint",
            "hint_window",
            "min_tracked_",
            "max_top_",
            "internode_",
            "consecutive_message_errors_threshold",
            "block_for_peers",
            "ideal_consistency_level",
            "enforce_native_deadline_for_hints",
        ],
        "one node has no peers, no hints and no gossip",
    ),
    (
        &[
            "reject_repair_compaction_threshold",
            "repair_",
            "materialized_views_on_repair_enabled",
            "cdc_on_repair_enabled",
            "repaired_data_tracking",
            "skip_paxos_repair",
            "use_offheap_merkle_trees",
            "report_unconfirmed",
            "validation_preview",
        ],
        "there is no repair",
    ),
    (
        &[
            "max_streaming_retries",
            "streaming_",
            "stream_",
            "skip_stream_disk_space_check",
            "inter_dc_",
            "entire_sstable_",
        ],
        "there are no streams",
    ),
    (&["cdc_"], "without cdc_enabled, which is refused"),
    (
        &[
            "gc_",
            "dump_heap_on_uncaught_exception",
            "buffer_pool_use_heap_if_exhausted",
            "file_cache_enabled",
        ],
        "there is no Java heap",
    ),
    (
        &[
            "allow_insecure_udfs",
            "allow_extra_insecure_udfs",
            "transient_replication_enabled",
            "automatic_sstable_upgrade",
            "max_concurrent_automatic_sstable_upgrades",
            "diagnostic_events_enabled",
            "force_optimized_index_status_format",
            "sstable_read_rate_persistence_enabled",
            "paxos_",
            "auto_hints_cleanup_enabled",
        ],
        "they allow or add, and their default does not",
    ),
    (
        &[
            "memtable_cleanup_threshold",
            "native_transport_max_threads",
            "native_transport_max_auth_threads",
            "native_transport_queue_max_item_age_threshold",
            "native_transport_max_backoff",
            "native_transport_min_backoff",
            "commitlog_max_compression_buffers_in_pool",
        ],
        "shards have no queues of threads; the budget of memory is one",
    ),
    (
        &[
            "log_out_of_token_range_requests",
            "client_request_size_metrics_enabled",
            "top_partitions_enabled",
        ],
        "they only tell, and stock files set them",
    ),
    (
        &[
            "reject_out_of_token_range_requests",
            "listen_interface_prefer_ipv6",
            "rpc_interface_prefer_ipv6",
            "initial_range_tombstone",
            "check_for_duplicate_rows",
            "snapshot_on_duplicate_row_detection",
            "invalid_legacy_protocol_magic_no_spam_enabled",
        ],
        "the node has all tokens; others are of what is refused",
    ),
];

/// Proves that a setting whose name sounds like a restriction is obeyed or refused, or that what it restricts is not there.
#[test]
fn restrictions_are_obeyed_or_refused() {
    let sounds = |name: &str| {
        ["_threshold", "_enabled", "_warned", "reject", "_fail", "disallow", "refuse", "allow_"]
            .iter()
            .any(|part| name.contains(part))
            || name.starts_with("max_")
            || name.starts_with("min_")
    };
    let passed_over: Vec<&str> = keys::keys()
        .iter()
        .filter(|key| key.support == Support::Meaningless && sounds(key.name))
        .map(|key| key.name)
        .filter(|name| {
            !ABOUT_NOTHING.iter().any(|(parts, _)| parts.iter().any(|p| name.starts_with(p)))
        })
        .collect();
    assert_eq!(passed_over, [""; 0]);
}

/// Proves that what restricts in Cassandra and cannot be had keeps the node from starting, in whatever unit it is written, and that its
/// default does not.
#[test]
fn restrictions_that_cannot_be_had_are_named() {
    for (wrong, right) in [
        ("max_value_size: 1MiB", "max_value_size: 256MiB"),
        ("max_value_size_in_mb: 1", "max_value_size_in_mb: 256"),
        ("local_system_data_file_directory: /x", "local_system_data_file_directory:"),
        ("auto_snapshot_ttl: 30d", "auto_snapshot_ttl:"),
    ] {
        let name = wrong.split(':').next().unwrap().trim_end_matches("_in_mb");
        let message = load(&format!("{wrong}\n")).unwrap_err().to_string();
        assert!(message.starts_with(name), "{wrong}: {message}");
        assert!(load(&format!("{right}\n")).is_ok(), "{right}");
    }
}

/// Proves that one message has all that is wrong with a file.
#[test]
fn all_that_is_wrong_is_told() {
    let text = "cdc_enabled: true\nfoo: 1\nshards: 0\nmemtable_flush_writers: -1\ncommitlog_sync: often\n\
                 column_index_size: 64\nauthenticator: LdapAuthenticator\nconcurrent_compactors: 1000000\n\
                 native_transport_port: 70000\nmax_mutation_size: 1MiB\npartitioner: RandomPartitioner\n";
    let message = load(text).unwrap_err().to_string();
    for name in [
        "max_mutation_size, cdc_enabled",
        "[foo]",
        "`0` of shards",
        "of commitlog_sync",
        "of column_index_size",
        "of authenticator",
        "of native_transport_port",
        "of partitioner",
    ] {
        assert!(message.contains(name), "{name}: {message}");
    }
}

/// Proves of each setting that it is taken or refused with its name at values beyond all sense, and that what is refused says what is
/// allowed.
#[test]
fn extremes_are_refused_or_taken() {
    let numbers = [
        "0",
        "-1",
        "-2147483649",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "1e400",
        "NaN",
        "\"\"",
        "x",
        "[]",
        "{}",
        "[{}]",
    ];
    let units = ["B", "KiB", "MiB", "GiB", "ns", "us", "ms", "s", "m", "h", "d", "B/s", "MiB/s"];
    let with_units = units.iter().flat_map(|unit| {
        ["0", "-1", "2147483648", "9223372036854775807", "9223372036854775808"]
            .map(|n| format!("{n}{unit}"))
    });
    let values: Vec<String> = numbers.iter().map(|n| (*n).to_owned()).chain(with_units).collect();
    for key in keys::keys() {
        let names = std::iter::once(key.name).chain(key.older.iter().map(|(name, _)| *name));
        for name in names {
            for value in &values {
                let Err(error) = load(&format!("{name}: {value}\n")) else { continue };
                let message = error.to_string();
                assert!(
                    message.contains(key.name) || message.contains(name),
                    "{name}: {value}: {message}"
                );
            }
        }
    }
}

/// Proves that what a message says is allowed is, and what lies just beyond it is not.
#[test]
fn bounds_are_those_of_the_message() {
    for (name, least, most) in [
        ("concurrent_compactors", 1, 128),
        ("memtable_flush_writers", 0, 128),
        ("num_tokens", 1, 1536),
        ("shards", 1, 1024),
        ("native_transport_port", 0, 65535),
        ("storage_port", 0, 65535),
    ] {
        for good in [least, most] {
            assert!(load(&format!("{name}: {good}\n")).is_ok(), "{name}: {good}");
        }
        for wrong in [least - 1, most + 1, 1 << 31, i64::MAX] {
            let message = load(&format!("{name}: {wrong}\n")).unwrap_err().to_string();
            let says = format!("Invalid value `{wrong}` of {name}; allowed: {least} to {most}");
            assert_eq!(message, says);
        }
    }
    let name = "max_space_usable_for_compactions_in_percentage";
    for (value, is_right) in [("0", true), ("1.0", true), ("1.1", false), ("NaN", false)] {
        assert_eq!(load(&format!("{name}: {value}\n")).is_ok(), is_right, "{value}");
    }
    let engine = load("min_free_space_per_drive: 1GiB\nautocompaction_on_startup_enabled: false\n");
    let engine = engine.unwrap().engine;
    assert_eq!((engine.compaction_space.kept, engine.compacts_after_start), (1 << 30, false));
    assert_eq!(engine.compaction_space.share, 0.95);
}

/// Proves that options of both logs are read whole under Cassandra's names, and that each wrong one is named with what is allowed.
#[test]
fn request_logs_are_read_whole() {
    let text = "audit_logging_options:\n  enabled: yes\n  logger:\n    - class_name: org.apache.cassandra.audit.FileAuditLogger\n      parameters:\n        -\n  \
                audit_logs_dir: /a\n  included_users: x,y\n  excluded_categories: QUERY\n  roll_cycle: daily\n  block: off\n  max_queue_weight: 77\n  \
                max_log_size: 88\n  archive_command: /bin/x %path\n  max_archive_retries: 3\n  allow_nodetool_archive_command: false\n\
                full_query_logging_options:\n  log_dir: /f\n";
    let logs = load(text).unwrap().request_logs;
    let audit = &logs.audit;
    assert!(audit.enabled && !audit.log.block);
    assert_eq!((audit.log.max_queue_weight, audit.log.max_log_size), (77, 88));
    assert_eq!((audit.logger.name(), audit.log.roll_cycle.name()), ("FileAuditLogger", "DAILY"));
    assert_eq!(audit.log.archive_command, "/bin/x %path");
    assert_eq!(audit.lists.excluded_keyspaces, "system,system_schema,system_virtual_schema");
    assert_eq!(logs.full_query_log.directory, PathBuf::from("/f"));
    assert_eq!(logs.full_query_log.max_log_size, 16 << 30);
    let defaults = load("").unwrap().request_logs.audit;
    assert!(!defaults.enabled && defaults.logger.name() == "BinAuditLogger");
    let cases = [
        ("enabled: maybe", "true or false"),
        ("enabled: true", "the default, writes Chronicle queues"),
        ("included_categories: query", "category query not found in"),
        ("roll_cycle: FAST_HOURLY", "MINUTELY, HOURLY, DAILY"),
        ("max_queue_weight: 0", "1 to 2147483647"),
        ("max_log_size: -1", "1 to 9223372036854775807"),
        ("allow_nodetool_archive_command: true", "archive_command in the file"),
        ("nope: 1", "audit_logging_options.nope"),
        ("logger: {class_name: Nope}", "FileAuditLogger"),
        ("logger: {class_name: FileAuditLogger, parameters: [{a: b}]}", "no parameters"),
        ("block: [1]", "a scalar"),
    ];
    for (member, said) in cases {
        let text = format!("audit_logging_options:\n  {member}\n");
        let message = load(&text).unwrap_err().to_string();
        assert!(message.contains("audit_logging_options") && message.contains(said), "{message}");
    }
}

/// Proves that the denylist is off unless it is enabled, and has Cassandra's defaults.
#[test]
fn the_denylist_has_cassandras_defaults() {
    assert_eq!(load("denylist_refresh: 1s\n").unwrap().denylist, None);
    let enabled = "partition_denylist_enabled: true\n";
    let options = load(enabled).unwrap().denylist.unwrap();
    assert!(options.writes_enabled && options.reads_enabled && options.range_reads_enabled);
    assert_eq!((options.max_keys_per_table, options.max_keys_total), (1_000, 10_000));
    assert_eq!(options.consistency_level.name(), "QUORUM");
    assert_eq!((options.refresh.as_secs(), options.initial_load_retry.as_secs()), (600, 5));
    let set =
        format!("{enabled}denylist_consistency_level: local_one\ndenylist_reads_enabled: no\n");
    let options = load(&set).unwrap().denylist.unwrap();
    assert_eq!((options.consistency_level.name(), options.reads_enabled), ("LOCAL_ONE", false));
    let message = load("denylist_max_keys_total: 0\n").unwrap_err().to_string();
    assert!(message.contains("denylist_max_keys_total"), "{message}");
}

/// Proves that the manual's table of guardrails has each setting that the node obeys, with its default, and no other.
#[test]
fn the_manual_lists_guardrails() {
    use halcyon_guardrails::{Flag, Threshold, Values};
    let manual = include_str!("../../../../docs/operate/guardrails.md");
    let mut listed = BTreeMap::new();
    for line in manual.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let names = cells[1].split(", ").map(|name| name.trim_matches('`'));
        listed.extend(names.zip(cells[2].split(", ")));
    }
    let mut names: Vec<String> = Flag::ALL.iter().map(|spec| spec.enabled.to_owned()).collect();
    names.extend(Flag::ALL.iter().filter_map(|spec| spec.warned).map(str::to_owned));
    for spec in &Values::ALL {
        let words = [Some(spec.warned), spec.ignored, Some(spec.disallowed)];
        names.extend(words.into_iter().flatten().map(str::to_owned));
    }
    for spec in &Threshold::ALL {
        names.extend(["warn", "fail"].map(|level| format!("{}_{level}_threshold", spec.setting)));
    }
    let keys = keys::keys();
    for name in &names {
        let key = keys.iter().find(|key| key.name == name).expect(name);
        let default = (key.support == Support::Obeyed).then(|| key.default.unwrap_or("null"));
        assert_eq!(listed.remove(name.as_str()), default, "{name}");
    }
    assert!(listed.is_empty(), "{listed:?}");
}

/// Proves that a password policy is off unless it is set, and what of it is refused.
#[test]
fn a_password_policy_is_read() {
    assert_eq!(load("").unwrap().access.password_policy, None);
    let policy = |more: &str| {
        load(&format!(
            "password_policy:\n  validator_class_name: CassandraPasswordValidator\n{more}"
        ))
    };
    let set = policy("  length_warn: 20\n  generator_class_name: CassandraPasswordGenerator\n");
    let set = set.unwrap().access.password_policy.unwrap();
    assert_eq!((set.warn.length, set.fail.length, set.generates), (20, 8, true));
    for (more, text) in [
        ("  length_warn: 8\n", "length_warn of value 8 is less or equal to length_fail of value 8"),
        ("  max_length: 1001\n", "max_length can not be greater than 1000"),
        ("  illegal_sequence_length: 2\n", "can not be lower than 3"),
        ("  characteristic_warn: 4\n", "can not be bigger than 3"),
        ("  dictionary: /tmp/words\n", "dictionary is not supported"),
        ("  generator_class_name: Mine\n", "CassandraPasswordGenerator or NoOpGenerator"),
        ("  digit_fail: many\n", "a number"),
    ] {
        let message = policy(more).unwrap_err().to_string();
        assert!(message.contains(text), "{more}: {message}");
    }
}

/// Proves that thresholds of reads hold only where they are turned on, and are refused in Cassandra's words where they contradict each
/// other.
#[test]
fn thresholds_of_reads_are_turned_on() {
    use halcyon_query::{ReadSizes, SizeBounds};
    let set = "coordinator_read_size_warn_threshold: 1KiB\nlocal_read_size_fail_threshold: 2B\nrow_index_read_size_fail_threshold: 3B\n";
    let off = load(set).unwrap();
    assert_eq!(off.limits.read_sizes, ReadSizes::OFF);
    assert!(!off.engine.measures_row_indexes);
    let on = load(&format!("{set}read_thresholds_enabled: true\n")).unwrap().limits.read_sizes;
    let coordinator = SizeBounds { warn: 1_024, fail: u64::MAX };
    let failing = |fail| SizeBounds { warn: u64::MAX, fail };
    assert_eq!(on, ReadSizes { coordinator, local: failing(2), row_index: failing(3) });
    let wrong = "local_read_size_warn_threshold: 4KiB\nlocal_read_size_fail_threshold: 2KiB\n";
    let text = "local_read_size_fail_threshold (2KiB) must be greater than or equal to local_read_size_warn_threshold (4KiB)";
    assert_eq!(load(wrong).unwrap_err().to_string(), text);
}

/// Proves that guardrails are refused in Cassandra's words where they contradict each other or the default factor of keyspaces, and that
/// the older counts lose those of the system.
#[test]
fn guardrails_are_checked_at_the_start() {
    for (text, message) in [
        (
            "tables_warn_threshold: 5\ntables_fail_threshold: 4\n",
            "Invalid guardrails configuration: The warn threshold 5 for tables_warn_threshold should be lower than the fail threshold 4",
        ),
        (
            "minimum_replication_factor_fail_threshold: 2\n",
            "default_keyspace_rf (1) cannot be less than minimum_replication_factor_fail_threshold (2)",
        ),
        (
            "maximum_replication_factor_fail_threshold: 2\ndefault_keyspace_rf: 3\n",
            "Invalid guardrails configuration: maximum_replication_factor_fail_threshold to be set (2) cannot be lesser than default_keyspace_rf (3)",
        ),
        ("default_keyspace_rf: 0\n", "default_keyspace_rf cannot be less than 1"),
    ] {
        assert_eq!(load(text).unwrap_err().to_string(), message);
    }
    let settings =
        load("keyspace_count_warn_threshold: 40\ntable_count_warn_threshold: 150\n").unwrap();
    let listed = |name: &str| settings.listed[name].clone();
    assert_eq!(listed("keyspaces_warn_threshold").as_deref(), Some("35"));
    assert_eq!(listed("tables_warn_threshold").as_deref(), Some("102"));
}

/// Proves that docs/operate/logs.md lists the settings of the log with their defaults, and no others.
#[test]
fn the_manual_lists_the_settings_of_the_log() {
    let manual = include_str!("../../../../docs/operate/logs.md");
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: Vec<_> = rows.filter_map(|row| row.split_once("` | `")).collect();
    let of_log = |name: &str| {
        let others = ["slow_query_log_timeout", "monitoring_report_interval"];
        name.starts_with("log_") && name != "log_out_of_token_range_requests"
            || name.starts_with("tracing_otlp_")
            || others.contains(&name)
    };
    let keys = keys::keys();
    for key in keys.iter().filter(|key| of_log(key.name)) {
        let row = listed.iter().find(|(name, _)| *name == key.name).expect(key.name);
        let default = row.1.split('`').next();
        assert_eq!(
            (key.support, default),
            (Support::Obeyed, Some(key.default.unwrap_or("null"))),
            "{}",
            key.name
        );
    }
    assert!(listed.iter().all(|(name, _)| of_log(name)), "{listed:?}");
}

/// Proves what settings make of the log: files have all from DEBUG on, as in Cassandra, the command line goes before the file, and names of
/// Cassandra's classes stand for loggers.
#[test]
fn the_log_is_as_the_settings_say() {
    use crate::log::{Level, Threshold};
    let log = load("").unwrap().log;
    assert_eq!(log.root, Threshold::from(Level::Info));
    let text = "log_destination: files\nlog_levels: {org.apache.cassandra.db.compaction: 'OFF', server: trace}\n";
    let log = load(text).unwrap().log;
    assert_eq!(log.root, Threshold::from(Level::Debug));
    let levels: Vec<_> =
        log.loggers.iter().map(|(name, level)| (name.as_str(), level.name())).collect();
    assert_eq!(levels, [("engine.compact", "OFF"), ("server", "TRACE")]);
    for (wrong, message) in [
        ("log_levels: {engine: loud}\n", "log_levels.engine: invalid log level 'loud'"),
        ("log_levels: {nope: info}\n", "log_levels.nope: unknown logger 'nope'"),
        ("log_levels: info\n", "log_levels"),
        ("log_file_size: 0MiB\n", "log_file_size"),
        ("log_file_count: -1\n", "log_file_count"),
    ] {
        let error = load(wrong).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// Proves that `system_views.settings` has the rows and values of Cassandra 5.0.9 with the same file, but for what each node decides itself
/// and for what concerns Halcyon alone.
#[test]
fn settings_are_listed_as_cassandra_lists_them() {
    let settings = load(include_str!("recorded/5.0.9.yaml")).unwrap();
    let mut found = listed::with_older_names(&settings.listed);
    for key in keys::keys().iter().filter(|key| key.is_own) {
        assert!(found.remove(key.name).is_some(), "{}", key.name);
    }
    let value = |text| match text {
        "null" => None,
        "\"\"" => Some(String::new()),
        text => Some(text.to_owned()),
    };
    let recorded =
        include_str!("recorded/5.0.9.txt").lines().filter_map(|row| row.split_once('\t'));
    let recorded: BTreeMap<_, _> =
        recorded.map(|(name, text)| (name.to_owned(), value(text))).collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), recorded.keys().collect::<Vec<_>>());
    let differ = found.iter().filter(|(name, value)| recorded[*name] != **value);
    let differ: Vec<_> = differ.map(|(name, _)| name.as_str()).collect();
    let of_memory =
        |name: &str| name.contains("memtable_") || name.starts_with("index_summary_capacity");
    let decided: Vec<_> = differ.iter().filter(|name| !of_memory(name)).collect();
    let not_had = [
        "concurrent_validations",
        // The node that was asked had these from properties of its JVM.
        "disk_access_mode",
        "disk_failure_policy",
        // In the order of a hash set.
        "hinted_handoff_disabled_datacenters",
        "internode_max_message_size",
        "internode_max_message_size_in_bytes",
        "memtable.configurations",
        "networking_cache_size",
        "networking_cache_size_in_mb",
        "paxos_repair_parallelism",
        "repair.retries.enabled",
        "repair.retries.maxAttempts.value",
        "repair_command_pool_size",
        "repair_session_space",
        "repair_session_space_in_mb",
        // Cassandra shows where a key is.
        "transparent_data_encryption_options.key_provider.parameters",
    ];
    assert_eq!(decided, not_had.iter().collect::<Vec<_>>());
}
