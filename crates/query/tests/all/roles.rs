//! Roles, logins and permissions on a node that asks for them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use halcyon_access::{Access, AuthCache, CacheSettings, Login, PasswordPolicy, Settings};
use halcyon_io::{SimRuntime, clock};
use halcyon_model::access::Principal;
use halcyon_query::{
    Coordinator, DefaultSuperuser, Error, Outcome, PreparedStatement, QueryOptions,
    default_superuser, log_in, may_stay, refresh, warm,
};

use crate::node;

pub(crate) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Refuses what is not granted; `validity` of all that it keeps.
async fn guarded(validity: Duration) -> Coordinator {
    guarded_by(validity, None).await
}

async fn guarded_by(validity: Duration, policy: Option<PasswordPolicy>) -> Coordinator {
    let cache = CacheSettings { validity, ..CacheSettings::default() };
    let settings = Settings {
        login: Login::Password,
        authorizes: true,
        roles: cache,
        permissions: cache,
        credentials: cache,
        hash_rounds: 4,
        password_policy: policy.map(Arc::new),
        password_update_min_interval: Duration::ZERO,
        ..Settings::default()
    };
    let coordinator = node::start().await.with_access(Arc::new(Access::new(settings)));
    let made = default_superuser(&coordinator).await.expect("a superuser");
    assert_eq!(made, DefaultSuperuser::Created);
    coordinator
}

async fn run(node: &Coordinator, role: &str, text: &str) -> Result<Outcome, Error> {
    let statement = Arc::new(halcyon_query::prepare(node, text, None)?);
    execute(node, role, &statement).await
}

async fn execute(
    node: &Coordinator,
    role: &str,
    statement: &Arc<PreparedStatement>,
) -> Result<Outcome, Error> {
    let options = QueryOptions { protocol_version: 4, ..QueryOptions::default() };
    let principal = Principal::Role { name: role.to_owned(), address: ADDRESS };
    halcyon_query::execute(node, statement, &options, &principal).await
}

async fn all_run(node: &Coordinator, texts: &[&str]) {
    for text in texts {
        run(node, "cassandra", text).await.expect(text);
    }
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    let error = outcome.expect_err("a refusal");
    format!("{} {error}", node::code(&error))
}

const MADE: [&str; 4] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.t (k int PRIMARY KEY, v int MASKED WITH mask_replace(7))",
    "CREATE ROLE r WITH PASSWORD = 'word' AND LOGIN = true",
    "INSERT INTO ks.t (k, v) VALUES (1, 2)",
];

/// Proves that a node without roles gets a superuser, once, and that a login needs its password and LOGIN.
#[test]
fn logins_need_a_password_and_login() {
    SimRuntime::seeded(1).block_on(async {
        let node = guarded(Duration::ZERO).await;
        let known = default_superuser(&node).await.unwrap();
        assert_eq!(known, DefaultSuperuser::HasDefaultPassword);
        all_run(&node, &["CREATE ROLE r WITH PASSWORD = 'word'", "CREATE ROLE s"]).await;
        let login = async |role: &str, password: &str| {
            log_in(&node, role.to_owned(), password.to_owned(), ADDRESS).await
        };
        let wrong = |role: &str| format!("Provided username {role} and/or password are incorrect");
        for (role, password) in [("r", "Word"), ("s", ""), ("t", "word"), ("cassandra", "x")] {
            assert_eq!(login(role, password).await.unwrap_err().to_string(), wrong(role));
        }
        let refused = login("r", "word").await.unwrap_err().to_string();
        assert_eq!(refused, "r is not permitted to log in");
        all_run(&node, &["ALTER ROLE r WITH LOGIN = true"]).await;
        let principal = login("r", "word").await.unwrap();
        assert_eq!(principal, Principal::Role { name: "r".to_owned(), address: ADDRESS });
        assert!(may_stay(&node, &principal).await);
        all_run(&node, &["DROP ROLE r"]).await;
        assert!(!may_stay(&node, &principal).await);
        assert!(login("r", "word").await.is_err());
    });
}

