"""Saved answers of SOL-ExecBench: what can be read is read, what cannot is named."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pytest

from assets.sol_execbench.read import Answer, Rejected, UnreadableAnswer, check_form, content, raw, read


def page(text: str, locator: str = "submissions/7.json") -> Answer:
    return Answer.of(locator, text.encode())


@pytest.mark.parametrize(
    ("locator", "kind"),
    [
        ("kernels.json", "listing"),
        ("kernels/12.json", "definition"),
        ("submissions/12.json", "submissions"),
        ("submissions/12.3.json", "submissions"),
        ("leaderboards/12.B200.v1.1.json", "leaderboard"),
        ("kernels/twelve.json", "unknown"),
        ("submissions/12.json.tmp", "unknown"),
        ("../kernels.json", "unknown"),
    ],
)
def test_an_address_says_what_an_answer_is(locator: str, kind: str) -> None:
    answer = Answer.of(locator, b"{}")
    assert answer.kind == kind
    if kind in ("definition", "submissions", "leaderboard"):
        assert answer.kernel_id == 12
    else:
        with pytest.raises(ValueError, match="no single kernel"):
            _ = answer.kernel_id


def test_an_answer_knows_the_digest_and_size_of_its_bytes() -> None:
    answer = Answer.of("kernels.json", b"abc")
    assert answer.content_digest == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (answer.size_bytes, answer.load()) == (3, b"abc")


def test_rows_have_paths_and_a_page_its_total() -> None:
    found = read(page('{"data": {"submissions": [{"id": 1}, {"id": 2}], "total": 9, "more": 1}, "meta": {}}'))
    assert found.rows == [("submissions/0", {"id": 1}), ("submissions/1", {"id": 2})]
    assert (found.total, found.unknown, found.suspect) == (9, ["meta", "more"], False)
    assert read(page('{"data": {"kernels": [5]}}', "kernels.json")).rows == [("kernels/0", 5)]
    assert read(page('{"data": {"id": 7}}', "kernels/7.json")).rows == [("definition", {"id": 7})]


def test_a_byte_order_mark_is_no_harm() -> None:
    assert read(Answer.of("kernels/7.json", b'\xef\xbb\xbf{"data": 1}')).rows == [("definition", 1)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("<!DOCTYPE html><html></html>", "web page"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
        ('{"data": {"submissions": [{"id": 1}', "not JSON"),
        ("PAR1\x00\x01", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "has no 'data'"),
        ("null", "has no 'data'"),
        ('{"error": "rate limited"}', "rate limited"),
        ('{"data": null}', "no list 'submissions'"),
        ('{"data": {"submissions": {}}}', "no list 'submissions'"),
        ('{"data": {"submissions": []}, "data": {"submissions": [1]}}', "names one key twice"),
        ('{"data": {"submissions": [], "submissions": [1]}}', "names one key twice"),
    ],
)
def test_an_answer_without_rows_is_one_clear_error_that_names_it(text: str, says: str) -> None:
    with pytest.raises(UnreadableAnswer, match=says) as caught:
        read(page(text))
    assert caught.value.locator == "submissions/7.json"
    assert str(caught.value).startswith("submissions/7.json: ")
    assert "\n" not in str(caught.value)


def test_a_definition_whose_envelope_contradicts_itself_is_unreadable() -> None:
    with pytest.raises(UnreadableAnswer, match="twice"):
        read(page('{"data": {}, "data": {"id": 7}}', "kernels/7.json"))


def test_figures_that_are_no_numbers_and_integers_of_any_size_are_read() -> None:
    text = '{"data": {"submissions": [{"a": NaN, "b": -Infinity, "c": %s, "d": %s, "e": 1e999}]}}'
    row = read(page(text % ("9" * 300, "9" * 5000))).rows[0][1]
    assert math.isnan(row["a"])
    assert (row["b"], row["c"], row["d"], row["e"]) == (-math.inf, int("9" * 300), math.inf, math.inf)


def only_row(text: str) -> Any:
    found = read(page('{"data": {"submissions": [' + text + "]}}"))
    return check_form(found.rows[0][1], found.suspect)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("5", "NOT_AN_OBJECT"),
        ("null", "NOT_AN_OBJECT"),
        ('[{"id": 1}]', "NOT_AN_OBJECT"),
        ('{"id": 1, "id": 1}', "DUPLICATE_KEYS"),
        ('{"id": 1, "system": [{"gpu": "a", "gpu": "b"}]}', "DUPLICATE_KEYS"),
        (r'{"username": "\ud83d"}', "BAD_TEXT"),
        (r'{"username": "\uDE00\uD83D"}', "BAD_TEXT"),
        (r'{"\udfff": 1}', "BAD_TEXT"),
        (r'{"a": {"b": ["\udfff"]}}', "BAD_TEXT"),
    ],
)
def test_a_row_of_unsound_form_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        only_row(text)
    assert caught.value.reason == reason


def test_whole_surrogate_pairs_are_text() -> None:
    assert only_row(r'{"username": "\ud83d\ude00"}') == {"username": "😀"}


def test_bytes_that_are_no_utf_8_cost_only_the_row_that_holds_them() -> None:
    answer = Answer.of("submissions/7.json", b'{"data": {"submissions": [{"id": "\xff"}, {"id": "\xc3\xa9"}]}}')
    found = read(answer)
    with pytest.raises(Rejected, match="BAD_TEXT"):
        check_form(found.rows[0][1], found.suspect)
    assert check_form(found.rows[1][1], found.suspect) == {"id": "é"}


def test_a_rejected_row_is_shown_without_secrets_and_without_length() -> None:
    row = {
        "text": "x" * 3000,
        "broken": "a\ud800b",
        "big": 2**60,
        "nan": math.nan,
        "low": -math.inf,
        "error_log": "password",
        "baseline": "def run(): ...",
        "inner": [{"error_log": "password", "ok": 1.0}],
    }
    assert json.loads(raw(row)) == {
        "text": "x" * 2000 + "…",
        "broken": "a\ufffdb",
        "big": str(2**60),
        "nan": "nan",
        "low": "-inf",
        "baseline": "sha256:" + hashlib.sha256(b"def run(): ...").hexdigest(),
        "inner": [{"ok": 1}],
    }
    assert "password" not in raw(row)


@pytest.mark.parametrize("row", [5, None, "text", [1, [2]], {"a": {"b": None}}])
def test_a_row_that_is_no_object_is_shown_as_it_is(row: Any) -> None:
    assert json.loads(raw(row)) == row


def test_a_row_that_is_nested_without_end_is_cut() -> None:
    shown = raw({"deep": json.loads("[" * 500 + "]" * 500)})
    assert shown == '{"deep":' + "[" * 40 + '"…"' + "]" * 40 + "}"


def test_content_tells_copies_apart_by_value_and_not_by_spelling() -> None:
    assert content({"b": 1.0, "a": "x"}) == content({"a": "x", "b": 1})
    assert content({"a": True}) != content({"a": 1})
    assert content({"a": math.nan}) == content({"a": math.nan})
    assert content({"a": "x" * 3000}) != content({"a": "x" * 2999 + "y"})
    assert content({"error_log": "a"}) != content({"error_log": "b"})
