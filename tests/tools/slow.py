"""What ``make test`` leaves to ``make test-all``, beside tests that are marked slow where they stand.

Of a file in ``KEPT``, ``make test`` runs only the tests that are named, by function or by function and case; of a file in
``LEFT`` all but those. ``make test`` keeps the properties, the goldens, and of each of secrets,
hostile input, faults, ``run``, ``watch`` and ``follow`` what shows that it holds at all.
"""

from collections.abc import Iterable
from typing import Any

import pytest

KEPT = {
    "cli/test_faults.py": "test_an_operation_that_fails[parse -o] test_how_an_end_is_judged test_a_quota "
    "test_nothing_is_answered test_what_is_no_receipt_is_passed_over test_a_definition_that_cannot_be_read_is_no_fault_of_a_log "
    "test_what_the_system_refuses_is_no_bug_of_ours",
    "cli/test_follow.py": "test_a_file_that_grows_gives_the_receipt_of_the_finished_file[known] test_silence_ends_it "
    "test_a_signal_ends_it_with_the_receipt_of_what_had_come[ctrl-c]",
    "cli/test_hostile.py": "test_hostile[a million phases] test_hostile[members of gzip] test_hostile[escapes and marks] "
    "test_the_hidden_run_is_not_found_where_a_step_is_missing test_what_unpacks_to_far_more_than_a_log_does",
    "cli/test_run.py": "test_success test_exception test_sigterm_is_passed_on test_signals_reach_the_command_once "
    "test_a_command_that_cannot_start test_a_log_that_cannot_grow_leaves_the_command_alone",
    "cli/test_run_transparent.py": "test_nothing_differs[success] test_nothing_differs[killed] test_what_cannot_be_recovered "
    "test_a_parse_meets_a_log_without_its_receipt",
    "cli/test_secrets_of_answers.py": "test_an_attestation_states_none",
    "cli/test_secrets_of_stores.py": "test_files_of_trackers test_settings",
    "cli/test_watch.py": "test_each_log_has_its_state_and_the_figures_of_now test_a_screen_follows_new_output_and_new_logs "
    "test_commands_run_once_for_each_log_with_its_receipt test_commands_without_following_are_refused",
}
LEFT = {
    "api/test_docs.py": "test_the_notebook_runs",
    "api/test_typing.py": "test_mypy_accepts_right_uses_and_refuses_wrong_ones",
    "benchmarks/test_guard.py": "test_a_dense_log_costs_no_more_calls",
    "cli/test_attest.py": "test_keys_in_pem_sign_too",
    "cli/test_bad_input.py": "test_a_bomb[bz2] test_a_bomb[xz] test_a_bomb[zst] "
    "test_200_mb_without_a_newline test_a_pattern_that_calls_itself",
    "cli/test_determinism.py": "test_a_log_of_many_pieces test_in_any_environment test_without_assertions",
    "cli/test_hostile_receipts.py": "test_a_store_keeps_and_tells_it_as_text[from 10] "
    "test_a_store_keeps_and_tells_it_as_text[from 20]",
    "cli/test_mcp.py": "test_answers_are_bounded_in_rows_bytes_and_time",
    "cli/test_rederive.py": "test_two_batches_at_once_make_one_store test_an_archive_behind_a_url "
    "test_neither_order_nor_workers_nor_packing_change_the_store "
    "test_a_disk_that_fills_up_stops_the_batch_and_leaves_whole_files test_ctrl_c_ends_cleanly_and_the_next_run_goes_on",
    "cli/test_secrets.py": "test_a_secret_in_every_metric_line_is_in_no_draft test_a_log_that_nobody_knows",
    "cli/test_site.py": "test_the_receipts_of_an_archive_are_derived_with_them test_a_slow_pattern_stays_within_its_time",
    "cli/test_store_questions.py": "test_several_ask_at_once",
    "cli/test_verify.py": "test_later_grammars_change_no_answer",
    "contract/test_action.py": "test_one_comment_is_kept_up_to_date test_the_scripts_of_the_other_systems_run "
    "test_the_script_of_the_gitlab_component_runs test_baselines_come_one_a_line",
    "contract/test_manual.py": "test_a_shell_at_a_terminal_completes[bash]",
    "contract/test_site.py": "test_the_site_builds_without_a_warning",
    "unit/definitions/test_compiled.py": "test_compiling_again_takes_no_file_away_even_for_a_moment",
    "unit/learn/test_evidence.py": "test_logs_that_the_weights_did_not_see_are_read_as_well",
    "unit/batch/test_pool.py": "test_the_process_that_workers_are_copied_from_may_die",
}


def one_in(every: int, cases: Iterable[Any]) -> list[Any]:
    """Return ``cases`` for a test, of which ``make test`` runs one in ``every`` and leaves the others to ``make test-all``."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*row, marks=pytest.mark.slow if number % every else ()) for number, row in enumerate(rows)]


def is_slow(file: str, function: str, case: str) -> bool:
    """Return whether ``make test`` leaves out a test of ``file``, below ``tests/``; ``case`` is its whole name."""

    def named(names: str) -> bool:
        return f" {function} " in f" {names} " or f" {case} " in f" {names} "

    return (file in KEPT and not named(KEPT[file])) or (file in LEFT and named(LEFT[file]))