/// Proves that what is granted holds at once and until it is revoked, with and without caches, for a statement that was prepared before,
/// on what the grant is about and on nothing else.
#[test]
fn permissions_hold_from_grant_to_revoke() {
    for validity in [Duration::ZERO, Duration::from_secs(3600)] {
        SimRuntime::seeded(1).block_on(async {
            let node = guarded(validity).await;
            all_run(&node, &MADE).await;
            let select = "SELECT k FROM ks.t";
            let select = Arc::new(halcyon_query::prepare(&node, select, None).unwrap());
            let refused =
                "2100 User r has no SELECT permission on <table ks.t> or any of its parents";
            assert_eq!(refusal(execute(&node, "r", &select).await), refused);
            for resource in ["ks.t", "ALL TABLES IN KEYSPACE ks", "KEYSPACE ks", "ALL KEYSPACES"] {
                all_run(&node, &[&format!("GRANT SELECT ON {resource} TO r")]).await;
                assert!(execute(&node, "r", &select).await.is_ok(), "{resource}");
                let insert = run(&node, "r", "INSERT INTO ks.t (k) VALUES (1)").await;
                assert!(refusal(insert).contains("no MODIFY"));
                let roles = run(&node, "r", "SELECT role FROM system_auth.roles").await;
                assert!(refusal(roles).contains("no SELECT"));
                all_run(&node, &[&format!("REVOKE SELECT ON {resource} FROM r")]).await;
                assert_eq!(refusal(execute(&node, "r", &select).await), refused);
            }
        });
    }
}

/// Proves that a row that is written directly holds after the validity, and that an unknown permission in it grants nothing.
#[test]
fn rows_hold_after_their_validity() {
    SimRuntime::seeded(1).block_on(async {
        let node = guarded(Duration::from_secs(2)).await;
        all_run(&node, &MADE).await;
        let select = "SELECT k FROM ks.t";
        assert!(run(&node, "r", select).await.is_err());
        let row = "INSERT INTO system_auth.role_permissions (role, resource, permissions) VALUES ('r', 'data/ks', ";
        all_run(&node, &[&format!("{row} {{'select', 'ALL', 'MODIFY'}})")]).await;
        clock::sleep(Duration::from_secs(3)).await;
        assert!(run(&node, "r", select).await.is_err());
        all_run(&node, &[&format!("{row} {{'SELECT'}})")]).await;
        assert!(run(&node, "r", select).await.is_err());
        clock::sleep(Duration::from_secs(2)).await;
        assert!(run(&node, "r", select).await.is_ok());
    });
}

/// Proves that a row that was written directly holds once the cache is refreshed, which the request does not wait for, and that filled
/// caches know roles, passwords and grants before anything asks for them.
#[test]
fn caches_are_refreshed_and_filled() {
    SimRuntime::seeded(1).block_on(async {
        let node = guarded(Duration::from_secs(3600)).await;
        all_run(&node, &MADE).await;
        let select = "SELECT k FROM ks.t";
        assert!(run(&node, "r", select).await.is_err());
        let (grant, login) = (
            "INSERT INTO system_auth.role_permissions (role, resource, permissions) VALUES ('r', 'data/ks/t', {'SELECT'})",
            "UPDATE system_auth.roles SET can_login = false WHERE role = 'r'",
        );
        all_run(&node, &[grant]).await;
        for cache in [AuthCache::Roles, AuthCache::Credentials] {
            refresh(&node, cache).await.unwrap();
        }
        assert!(run(&node, "r", select).await.is_err());
        refresh(&node, AuthCache::Permissions).await.unwrap();
        assert!(run(&node, "r", select).await.is_ok());
        all_run(&node, &[login]).await;
        assert!(run(&node, "r", select).await.is_ok());
        refresh(&node, AuthCache::Roles).await.unwrap();
        assert_eq!(refusal(run(&node, "r", select).await), "2100 r is not permitted to log in");
        all_run(&node, &["ALTER ROLE r WITH LOGIN = true"]).await;
        warm(&node).await.unwrap();
        let revoke = "DELETE FROM system_auth.role_permissions WHERE role = 'r'";
        all_run(&node, &[login, revoke]).await;
        assert!(run(&node, "r", select).await.is_ok());
    });
}

/// Proves that a policy refuses and warns of passwords, also those of superusers, that a generated one is answered and logs in, and that
/// without a generator the words are a syntax error.
#[test]
fn passwords_satisfy_the_policy() {
    SimRuntime::seeded(1).block_on(async {
        let policy = PasswordPolicy { generates: true, ..PasswordPolicy::default() };
        let node = guarded_by(Duration::ZERO, Some(policy)).await;
        let create = async |options: &str| {
            run(&node, "cassandra", &format!("CREATE ROLE r WITH LOGIN = true AND {options}")).await
        };
        let refused = refusal(create("PASSWORD = 'word'").await);
        assert!(refused.starts_with("2200 Password was not set as it violated configured"));
        match create("PASSWORD = 'Abc1!Abc1!'").await {
            Ok(Outcome::Warned(said)) => {
                let begin = "Guardrail password_policy violated: Password was set, however";
                assert!(said.len() == 1 && said[0].starts_with(begin), "{said:?}");
            }
            other => panic!("{other:?}"),
        }
        let altered = run(&node, "cassandra", "ALTER ROLE r WITH GENERATED PASSWORD").await;
        let Ok(Outcome::Rows(rows)) = altered else { panic!("{altered:?}") };
        assert_eq!((rows.count, rows.columns[0].name.as_str()), (1, "generated_password"));
        let password = String::from_utf8(rows.content[4..].to_vec()).unwrap();
        assert!(log_in(&node, "r".to_owned(), password, ADDRESS).await.is_ok());
        let both = create("PASSWORD = 'x' AND GENERATED PASSWORD").await;
        let text = "Options 'password' and 'generated password' are mutually exclusive";
        assert!(refusal(both).contains(text));
        let node = guarded(Duration::ZERO).await;
        let generated = "CREATE ROLE r WITH GENERATED PASSWORD";
        assert!(refusal(run(&node, "cassandra", generated).await).starts_with("2000 "));
        assert!(run(&node, "cassandra", "CREATE ROLE r WITH PASSWORD = 'x'").await.is_ok());
    });
}

