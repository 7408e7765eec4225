"""The words that stand in code columns, each with its meaning; `docs/tables.md` lists them."""

from __future__ import annotations

STATUSES = {
    "passed": "The source says that it passed.",
    "revoked": "Marked hacked or disqualified.",
    "incorrect": "Ran, with a wrong result.",
    "compile_error": "Did not compile.",
    "runtime_error": "Broke off while running.",
    "timeout": "Ran out of time.",
    "failed": "Failed, and the source says no more.",
    "unknown": "The source does not say.",
}

INELIGIBLE_REASONS = {
    "NOT_PASSED": "It did not pass, or nothing says that it did.",
    "REVOKED": "It was marked hacked or disqualified.",
    "MODE_<MODE>": "It ran in another mode than the ranked one: MODE_TEST, MODE_BENCHMARK, MODE_PRIVATE …",
    "MODE_UNKNOWN": "Its mode is not stated.",
    "NO_VALUE": "It has no usable figure.",
    "NO_ENVIRONMENT": "No GPU or fleet is named.",
    "BELOW_FLOOR": "Its figure is below 100 ns.",
    "BELOW_SOL_BOUND": "Its latency is below the kernel's speed-of-light bound.",
}

FLAGS = {
    "NOT_FINITE:<field>": "The figure is NaN, infinite or too large to be written exactly, and so is absent.",
    "OUT_OF_RANGE:<field>": "The figure is zero or negative where it must be positive, and so is absent.",
    "UNREADABLE:<field>": "The figure is text that is no number, and so is absent.",
    "MEAN_OUTSIDE_RANGE": "The mean is not between the best and the worst.",
    "SCORE_MISMATCH": "The score is not what the board's rule makes of the case means.",
    "SPEEDUP_CONTRADICTION": "The number of cases faster than the baseline and the mean speedup contradict each other.",
}

REJECT_REASONS = {
    "BAD_ID": "An id is missing or no 64-bit integer.",
    "BAD_TIME": "A time is none between the years 1 and 9999.",
    "BAD_TEXT": "Text is not Unicode.",
    "BAD_DIGEST": "A source's digest or size is not of the right form.",
    "NO_BOARD": "Nothing says which board the row is of.",
    "NO_PROBLEM": "The submission's kernel is missing or was rejected.",
    "NAME_TAKEN": "A kernel with a smaller id has the name.",
    "NAME_COLLISION": "Two axes or two arguments come out with one name.",
    "BAD_DEFINITION": "The kernel's definition is not of the expected form.",
    "BAD_EXPRESSION": "An expression is not made of integers, axes and + - * % //, or divides by zero.",
    "UNBOUND_AXIS": "A shape needs an axis that nothing binds.",
    "NUMBER_OUT_OF_RANGE": "A number in an axis, a shape or a tolerance is beyond ±(2^53 - 1), or not finite.",
    "SPEC_MISSING": "The case has no spec.",
    "SPEC_FORM": "An entry of the case's spec is not of the form name: value.",
    "SPEC_VALUE": "On a board with facts, an axis is bound to something that is no integer.",
    "SPEC_COLLISION": "The case's spec binds a name twice.",
    "DUPLICATE_KEYS": "A JSON object gives one key twice.",
    "NOT_AN_OBJECT": "A row of an answer is no JSON object.",
    "UNKNOWN_SCHEMA": "The file has the columns of neither family of submissions files.",
}

DRIFT_KINDS = {
    "added": "A field that is not known.",
    "missing": "A known field, or a stated thing, that is not there.",
    "retyped": "A field of another type than it ever had.",
    "unknown_value": "A label, status or mode that is not known.",
    "conflict": "Copies of one thing that contradict each other.",
    "incomplete": "More is reported than was obtained.",
}

CONTEXTS = {
    "code": "The line is code.",
    "docstring": "The line is in a string that stands alone as a statement.",
    "comment": "The proof is in a comment behind code.",
}

# By the column that holds them.
CODES = {
    "runs.status": STATUSES,
    "runs.ineligible_reasons": INELIGIBLE_REASONS,
    "runs.flags": FLAGS,
    "rejects.reason": REJECT_REASONS,
    "drift.kind": DRIFT_KINDS,
    "techniques.context": CONTEXTS,
}
