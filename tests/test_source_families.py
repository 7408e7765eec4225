"""Families of sources, against all pairs compared one by one."""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from datasketch import MinHash
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.submission_sources.families import (
    NEAR,
    PERMUTATIONS,
    SEED,
    SHINGLE_TOKENS,
    SKETCHES,
    Search,
    jaccard,
    shingles,
    sketch,
)
from assets.submission_sources.lexing import Lexed, lex
from assets.submission_sources.signatures import Signatures
from assets.submission_sources.tokens import KEYWORDS, token_numbers


def digest_of(text: bytes) -> str:
    return "sha256:" + hashlib.sha256(text).hexdigest()


def sketches(texts: dict[str, bytes]) -> tuple[pa.Table, Any]:
    rows = [{"source_digest": digest, **vars(made)} for digest in sorted(texts) if (made := sketch(lex(texts[digest])))]
    table = pa.Table.from_pylist(rows, schema=SKETCHES)
    signatures = Signatures(table["signature"].chunks, PERMUTATIONS, Path(tempfile.gettempdir()))
    return table.drop_columns("signature"), signatures


def families(texts: list[bytes]) -> dict[str, str]:
    """Family of each text that has one."""
    by_digest = {digest_of(text): text for text in texts}
    search = Search(*sketches(by_digest))
    search.decide(by_digest.get)
    return {row["source_digest"]: row["family"] for row in search.placed().to_pylist() if row["family"]}


def some_texts(seed: int) -> list[bytes]:
    """Texts of sixty lines, each with copies in which up to four lines are others."""
    chance = Random(seed)
    texts = []
    for _ in range(12):
        lines = [b"x = tl.load(p + %d) * %d\n" % (chance.randrange(400), chance.randrange(9)) for _ in range(60)]
        for _ in range(6):
            changed = list(lines)
            for _ in range(chance.randrange(5)):
                changed[chance.randrange(60)] = b"if y > %d: z = f[%d]  # c\n" % (
                    chance.randrange(999),
                    chance.randrange(99),
                )
            texts.append(b"".join(changed))
    return texts


def tokens(lexed: Lexed) -> list[bytes]:
    """The tokens of a text one by one, every identifier as the same one."""
    found = [token[0] for token in re.finditer(rb"[\w\x80-\xff]++|[^\s\w]", lexed.code)]
    is_name = [word[0] >= 0x80 or word[0] == 0x5F or chr(word[0]).isalpha() for word in found]
    return [b"identifier" if name and word not in KEYWORDS else word for word, name in zip(found, is_name, strict=True)]


def slowly(texts: list[bytes]) -> dict[str, str]:
    """The same from sets of runs of tokens, every pair compared."""
    runs = {}
    for text in texts:
        row = tokens(lex(text))
        runs[digest_of(text)] = {
            tuple(row[place : place + SHINGLE_TOKENS]) for place in range(len(row) - SHINGLE_TOKENS + 1)
        }
    group = {digest: {digest} for digest in runs}
    for first in runs:
        for second in runs:
            shared = len(runs[first] & runs[second])
            if group[first] is not group[second] and shared >= NEAR * (len(runs[first]) + len(runs[second]) - shared):
                group[first] |= group[second]
                for member in group[second]:
                    group[member] = group[first]
    return {digest: min(members) for digest, members in group.items() if len(members) > 1}


def test_families_are_those_of_all_pairs_compared() -> None:
    texts = some_texts(1)
    expected = slowly(texts)
    assert families(texts) == expected
    assert len(set(expected.values())) > 3


def test_the_order_of_texts_plays_no_part() -> None:
    texts = some_texts(4)
    expected = families(texts)
    Random(5).shuffle(texts)
    assert families(texts) == expected


