//! The rules of every store, held by the store in PostgreSQL: by its owner, by a worker beside it, and with content
//! outside of the database.

#[path = "support/server.rs"]
mod server;
#[path = "support/stores.rs"]
mod stores;

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Store};
use longhaul_postgres::{PostgresConfig, PostgresOptions, PostgresStore};
use longhaul_store_tests::{Backend, CrashMoment};
use server::PostgresServer;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use stores::Losses;
use tempfile::TempDir;

longhaul_store_tests::conformance!(Postgres::new());

/// Stores in schemas of one database.
struct Postgres {
    server: Arc<PostgresServer>,
    /// The settings of each open store, by its address.
    settings: Mutex<HashMap<usize, PostgresConfig>>,
    /// The directory of large content; none where the database has it.
    folder: Option<TempDir>,
}

impl Postgres {
    fn new() -> Self {
        Self { server: PostgresServer::shared(), settings: Mutex::default(), folder: None }
    }

    /// With all content that may be outside in a directory.
    fn with_content_outside() -> Self {
        Self { folder: Some(tempfile::tempdir().unwrap()), ..Self::new() }
    }

    fn config(&self) -> PostgresConfig {
        let content = self.folder.as_ref().map(|folder| stores::content_in(folder.path()));
        PostgresConfig { content, ..stores::config(&self.server.url()) }
    }

    fn open_at(&self, config: PostgresConfig, options: PostgresOptions) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&config, &|_| None, options).unwrap());
        self.settings.lock().unwrap().insert(address(&store), config);
        store
    }

    /// Closes a store, and returns its settings.
    fn close(&self, store: Arc<dyn Store>) -> PostgresConfig {
        assert_eq!(Arc::strong_count(&store), 1, "a store that somebody else still uses");
        self.settings.lock().unwrap().remove(&address(&store)).expect("a store of this backend")
    }
}

#[async_trait::async_trait]
impl Backend for Postgres {
    async fn open(&self) -> Arc<dyn Store> {
        self.open_at(self.config(), Losses::default().options("a"))
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let config = self.close(store);
        self.open_at(config, Losses::default().options("a"))
    }

    /// The tables are copied in the middle of the last commit, while the writer waits, and without their owner. So the
    /// copy has what the end of its process and of its lease would leave.
    async fn crash(&self, batches: Vec<Batch>, moment: CrashMoment) -> Option<Arc<dyn Store>> {
        let (config, left) = (self.config(), self.config());
        let point = match moment {
            CrashMoment::BeforeCommit => "store.before-commit",
            CrashMoment::AfterCommit => "store.after-commit",
        };
        let (server, from, to) = (Arc::clone(&self.server), config.schema.clone(), left.schema.clone());
        let (count, reached) = (batches.len(), AtomicUsize::new(0));
        let hook = move |name: &'static str| {
            if name == point && reached.fetch_add(1, Ordering::SeqCst) + 1 == count {
                copy_schema(&server, &from, &to);
            }
        };
        let options = PostgresOptions { crash_hook: Some(Arc::new(hook)), ..Losses::default().options("a") };
        let store = self.open_at(config, options);
        for batch in batches {
            store.commit(batch).await.unwrap();
        }
        self.close(store);
        Some(self.open_at(left, Losses::default().options("b")))
    }

    async fn damage(&self, store: Arc<dyn Store>, digest: &Digest, content: &[u8]) -> Option<Arc<dyn Store>> {
        let config = self.close(store);
        // Uncompressed: 0, the length, and the content, as `blob.rs` has it.
        let stored = [&[0][..], &(content.len() as u64).to_le_bytes(), content].concat();
        let (stored, digest) = (stores::hex(&stored), stores::hex(&digest.as_bytes()[..]));
        self.server.ask(&format!("update {}.blob set bytes = {stored} where digest = {digest}", config.schema));
        Some(self.open_at(config, Losses::default().options("a")))
    }
}

fn copy_schema(server: &PostgresServer, from: &str, to: &str) {
    let tables = ["meta", "owner", "worker", "kv", "blob"].map(|name| {
        format!(
            "create table {to}.{name} (like {from}.{name} including all); insert into {to}.{name} table {from}.{name};"
        )
    });
    let ownerless = format!("update {to}.owner set nonce = null, lease_until = null;");
    server.ask(&format!("create schema {to}; {} {ownerless}", tables.concat()));
}

fn address(store: &Arc<dyn Store>) -> usize {
    Arc::as_ptr(store).cast::<()>().addr()
}

/// Content from 4 KiB on in a directory. Rows are where they always are.
mod outside {
    use super::*;

    longhaul_store_tests::conformance! {
        Postgres::with_content_outside() =>
        content::content_that_comes_again_is_stored_once,
        content::content_of_any_bytes_is_read_as_it_was_written,
        content::eight_mebibytes_are_content_like_any_other,
        collection::content_of_batches_in_flight_stays,
    }
}

/// The seat of a worker. Rows are read as the owner reads them, and a worker removes no content.
mod joined {
    use super::*;

    longhaul_store_tests::conformance! {
        Joined::new() =>
        conditions::conditions_see_the_earlier_changes_of_their_own_batch,
        conditions::a_key_that_a_batch_changes_several_times_has_the_last_value,
        conditions::a_conflict_leaves_nothing_of_its_batch,
        conditions::a_conflict_names_the_table_and_the_key,
        conditions::a_swap_compares_the_whole_value,
        batches::a_batch_without_changes_is_committed,
        batches::a_thousand_changes_are_one_batch,
        batches::sixty_four_callers_at_once_all_commit,
        batches::of_sixty_four_callers_that_insert_one_key_one_commits,
        batches::a_batch_that_conflicts_undoes_nothing_of_those_beside_it,
        batches::sixty_four_callers_count_to_sixty_four_by_swaps,
        batches::more_callers_than_a_queue_holds_all_get_their_turn,
        batches::a_caller_that_gives_up_leaves_all_of_its_batch_or_nothing,
        readers::readers_see_each_batch_whole_and_never_go_back,
        readers::a_batch_is_seen_when_its_commit_returned,
        content::content_that_comes_again_is_stored_once,
        content::eight_mebibytes_are_content_like_any_other,
        durability::what_was_committed_is_there_when_opened_again,
    }

    /// Stores on the seat of a worker, each beside its owner.
    struct Joined {
        owners: Mutex<Vec<Arc<PostgresStore>>>,
        postgres: Postgres,
    }

    impl Joined {
        fn new() -> Self {
            Self { owners: Mutex::default(), postgres: Postgres::new() }
        }

        fn join(&self, config: PostgresConfig) -> Arc<dyn Store> {
            let store: Arc<dyn Store> = stores::join(&config, "w-1", &Losses::default());
            self.postgres.settings.lock().unwrap().insert(address(&store), config);
            store
        }
    }

    #[async_trait::async_trait]
    impl Backend for Joined {
        async fn open(&self) -> Arc<dyn Store> {
            let config = self.postgres.config();
            self.owners.lock().unwrap().push(stores::open(&config, "a"));
            self.join(config)
        }

        async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
            let config = self.postgres.close(store);
            self.join(config)
        }
    }
}
