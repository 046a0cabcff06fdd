//! The rules that every [`Store`](longhaul_core::store::Store) keeps, as tests for any backend.
//!
//! A backend implements [`Backend`] in one of its test programs and calls [`conformance!`] there, which makes a test of
//! each rule. A rule is a public function that panics where a store does not keep it. This crate knows no backend, and
//! holds nothing that only one of them promises: files, logs, leases and the number of commits are tested beside the
//! backend.

mod backend;
pub mod batches;
pub mod collection;
pub mod conditions;
pub mod content;
pub mod durability;
mod model;
mod random;
pub mod readers;
pub mod rows;
mod support;

pub use backend::{Backend, CrashMoment, bounded};

/// Makes a test of each rule, with the name of the rule, for the [`Backend`] that an expression gives.
///
/// The expression is evaluated for each test. The package of the test depends on `tokio`.
#[macro_export]
macro_rules! conformance {
    ($backend:expr) => {
        $crate::conformance! {
            $backend =>
            rows::a_scan_keeps_to_its_prefix_its_start_and_its_limit,
            rows::the_last_rows_of_a_prefix_come_from_the_last_one_back,
            rows::pages_make_the_whole_also_where_their_last_keys_are_deleted,
            rows::random_rows_are_read_as_a_sorted_map_has_them,
            rows::keys_of_any_bytes_sort_by_their_bytes,
            rows::an_empty_value_and_an_empty_key_make_a_row,
            rows::tables_keep_their_rows_apart,
            rows::values_of_any_bytes_are_read_as_they_were_written,
            rows::eight_mebibytes_are_a_value_like_any_other,
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
            readers::a_reading_of_everything_sees_one_moment,
            content::content_is_found_by_its_digest_and_absent_content_is_none,
            content::content_that_comes_again_is_stored_once,
            content::content_of_any_bytes_is_read_as_it_was_written,
            content::eight_mebibytes_are_content_like_any_other,
            content::content_that_was_changed_in_its_place_is_damaged_and_the_rest_is_not,
            collection::named_content_stays_and_the_rest_is_removed,
            collection::content_that_was_removed_can_be_stored_again,
            collection::content_of_batches_in_flight_stays,
            durability::what_was_committed_is_there_when_opened_again,
            durability::a_reading_counts_each_row_and_each_content,
            durability::a_crash_beside_any_commit_keeps_it_whole_or_not_at_all,
            durability::a_copy_has_what_was_committed_before_it,
        }
    };
    ($backend:expr => $($file:ident::$rule:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                let backend = $backend;
                $crate::bounded($crate::$file::$rule(&backend)).await;
            }
        )+
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_rule_is_a_test_of_the_macro() {
        let files = [
            ("batches", include_str!("batches.rs")),
            ("collection", include_str!("collection.rs")),
            ("conditions", include_str!("conditions.rs")),
            ("content", include_str!("content.rs")),
            ("durability", include_str!("durability.rs")),
            ("readers", include_str!("readers.rs")),
            ("rows", include_str!("rows.rs")),
        ];
        let listed = include_str!("lib.rs");
        for (file, text) in files {
            let rules = text.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next());
            let missing: Vec<_> = rules.filter(|rule| !listed.contains(&format!(" {file}::{rule},"))).collect();
            assert!(missing.is_empty(), "rules of {file}.rs that `conformance!` does not list: {missing:?}");
        }
    }
}