def test_an_earlier_search_among_some_of_the_texts_changes_nothing_and_is_not_repeated() -> None:
    by_digest = {digest_of(text): text for text in some_texts(6)}
    table, signatures = sketches(by_digest)
    whole = Search(table, signatures)
    whole.decide(by_digest.get)
    half = Search(table.slice(0, table.num_rows // 2), signatures)
    half.decide(by_digest.get)
    later = Search(table, signatures, half.placed())
    later.decide(by_digest.get)
    assert later.placed().equals(whole.placed())
    assert Search(table, signatures, whole.placed()).in_question() == []


def test_only_texts_that_may_be_near_are_looked_at() -> None:
    apart = [b"".join(b"y%d = %d + f(%d)\n" % (n, n * k, k) for n in range(40)) for k in range(2, 12)]
    by_digest = {digest_of(text): text for text in [*some_texts(7), *apart]}
    search = Search(*sketches(by_digest))
    asked = search.in_question()
    looked_at: set[str] = set()

    def text_of(digest: str) -> bytes:
        looked_at.add(digest)
        return by_digest[digest]

    search.decide(text_of)
    assert looked_at <= set(asked) < set(by_digest)


def test_comments_white_space_and_identifiers_make_no_difference() -> None:
    first = b'"""A kernel."""\nimport a\ndef f(x, y):\n    return x + y * 2  # sum\n'
    second = b"import bb\n\n\ndef gg(left, right):\n\treturn left + right * 2\n"
    third = b"import bb\ndef gg(left, right):\n    return left - right * 2\n"
    smallest = min(digest_of(first), digest_of(second))
    assert families([first, second, third]) == {digest_of(first): smallest, digest_of(second): smallest}


def test_texts_with_nothing_but_comments_have_no_family() -> None:
    assert families([b"# one\n", b"# two\n", b"\n"]) == {}


def test_short_texts_are_one_run() -> None:
    assert families([b"x = 1", b"y = 1", b"x = 2"]) == dict.fromkeys(
        (digest_of(b"x = 1"), digest_of(b"y = 1")), min(digest_of(b"x = 1"), digest_of(b"y = 1"))
    )


def test_large_texts_belong_together_where_they_are_equal() -> None:
    line = b"x = load(p, %d, " + b"9" * 200 + b")\n"
    first = b"".join(line % number for number in range(5_000))
    second = first.replace(b"load", b"fetch")
    third = first.replace(b"load(p, 7,", b"load(p, 8,")
    assert max(map(len, (first, second, third))) > 1_000_000
    assert set(families([first, second, third])) == {digest_of(first), digest_of(second)}


def test_a_text_that_cannot_be_had_is_near_to_none() -> None:
    by_digest = {digest_of(text): text for text in some_texts(8)}
    search = Search(*sketches(by_digest))
    search.decide(lambda _: None)
    assert search.placed()["family"].null_count == len(by_digest)


def test_likeness_is_what_two_texts_share_of_what_both_have() -> None:
    first, second = (shingles(lex(text)) for text in (b"a ( 1 , 2 , 3 , 4 )", b"a ( 1 , 2 , 3 , 5 )"))
    assert jaccard(first, second) == 4 / 8
    assert jaccard(first, first[:0]) == 0.0


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(["if", "x", "yy", "1", "1.5", "(", " ", "\n", "é", "_", "for", "x1", "+", "  ", "0x", "iff"]),
        max_size=30,
    )
)
def test_tokens_are_numbered_as_they_are_told_apart(pieces: list[str]) -> None:
    lexed = lex("".join(pieces).encode())
    words = tokens(lexed)
    numbers = token_numbers(lexed).tolist()
    assert len(numbers) == len(words)
    assert len(set(zip(words, numbers, strict=True))) == len(set(words)) == len(set(numbers))


def test_a_signature_is_the_library_s_own_whatever_is_hashed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lexed = lex(some_texts(9)[0])
    made = sketch(lexed)
    assert made is not None
    expected = MinHash(num_perm=PERMUTATIONS, seed=SEED, hashfunc=int, scheme="affine32")
    for shingle in shingles(lexed).tolist():
        expected.update(shingle >> 32)
    assert made.signature == expected.hashvalues.astype("<u4").tobytes()
    monkeypatch.setattr("assets.submission_sources.families._AT_ONCE", 10)
    assert sketch(lexed) == made


def test_a_text_of_many_pieces_has_the_tokens_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    lexed = lex(b"".join(b"x%d = load(p + %d)\n" % (number, number) for number in range(99)))
    whole = token_numbers(lexed).tolist()
    monkeypatch.setattr("assets.submission_sources.tokens._PIECE", 64)
    assert token_numbers(lexed).tolist() == whole