/// Proves that a masked column is masked to a role without UNMASK, which cannot restrict it either, and shown to others.
#[test]
fn masked_columns_need_unmask() {
    SimRuntime::seeded(1).block_on(async {
        let node = guarded(Duration::ZERO).await;
        all_run(&node, &MADE).await;
        all_run(&node, &["GRANT SELECT ON ks.t TO r"]).await;
        let select = "SELECT v FROM ks.t";
        let value = async |role: &str| match run(&node, role, select).await {
            Ok(Outcome::Rows(rows)) => rows.content.last().copied(),
            other => panic!("{other:?}"),
        };
        assert_eq!((value("r").await, value("cassandra").await), (Some(7), Some(2)));
        let filter = "SELECT k FROM ks.t WHERE v = 2 ALLOW FILTERING";
        let refused = "2100 User r has no UNMASK nor SELECT_MASKED permission on table ks.t, cannot query masked columns [v]";
        assert_eq!(refusal(run(&node, "r", filter).await), refused);
        all_run(&node, &["GRANT MODIFY ON ks.t TO r"]).await;
        let update = "UPDATE ks.t SET v = 3 WHERE k = 1 IF v = 4";
        assert!(refusal(run(&node, "r", update).await).contains("no UNMASK"));
        all_run(&node, &["GRANT SELECT_MASKED ON ks.t TO r"]).await;
        assert!(run(&node, "r", filter).await.is_ok());
        assert_eq!(value("r").await, Some(7));
        all_run(&node, &["GRANT UNMASK ON KEYSPACE ks TO r"]).await;
        assert_eq!(value("r").await, Some(2));
        assert!(run(&node, "r", update).await.is_ok());
    });
}

/// Proves that a role in a circle of grants, which only rows that were written directly can make, decides and ends.
#[test]
fn a_circle_of_roles_ends() {
    SimRuntime::seeded(1).block_on(async {
        let node = guarded(Duration::ZERO).await;
        all_run(&node, &MADE).await;
        all_run(
            &node,
            &[
                "CREATE ROLE s",
                "UPDATE system_auth.roles SET member_of = {'s', 'gone'} WHERE role = 'r'",
                "UPDATE system_auth.roles SET member_of = {'r'} WHERE role = 's'",
                "GRANT SELECT ON ks.t TO s",
            ],
        )
        .await;
        assert!(run(&node, "r", "SELECT k FROM ks.t").await.is_ok());
        assert!(run(&node, "r", "LIST ROLES").await.is_ok());
    });
}

/// Proves that of two statements that make one role at the same time the second one finds it: its role gets no permissions on the other's.
#[test]
fn concurrent_statements_make_one_role() {
    for seed in 0..20 {
        SimRuntime::seeded(seed).block_on(async {
            let node = guarded(Duration::ZERO).await;
            all_run(&node, &["CREATE ROLE c", "ALTER ROLE c WITH LOGIN = true"]).await;
            all_run(&node, &["GRANT CREATE ON ALL ROLES TO c"]).await;
            let made = "CREATE ROLE a WITH SUPERUSER = true AND LOGIN = true AND PASSWORD = 'good'";
            let mine = "CREATE ROLE IF NOT EXISTS a WITH LOGIN = true AND PASSWORD = 'evil'";
            let (made, mine) =
                futures_util::join!(run(&node, "cassandra", made), run(&node, "c", mine));
            assert!(mine.is_ok());
            let password = if made.is_ok() { "good" } else { "evil" };
            assert!(log_in(&node, "a".to_owned(), password.to_owned(), ADDRESS).await.is_ok());
            let altered = run(&node, "c", "ALTER ROLE a WITH LOGIN = true").await;
            assert_eq!(altered.is_ok(), made.is_err(), "seed {seed}");
        });
    }
}
