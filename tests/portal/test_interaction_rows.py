"""Where each row of the interaction tables (how charts, pages and logs behave) is held to: a row without a test is said here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
CHARTS, LAYOUT, LOGS, LIST = (f"browser/test_{name}.py::test_" for name in ("charts", "charts_layout", "logs", "list"))
VIEW = f"{CHARTS}the_address_is_the_view_and_a_copied_link_brings_it_back"
ROWS: dict[str, list[str]] = {
    "A1 smoothing, the raw line faint": [
        VIEW,
        "metrics/test_smoothing.py::test_few_points_are_not_smoothed_unless_somebody_asks",
    ],
    "A2 two ways of smoothing": ["metrics/test_smoothing.py::test_"],
    "A3 A4 log axes": [VIEW, f"{CHARTS}nothing_is_hidden_nan_outliers_and_what_a_log_axis_cannot_show"],
    "A5 x is step, epoch, relative or wall time": [
        VIEW,
        "browser/test_charts_live.py::test_epochs_go_on_live_and_are_read_anew",
    ],
    "A6 A7 outliers and NaN are seen": [f"{CHARTS}nothing_is_hidden_nan_outliers_and_what_a_log_axis_cannot_show"],
    "A8 min and max are kept, a zoom refetches": [
        f"{CHARTS}a_zoom_brings_true_points_to_all_charts_and_a_double_click_takes_it_back",
        "metrics/test_charts.py::test_a_spike_of_one_step_is_there_at_every_zoom",
    ],
    "A9 A19 one crosshair, nearest values": [f"{CHARTS}one_crosshair_over_all_charts_and_the_keys_move_it"],
    "A10 A11 zoom and pause survive what comes live": [f"{CHARTS}a_zoom_and_a_pause_survive_what_comes_live"],
    "A12 A13 overlay and legend": [VIEW, f"{CHARTS}points_as_a_table_and_lines_that_can_be_hidden"],
    "A15 charts by regex": [VIEW, f"{CHARTS}sixty_metrics_are_mounted_as_they_are_looked_at"],
    "A16 pins, order, size, layouts": [
        f"{CHARTS}pins_stand_on_the_overview_and_a_lead_shares_them",
        f"{LAYOUT}a16_a_chart_is_small_wide_or_full_and_stays_so",
        f"{LAYOUT}a16_charts_are_put_in_order_by_keyboard",
    ],
    "A17 a layout from the repository": [f"{LAYOUT}a17_the_document_says_how_charts_stand_until_somebody_changes_it"],
    "A18 attempts where steps overlap": [f"{CHARTS}the_newest_attempt_wins_where_steps_overlap"],
    "A20 pictures and all of the points": [
        f"{LAYOUT}a20_a_picture_has_its_words_and_is_light_in_the_dark_too",
        "metrics/test_export.py::test_csv_is_what_is_stored",
    ],
    "A21 badges, goals, marks": [
        f"{LAYOUT}a21_badges_say_best_last_min_and_max_by_direction_which_can_be_flipped",
        f"{LAYOUT}a21_a_goal_says_whether_it_is_reached_and_at_which_step",
        f"{LAYOUT}a21_marks_say_what_happened_and_can_be_switched_off",
    ],
    "B1 the address is the view": [VIEW, f"{LIST}columns_and_views_are_in_the_address_and_come_back"],
    "B2 charts are mounted as they are looked at": [f"{CHARTS}sixty_metrics_are_mounted_as_they_are_looked_at"],
    "B3 empty states say what to do": ["metrics/test_charts.py::test_an_empty_job_says_how_to_report"],
    "B5 toasts and the bell": [
        "browser/test_notices.py::test_b5_a_toast_stays_six_seconds_and_longer_for_who_reads_it",
        "browser/test_notices.py::test_b5_the_bell_keeps_the_last_fifty_for_each_person",
    ],
    "B7 both themes": [
        f"{CHARTS}the_theme_changes_what_is_drawn",
        "browser/test_accessibility.py::test_axe_finds_nothing_serious_on_any_page",
    ],
    "B8 palette and keys": [f"{LIST}the_list_by_keyboard_alone"],
    "B9 a press is answered at once": ["browser/test_lifecycle.py::test_a_stop_counts_down_on_every_open_page"],
    "B10 tables": [
        f"{LIST}ux_b10_a_column_is_resized_by_hand_and_by_key_and_comes_back",
        f"{LIST}ux_b10_density_is_one_press_and_the_head_stays_in_sight",
        "jobs/test_list_export.py::test_",
    ],
    "B12 title and icon": ["browser/test_hidden.py::test_the_title_of_a_hidden_tab_goes_on"],
    "B13 told when it ends": ["browser/test_notices.py::test_b13_one_notice_for_one_end_whatever_tabs_are_open"],
    "B14 notes, tags, star, archive": [
        "jobs/test_labels.py::test_notes_are_markdown",
        f"{LIST}ux_b14_ended_jobs_are_archived_together_and_undone",
    ],
    "B15 a lost connection": ["browser/test_story.py::test_a_lost_connection_says_so_and_brings_everything_back_once"],
    "C1 history first": [f"{LOGS}c1_opens_with_the_last_lines_and_scrolls_back_to_the_first"],
    "C2 outlives its pods": ["jobs/test_log_bytes.py::test_hard_bytes_of_two_attempts_outlive_their_objects"],
    "C3 bars": [f"{LOGS}c3_a_progress_bar_is_one_line_whose_states_can_be_opened"],
    "C4 colours": [f"{LOGS}c4_colours_are_classes_and_nothing_is_markup"],
    "C5 search": [f"{LOGS}c5_search_counts_goes_round_and_shows_only_hits"],
    "C6 follow": [f"{LOGS}c6_follow_stops_for_the_reader_and_end_resumes"],
    "C7 filters": [
        f"{LOGS}c7_all_workers_and_all_attempts_or_one_of_each",
        f"{LOGS}c7_levels_and_times_with_counts_a_search_and_live_lines",
        f"{LOGS}c7_a_stretch_of_time_in_the_readers_time_zone",
    ],
    "C8 links, wrap, times, downloads": [f"{LOGS}c8_links_to_lines_wrap_times_copies_and_downloads"],
    "C9 C10 limits and marks": [f"{LOGS}c9_and_c10_every_mark_is_in_the_gutter_and_in_the_list"],
    "C11 screen readers": [f"{LOGS}c11_a_log_is_no_live_region_and_its_tools_have_names"],
}
# Said to be missing, each with its reason; nothing else may be.
MISSING = {
    "A14": "grouping of runs belongs to comparing them, which has no page yet",
    "A22": "tensors are not reported yet",
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_is_held_to_by_tests_that_exist(row: str) -> None:
    for place in ROWS[row]:
        path, name = place.split("::")
        found = re.findall(r"def (test_\w+)\(", (TESTS / path).read_text())
        assert name in found or (name == "test_" and found), place


def test_no_row_is_forgotten() -> None:
    said = {code for row in ROWS for code in re.findall(r"\b[ABC]\d+\b", row)} | MISSING.keys()
    rows = {f"A{number}" for number in range(1, 23)} | {f"C{number}" for number in range(1, 12)}
    assert rows <= said, sorted(rows - said)
    assert not {row.split()[0] for row in ROWS} & MISSING.keys()
