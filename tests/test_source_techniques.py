"""What a text proves, and what it does not."""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.submission_sources.artifacts import describe
from assets.submission_sources.lexing import lex
from assets.submission_sources.techniques import EVIDENCE_LENGTH, LONG_RUN, Technique, detectors, located, proven
from tests.conftest import SHARED
from tests.source_lines import LABELLED

TRAITS = [
    "tma", "wgmma", "tcgen05", "mma", "mfma", "warp-specialization", "split-k", "persistent-kernel", "async-copy",
    "stages", "num-warps", "tile-m", "tile-n", "tile-k", "vector-width", "shared-memory", "large-smem", "mbarrier",
    "cluster", "fused-epilogue", "fp8", "fp4", "autotune", "inline-ptx", "online-softmax", "helion", "cute-dsl", "hip",
]  # fmt: skip


def found(text: str | bytes) -> dict[str, Technique]:
    """The techniques of one text by trait."""
    content = text.encode() if isinstance(text, str) else text
    ((same, places),) = located([content])
    assert same == content
    lexed = lex(content)
    return {technique.trait: technique for technique in proven(lexed, describe(lexed).language, places)}


def in_program(line: str) -> str:
    """A line in a text of its kind: what is C++ between lines of C++, all else after an import."""
    is_c = line.startswith("#") or line.rstrip().endswith((";", "{", "{}", "*/")) or "//" in line
    return f"#include <cuda.h>\n{line}\n" if is_c else f"import torch\n{line}\n"


def test_every_trait_has_a_detector_and_labelled_lines_of_both_kinds() -> None:
    assert set(detectors().traits) == set(TRAITS) == set(LABELLED)
    for trait, (positive, negative) in LABELLED.items():
        assert len(positive) >= 3, trait
        assert len(negative) >= 3, trait


@pytest.mark.parametrize("trait", TRAITS)
def test_a_trait_is_found_in_every_line_that_proves_it_with_its_value(trait: str) -> None:
    for line, value in LABELLED[trait][0]:
        technique = found(in_program(line)).get(trait)
        assert technique is not None, line
        assert (technique.line, technique.value, technique.evidence) == (2, value, line[:EVIDENCE_LENGTH])


@pytest.mark.parametrize("trait", TRAITS)
def test_a_trait_is_not_found_in_lines_that_look_like_it(trait: str) -> None:
    for line in LABELLED[trait][1]:
        assert trait not in found(in_program(line)), line


def test_precision_and_recall_over_all_labelled_lines(capsys: pytest.CaptureFixture[str]) -> None:
    right = wrong = missed = 0
    for trait, (positive, negative) in LABELLED.items():
        hits = sum(trait in found(in_program(line)) for line, _ in positive)
        right, missed = right + hits, missed + len(positive) - hits
        wrong += sum(trait in found(in_program(line)) for line in negative)
    precision, recall = right / (right + wrong), right / (right + missed)
    with capsys.disabled():
        sys.stdout.write(
            f"\ntechniques: {right + missed} lines prove a trait, precision {precision:.3f}, recall {recall:.3f}\n"
        )
    assert (precision, recall) == (1.0, 1.0)


def test_the_first_line_that_proves_a_trait_counts() -> None:
    text = "import triton\n# num_warps=1\n\nnum_warps=2\nnum_warps=4\n"
    assert (found(text)["num-warps"].line, found(text)["num-warps"].value) == (4, "2")


def test_lines_that_are_only_a_comment_prove_nothing() -> None:
    assert found("#!POPCORN leaderboard nvfp4_gemm\n# uses tma\nimport torch\n    # fp8\n") == {}
    assert found("#include <x>\n// tma\n/* fp8\n * wgmma\n */ /* fp4 */\n") == {}
    assert found('import torch\nsource = """\n__global__ void k() {\n  int a;\n  // tma\n}\n"""\n') == {}


def test_docstrings_and_comments_behind_code_count_and_are_named() -> None:
    text = '"""Uses TMA."""\nimport torch\nx = 1  # in fp8\ny = wgmma(x)\n'
    contexts = {trait: (technique.line, technique.context) for trait, technique in found(text).items()}
    assert contexts == {"tma": (1, "docstring"), "fp8": (3, "comment"), "wgmma": (4, "code")}


def test_a_kernel_in_a_string_is_code_and_its_comments_are_comments() -> None:
    text = 'import torch\nsource = r"""\n__global__ void k() {\n  __shared__ int a[4]; // for fp8\n}\n"""\n'
    contexts = {trait: technique.context for trait, technique in found(text).items()}
    assert contexts == {"shared-memory": "code", "fp8": "comment"}


