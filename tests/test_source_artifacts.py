"""What a source text is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.submission_sources.artifacts import describe
from assets.submission_sources.lexing import lex
from tests.conftest import SHARED


def described(text: str | bytes) -> tuple[int, str | None, str]:
    artifact = describe(lex(text.encode() if isinstance(text, str) else text))
    return artifact.lines, artifact.language, artifact.media_type


@pytest.mark.parametrize(
    ("text", "language", "media_type"),
    [
        ("import torch\n", "python", "text/x-python"),
        ("import torch\nimport triton\n@triton.jit\ndef k(): pass\n", "triton", "text/x-python"),
        ("import triton\nimport triton.experimental.gluon as gluon\n", "gluon", "text/x-python"),
        ("from triton.experimental import gluon\n", "gluon", "text/x-python"),
        ("import helion\nimport helion.language as hl\nimport triton\n", "helion", "text/x-python"),
        ("import cutlass\nimport cutlass.cute as cute\n", "cute", "text/x-python"),
        ("from cutlass import cute\nimport triton\n", "cute", "text/x-python"),
        ("import tilelang\n", "tilelang", "text/x-python"),
        ("# import triton\nimport torch\n", "python", "text/x-python"),
        ('import torch\ns = """\n__global__ void k() {}\n"""\n', "cuda", "text/x-python"),
        ('import torch\nimport triton\ns = """\n__global__ void k() {}\n"""\n', "cuda", "text/x-python"),
        ('import torch\ns = """\n#include <hip/hip_runtime.h>\n__global__ void k() {}\n"""\n', "hip", "text/x-python"),
        ('import triton\n@triton.jit\ndef k(): pass\ns = "__global__"\n', "triton", "text/x-python"),
        ("#include <x>\n__global__ void k() {}\n", "cuda", "text/x-cuda"),
        ("#include <hip/hip_runtime.h>\n__global__ void k() {}\n", "hip", "text/x-hip"),
        ("#include <vector>\nint main() {}\n", "c++", "text/x-c++src"),
        (b"import torch\n\xff\n", None, "application/octet-stream"),
        (b"import torch\n\0\n", None, "application/octet-stream"),
    ],
)
def test_language_is_what_the_kernel_is_written_in(text: str | bytes, language: str | None, media_type: str) -> None:
    assert described(text)[1:] == (language, media_type)


@pytest.mark.parametrize(
    ("text", "lines"), [("a", 1), ("a\n", 1), ("a\r\nb", 2), ("a\rb\x0cc\u2028d\n", 1), ("\n\n", 2), ("", 0)]
)
def test_lines_end_at_lf_or_crlf_only(text: str, lines: int) -> None:
    assert described(text)[0] == lines


def test_popcorn_lines_declare_board_and_gpus() -> None:
    text = "#!POPCORN leaderboard nvfp4_gemm\r\n# more\n//!POPCORN gpus B200, H100 A100\nimport a\n#!POPCORN gpu T4\n"
    artifact = describe(lex(text.encode()))
    assert (artifact.leaderboard, artifact.gpus) == ("nvfp4_gemm", ("B200", "H100", "A100"))
    assert describe(lex(b"import a\n#!POPCORN leaderboard x\n")).leaderboard is None
    long = describe(lex(b"#!popcorn leaderboard " + b"x" * 5000 + b"\n#!POPCORN gpu\n#!POPCORN gpus " + b"g " * 99))
    assert (len(str(long.leaderboard)), len(long.gpus)) == (100, 16)


@pytest.mark.parametrize("text", [b"x" * 50_000_000, b"'\\'" * 500_000, b"#!POPCORN gpu A\n" * 100_000])
def test_a_text_of_many_megabytes_is_described(text: bytes) -> None:
    artifact = describe(lex(text))
    assert (artifact.size_bytes, artifact.lines) == (len(text), text.count(b"\n") or 1)


@pytest.mark.skipif(SHARED is None, reason="KERNELMART_CONFORMANCE names no folder")
def test_the_published_submission_is_described_as_it_is_known() -> None:
    artifact = describe(lex(Path(str(SHARED), "golden", "submission_746673.py").read_bytes()))
    assert (artifact.size_bytes, artifact.lines, artifact.language) == (1608, 59, "python")
    assert (artifact.leaderboard, artifact.gpus) == ("amd-moe-mxfp4", ("MI355X",))
