"""Where comments and docstrings are, in Python, in C++, and in C++ that Python carries."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from assets.submission_sources.lexing import Lexed, lex


def comments(lexed: Lexed) -> list[str]:
    return [lexed.text[start:end].decode() for start, end in lexed.comments]


def docstrings(lexed: Lexed) -> list[str]:
    return [lexed.text[start:end].decode() for start, end in lexed.docstrings]


def test_python_has_comments_to_the_end_of_a_line_and_none_in_strings() -> None:
    lexed = lex(b"import a  # one\nx = '# no' + \"# no\\\" # no\"  # two\r\ny = '''# three'''\n")
    assert lexed.host == "python"
    assert comments(lexed) == ["# one", "# two", "# three"]


def test_a_string_that_begins_a_statement_is_a_docstring() -> None:
    text = '# c\n"""module"""\nimport a\nclass A:\n    """class"""\n'
    text += "    def f():\n        r'''f'''\n        'no, a value'\n"
    assert docstrings(lex(text.encode())) == ['"""module"""', '"""class"""', "'''f'''"]
    assert docstrings(lex(b'def f():\n    "short"\n    return 1\n')) == ['"short"']


def test_a_string_that_is_a_value_is_no_docstring() -> None:
    for before in ("x = ", "x = (\n", "f(\n", "x = [1,\n", "x = \\\n", "x = 'a' +\n"):
        assert docstrings(lex(f'import a\n{before}"""v"""\n'.encode())) == [], before
    assert docstrings(lex(b'def f():\n    "a" "b"\n')) == []


def test_cpp_in_a_string_has_its_own_comments() -> None:
    text = (
        b'import a\ns = """\n#include <x>\nvoid k() { // one\n/* two\n*/ int a; }\n"""\nt = """\n# three\nx = 1\n"""\n'
    )
    assert comments(lex(text)) == ["// one", "/* two\n*/", "# three"]


def test_cpp_alone_is_told_from_python_by_lines_that_only_one_of_them_has() -> None:
    assert lex(b"#include <cuda.h>\nint a; // x\n").host == "c"
    assert lex(b"// a kernel\n__global__ void k() {}\n").host == "c"
    assert lex(b'# define the block\nimport a\ns = """\n#include <x>\n"""\n').host == "python"
    assert lex(b's = """\n#include <x>\n"""\nfrom b import c\n').host == "python"
    assert lex(b"x = 1\n").host == "python"
    assert comments(lex(b"#include <x>\nchar a = '\"'; // \"one\nint b = 1'000; /* two */\n")) == [
        '// "one',
        "/* two */",
    ]


def test_what_is_not_closed_goes_on_to_the_end() -> None:
    assert docstrings(lex(b'"""open\nimport a\n')) == ['"""open\nimport a\n']
    assert comments(lex(b"#include <x>\n/* open\nint a;")) == ["/* open\nint a;"]
    assert comments(lex(b"import a\nx = 'open\ny = 1  # one\n")) == ["# one"]


def test_an_escaped_quote_closes_nothing() -> None:
    assert docstrings(lex(rb'''"""a\"""b""" ''')) == [r'"""a\"""b"""']
    assert docstrings(lex(rb'''"""a\\"""''')) == [r'"""a\\"""']


def test_a_line_is_only_a_comment_when_nothing_else_stands_in_it() -> None:
    text = b"#include <x>\n  /* a */ // b\n/* c\n d */ e;\n f /* g */\n\n/* h */ i /* j */\n"
    lexed = lex(text)
    lines = text.split(b"\n")
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    alone = [lexed.is_comment_only(start, start + len(line)) for start, line in zip(starts, lines, strict=True)]
    assert alone == [False, True, True, False, False, False, False, False]


def test_a_text_without_comments_has_blanks_in_their_place() -> None:
    assert lex(b'"""d"""\nimport a  # c\nx = 1\n').code == b" \nimport a   \nx = 1\n"


def test_lines_of_comments_that_follow_each_other_are_one_comment_and_end_at_any_line_end() -> None:
    for end in (b"\n", b"\r\n"):
        text = end.join((b"import a", b"# b", b"  # c", b"d = 1  # e", b"# f", b"", b"# g"))
        lexed = lex(text)
        spans = [text[start:last].split(end) for start, last in lexed.comments]
        assert spans == [[b"# b", b"  # c"], [b"# e", b"# f"], [b"# g"]]
    lexed = lex(b"import a\r# b\rc = 1")
    assert [lexed.text[start:last] for start, last in lexed.comments] == [b"# b"]


def test_a_string_after_a_gap_of_any_length_is_what_it_is_without_it() -> None:
    gap = b"\n" * 10_000 + b"# c" + b"\n" * 10_000
    assert len(lex(b"def f():" + gap + b'"""d"""\n').docstrings) == 1
    assert len(lex(b"def f(): pass\nx = (" + gap + b'"""d"""\n)').docstrings) == 0


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [b'"', b"'", b'"""', b"'''", b"#", b"//", b"/*", b"*/", b"\n", b"\\", b"{;", b" ", b"x", b"=", b"\xff"]
        )
    )
)
def test_spans_are_in_order_and_apart_in_any_text(pieces: list[bytes]) -> None:
    for head in (b"import a\n", b"#include <a>\n", b""):
        lexed = lex(head + b"".join(pieces))
        for spans in (lexed.comments, lexed.docstrings):
            flat = [place for span in spans for place in span]
            assert flat == sorted(flat)
            assert all(0 <= start < end <= len(lexed.text) for start, end in spans)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange(text: bytes) -> None:
    assert len(lex(text).code) <= len(text) + 300