def test_a_long_run_of_letters_and_digits_is_no_evidence() -> None:
    run = "A" * LONG_RUN
    assert found(f"import torch\nx = '{run}/fp8'\n") == {}
    assert found(f"import torch\nx = '{run[:40]}' + fp8\n")["fp8"].line == 2
    blob = base64.b64encode(bytes(range(256)) * 64).decode()
    lines = "\n".join(f"    '{blob[place : place + 64]}+tma/fp4+fp8/mma+'" for place in range(0, 4096, 64))
    assert found(f"import base64\nkernel = (\n{lines}\n)\n") == {}


def test_evidence_is_the_part_of_a_long_line_that_the_proof_is_in() -> None:
    technique = found("import torch\n" + "x = 1; " * 1000 + "use_tma = 1; " + "y = 2; " * 1000)["tma"]
    assert "use_tma = 1" in technique.evidence
    assert len(technique.evidence) <= EVIDENCE_LENGTH
    assert technique.line == 2


def test_what_is_no_text_is_looked_at_all_the_same() -> None:
    technique = found(b"import torch\nx = '\xff\xfe\x00'; use_tma = 1\n\xff\n")["tma"]
    assert (technique.line, technique.evidence) == (2, "x = '\ufffd\ufffd '; use_tma = 1")


def test_text_of_hip_has_no_ptx() -> None:
    text = '#include <hip/hip_runtime.h>\n__global__ void k() { asm volatile(\n"x"); }\n'
    assert set(found(text)) == {"hip"}
    assert "inline-ptx" in found(text.replace("hip/hip_runtime.h", "cuda.h"))


def test_every_literal_is_what_a_pattern_begins_with() -> None:
    assert min(map(len, detectors().literals)) >= 3
    for start, entries in detectors().by_start.items():
        assert all(literal.startswith(start) for literal, _ in entries)


_FRAGMENTS = st.sampled_from(
    [line for positive, negative in LABELLED.values() for line in [*(line for line, _ in positive), *negative]]
    + ["# fp8", "// tma", '"""', "x = 1  # wgmma", "/* fp4", "*/", "", "é", "A" * 70 + "fp8"]
)


def slowly(text: bytes) -> dict[str, tuple[int, str | None]]:
    """Line and value of each trait, from every detector on every line."""
    lexed = lex(text)
    language = describe(lexed).language
    proofs: dict[str, tuple[int, str | None]] = {}
    start = 0
    for number, line in enumerate(text.split(b"\n"), start=1):
        matches = [
            (match.start(), order, detector.trait, match)
            for order, (_, detector) in enumerate(
                entry for entries in detectors().by_start.values() for entry in entries
            )
            if language not in detector.without
            for match in re.finditer(b"(?=(?P<all>" + detector.pattern.pattern + b"))", line, detector.pattern.flags)
        ]
        if not lexed.is_comment_only(start, start + len(line)):
            for place, _, trait, match in sorted(matches, key=lambda entry: entry[:2]):
                runs = [run.span() for run in re.finditer(rb"[A-Za-z0-9+/=]{%d,}" % LONG_RUN, line)]
                if not any(first <= place < last for first, last in runs):
                    value = match.groupdict().get("value")
                    proofs.setdefault(trait, (number, value.decode() if value else None))
        start += len(line) + 1
    return proofs


@settings(max_examples=25, deadline=None)
@given(st.lists(_FRAGMENTS, max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_the_prefilter_loses_nothing(lines: list[str], end: str) -> None:
    text = end.join(["import torch", *lines]).encode()
    assert {trait: technique.line for trait, technique in found(text).items()} == {
        trait: line for trait, (line, _) in slowly(text).items()
    }


def test_a_large_text_is_searched_window_by_window_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for positive, negative in LABELLED.values() for line in [*(line for line, _ in positive), *negative]]
    text = "\n".join(["import torch", "# mma", "#  fp8 tma", *lines, "x = 'é'", "A" * 100 + "fp8"] * 2).encode()
    whole = found(text)
    assert len(whole) == len(TRAITS)
    for size in (7, 100, 4096):
        monkeypatch.setattr("assets.submission_sources.techniques.LARGE_TEXT", size)
        monkeypatch.setattr("assets.submission_sources.techniques._BATCH_TEXTS", 3)
        assert found(text) == whole


def test_texts_come_back_in_order_however_many_there_are() -> None:
    texts = [b"import torch\n" + b"x = 1\n" * (number % 7) + b"use_tma = 1\n" for number in range(10_000)]
    lines = []
    for text, places in located(iter(texts)):
        lines.append(proven(lex(text), "python", places)[0].line)
    assert lines == [2 + number % 7 for number in range(10_000)]
    assert list(located([])) == []


@pytest.mark.skipif(SHARED is None, reason="KERNELMART_CONFORMANCE names no folder")
def test_the_published_submission_proves_what_it_is_known_to() -> None:
    text = Path(str(SHARED), "golden", "submission_746673.py").read_bytes()
    assert {trait: (technique.line, technique.context) for trait, technique in found(text).items()} == {
        "fp4": (4, "docstring")
    }
