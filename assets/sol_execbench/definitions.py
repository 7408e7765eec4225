"""Kernel definitions: one problem, its suite and its cases, with their documents and digests."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from assets.expressions import ExpressionError, bind_axes, bind_shape, check_integer, evaluate, names_in
from assets.sol_execbench.environment import COMPARATOR
from assets.sol_execbench.read import Rejected, type_name
from assets.sol_execbench.terms import SOURCE
from warehouse.identity import (
    API_VERSION,
    MAXIMUM_INTEGER,
    CanonicalError,
    canonical_json,
    correctness_key,
    digest,
    kebab,
)

_ROLES = {"const": "constant", "expr": "derived", "var": "variable"}
_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "double": "fp64",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e4m3": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float4_e2m1": "fp4_e2m1",
}
# Tags that say where a kernel comes from or how hard it is, not what it does.
_NO_FAMILY = frozenset({"L1", "L2", "Quant", "FlashInfer-Bench"})
_SUITE_CORRECTNESS = {
    "comparator": COMPARATOR,
    "description": "Correctness must pass on every case in the SOL evaluation stack.",
}
_SEMANTICS = canonical_json({"mutation": "none", "determinism": "unspecified"})
_REFERENCE = canonical_json({"language": "python"})
# Published with the statistic "mean", although the figure behaves like a geometric mean.
_SUITE_STATISTIC = "mean"
_SUITE_CORRECTNESS_TEXT = canonical_json(_SUITE_CORRECTNESS)
_SUITE_AGGREGATION = canonical_json({"metric": "latency", "statistic": _SUITE_STATISTIC})
_SUITE_KEY = correctness_key(_SUITE_CORRECTNESS)


@dataclass(frozen=True)
class Kernel:
    """A kernel as its submissions need it, with its rows of `problems` and `cases`.

    `sol_bound_ms` is the smallest bound of its cases, in ms; None where a dummy or missing bound says nothing.
    """

    id: int
    name: str
    problem_digest: str
    suite_digest: str
    correctness_key: str
    dtypes: list[str]
    sol_bound_ms: float | None
    problem: dict[str, Any]
    cases: list[dict[str, Any]]


@dataclass(frozen=True)
class _Argument:
    """An input or output; `shape` is None for a scalar."""

    source_name: str
    name: str
    dtype: str
    shape: list[int | str] | None

    def document(self) -> dict[str, Any]:
        if self.shape is None:
            return {"name": self.name, "scalar": {"dtype": self.dtype}}
        return {"name": self.name, "tensor": {"shape": self.shape, "dtype": self.dtype}}


def read_kernel(definition: Mapping[str, Any], kernel_id: int) -> Kernel:
    """The kernel that a definition describes.

    Args:
        definition: the object under `data` of the answer.
        kernel_id: upstream's id of the kernel.

    Raises:
        Rejected: `BAD_DEFINITION`, `NAME_COLLISION`, `NUMBER_OUT_OF_RANGE`, `BAD_EXPRESSION` or `UNBOUND_AXIS`;
            `BAD_TEXT` where a name has no UTF-8 form.
    """
    try:
        return _kernel(definition, kernel_id)
    except ExpressionError as error:
        raise Rejected(error.code, error.detail) from error
    except CanonicalError as error:
        raise Rejected("BAD_TEXT", f"the definition has no canonical form: {error}") from error
    except RecursionError as error:
        raise Rejected("BAD_EXPRESSION", "an expression is nested too deeply") from error


def _kernel(definition: Mapping[str, Any], kernel_id: int) -> Kernel:
    name = definition.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Rejected("BAD_DEFINITION", "the kernel has no name")
    axes = _axes(definition.get("axes"))
    inputs = _arguments(definition.get("inputs"), "inputs")
    outputs = _arguments(definition.get("outputs"), "outputs")
    _distinct([(argument.source_name, argument.name) for argument in inputs + outputs], "arguments")
    tags = _tags(definition.get("tags"))
    family = _family(definition.get("op_type"), tags)
    operation: dict[str, str] = {
        "family": canonical_json(family),
        "axes": canonical_json(axes),
        "inputs": canonical_json([argument.document() for argument in inputs]),
        "outputs": canonical_json([argument.document() for argument in outputs]),
        "semantics": _SEMANTICS,
    }
    reference = definition.get("reference")
    if isinstance(reference, str) and reference.strip():
        operation["reference"] = _REFERENCE
    operation_text, problem_digest = _document("OperationSpec", _object(operation))
    dtypes = sorted({argument.dtype for argument in inputs})

    workloads = _list_of_objects(definition.get("workloads"), "workloads")
    bindings = [_bindings(workload) for workload in workloads]
    external_ids = [_external_id(workload) for workload in workloads]
    axes_texts = [_bound_text(bound) for bound in bindings]
    suite_cases = ",".join(
        _object({"axes": text, "externalId": canonical_json(external_id)})
        for text, external_id in zip(axes_texts, external_ids, strict=True)
    )
    suite: dict[str, str] = {
        "operationSpecDigest": f'"{problem_digest}"',
        "cases": f"[{suite_cases}]",
        "correctness": _SUITE_CORRECTNESS_TEXT,
        "aggregation": _SUITE_AGGREGATION,
    }
    suite_text, suite_digest = _document("WorkloadSuite", _object(suite))
    common = {"source": SOURCE, "problem": name, "problem_digest": problem_digest, "dtypes": dtypes}
    cases: list[dict[str, Any]] = [
        {
            **common,
            "workload_digest": suite_digest,
            "occurrence": 0,
            "kind": "suite",
            "external_id": None,
            "axes": None,
            "tensors": None,
            "suite_cases": suite["cases"],
            "statistic": _SUITE_STATISTIC,
            "correctness": suite["correctness"],
            "correctness_key": _SUITE_KEY,
            # A kernel's own baseline is none of its suite: it is below its smallest case in most kernels.
            "baseline_latency_ms": None,
            "sol_bound_ms": None,
            "document": suite_text,
        }
    ]
    occurrences: Counter[str] = Counter()
    for workload, bound, external_id, axes_text in zip(workloads, bindings, external_ids, axes_texts, strict=True):
        tensors, scalars = _inputs(workload, bind_axes(axes, bound), inputs)
        correctness, key = _correctness(workload)
        case = {
            "operationSpecDigest": suite["operationSpecDigest"],
            "axes": axes_text,
            "tensors": _object(tensors),
            "correctness": correctness,
        }
        if scalars:
            case["scalars"] = _object(scalars)
        text, workload_digest = _document("WorkloadCase", _object(case))
        cases.append(
            {
                **common,
                "workload_digest": workload_digest,
                "occurrence": occurrences[workload_digest],
                "kind": "case",
                "external_id": external_id,
                "axes": axes_text,
                "tensors": case["tensors"],
                "suite_cases": None,
                "statistic": None,
                "correctness": case["correctness"],
                "correctness_key": key,
                "baseline_latency_ms": finite(workload.get("baseline_latency_ms")),
                "sol_bound_ms": finite(workload.get("sol_ms")),
                "document": text,
            }
        )
        occurrences[workload_digest] += 1
    problem = {
        "source": SOURCE,
        "problem": name,
        "problem_digest": problem_digest,
        "slug": kebab(name) or f"kernel-{kernel_id}",
        "family": family,
        "title": title(name),
        "scoring": "suite",
        "ranking_by": None,
        "axes": operation["axes"],
        "inputs": operation["inputs"],
        "outputs": operation["outputs"],
        "tags": tags,
        "curated": True,
        "upstream_id": str(kernel_id),
        "deadline_at": None,
        "document": operation_text,
    }
    bound_ms = _sol_bound(definition.get("sol_is_dummy"), cases[1:])
    return Kernel(kernel_id, name, problem_digest, suite_digest, _SUITE_KEY, dtypes, bound_ms, problem, cases)


def title(name: str) -> str:
    """A kernel's name for reading: without its number, underscores as spaces, the first letter upper."""
    words = re.sub(r"^[0-9]+_+", "", name).replace("_", " ").strip() or name
    return words[0].upper() + words[1:]


def finite(value: Any) -> float | None:
    """A figure as a double; None where it has no canonical form or is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return float(value) if abs(value) <= MAXIMUM_INTEGER else None
    return value if math.isfinite(value) else None


def _object(members: Mapping[str, str]) -> str:
    """Canonical text of an object of canonical texts, so that a text in several documents is made once; ASCII keys."""
    return "{" + ",".join(f'"{name}":{members[name]}' for name in sorted(members)) + "}"


def _document(kind: str, spec: str) -> tuple[str, str]:
    """Canonical text of a document whose spec is given as canonical text, and its digest."""
    text = _object({"apiVersion": f'"{API_VERSION}"', "kind": f'"{kind}"', "spec": spec})
    return text, digest(text)


def _axes(declared: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(declared, dict):
        raise Rejected("BAD_DEFINITION", f"axes must be an object, not {type_name(declared)}")
    _distinct([(name, name.lower()) for name in declared], "axes")
    axes: dict[str, dict[str, Any]] = {}
    for name, axis in declared.items():
        kind = axis.get("type") if isinstance(axis, dict) else None
        role = _ROLES.get(kind) if isinstance(kind, str) else None
        if role is None:
            raise Rejected("BAD_DEFINITION", f"axis {name!r} is none of const, expr and var")
        axes[name.lower()] = {"role": role, "type": "integer"}
        if role == "constant":
            axes[name.lower()]["value"] = _integer(axis.get("value"), f"axis {name!r}")
        if role == "derived":
            axes[name.lower()]["expression"] = _expression(axis.get("expression"), f"axis {name!r}")
    return axes


def _arguments(declared: Any, side: str) -> list[_Argument]:
    if not isinstance(declared, dict):
        raise Rejected("BAD_DEFINITION", f"{side} must be an object, not {type_name(declared)}")
    arguments = []
    for name, argument in declared.items():
        if not isinstance(argument, dict) or not isinstance(argument.get("dtype"), str) or not argument["dtype"]:
            raise Rejected("BAD_DEFINITION", f"{side} {name!r} has no dtype")
        shape = argument.get("shape")
        if shape is not None and not isinstance(shape, list):
            raise Rejected("BAD_DEFINITION", f"the shape of {name!r} must be a list, not {type_name(shape)}")
        entries = [_shape_entry(entry, f"the shape of {name!r}") for entry in shape or []]
        arguments.append(_Argument(name, _argument_name(name), _dtype(argument["dtype"]), entries or None))
    return arguments


def _argument_name(name: str) -> str:
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return plain if re.match(r"[a-z]", plain) else "x_" + plain


def _dtype(name: str) -> str:
    return _DTYPES.get(name) or re.sub(r"[^a-z0-9_]", "_", name.lower())


def _shape_entry(entry: Any, what: str) -> int | str:
    if not isinstance(entry, str):
        return _integer(entry, what)
    if not re.fullmatch(r"[0-9]+", entry):
        # An axis, or an expression of axes: which shows where it is bound.
        return entry.lower()
    if len(entry.lstrip("0")) > len(str(MAXIMUM_INTEGER)):
        raise Rejected("NUMBER_OUT_OF_RANGE", f"{what} is beyond 2^53 - 1")
    return check_integer(int(entry.lstrip("0") or "0"), what)


def _expression(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise Rejected("BAD_DEFINITION", f"{what} must be an expression, not {type_name(value)}")
    text = value.lower()
    try:
        evaluate(text, dict.fromkeys(names_in(text), 1))
    except ExpressionError as error:
        # Only the form matters here: what a case's own axes make of it shows where they are bound.
        if error.code == "BAD_EXPRESSION" and not isinstance(error.__cause__, ZeroDivisionError):
            raise
    return text


def _integer(value: Any, what: str) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise Rejected("NUMBER_OUT_OF_RANGE", f"{what} is not finite")
    # JSON does not tell 128 from 128.0.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Rejected("BAD_DEFINITION", f"{what} must be an integer, not {str(value)[:60]!r}")
    return check_integer(value, what)


def _number(value: Any, what: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Rejected("BAD_DEFINITION", f"{what} must be a number, not {type_name(value)}")
    if finite(value) is None:
        raise Rejected("NUMBER_OUT_OF_RANGE", f"{what} has no canonical form")
    return value


def _distinct(names: Iterable[tuple[str, str]], what: str) -> None:
    """One argument may be input and output; two different names must not come out as one."""
    origin: dict[str, str] = {}
    for source_name, name in names:
        if origin.setdefault(name, source_name) != source_name:
            raise Rejected("NAME_COLLISION", f"{what} {origin[name]!r} and {source_name!r} both come out as {name!r}")


def _tags(tags: Any) -> list[str]:
    if tags is None:
        return []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise Rejected("BAD_DEFINITION", "tags must be a list of texts")
    return list(tags)


def _family(op_type: Any, tags: list[str]) -> str:
    if op_type is not None and not isinstance(op_type, str):
        raise Rejected("BAD_DEFINITION", f"op_type must be a text, not {type_name(op_type)}")
    telling = (tag for tag in tags if tag not in _NO_FAMILY and not tag.startswith("model:"))
    return kebab(op_type or "") or kebab(next(telling, "")) or "uncategorized"


def _list_of_objects(value: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Rejected("BAD_DEFINITION", f"{what} must be a list of objects")
    return value


def _optional_object(value: Any, what: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise Rejected("BAD_DEFINITION", f"{what} must be an object, not {type_name(value)}")
    return value or {}


def _bindings(workload: Mapping[str, Any]) -> dict[str, int]:
    axes = workload.get("axes")
    if not isinstance(axes, dict):
        raise Rejected("BAD_DEFINITION", f"a workload's axes must be an object, not {type_name(axes)}")
    _distinct([(name, name.lower()) for name in axes], "a workload's axes")
    return {name.lower(): _integer(value, f"axis {name!r}") for name, value in axes.items()}


def _bound_text(bound: Mapping[str, int]) -> str:
    """Canonical text of a case's axes: integers in range by now, nearly always under plain names."""
    if all(name.isidentifier() and name.isascii() for name in bound):
        return "{" + ",".join(f'"{name}":{bound[name]}' for name in sorted(bound)) + "}"
    return canonical_json(bound)


def _external_id(workload: Mapping[str, Any]) -> str:
    """The case's own id, else twelve hex digits of the digest of its axes under upstream's names."""
    uuid = workload.get("uuid")
    if uuid is not None and not isinstance(uuid, str):
        raise Rejected("BAD_DEFINITION", f"a workload's uuid must be a text, not {type_name(uuid)}")
    if uuid:
        return uuid
    names = _in_collated_order(tuple(workload["axes"]))
    axes = {name: _integer(workload["axes"][name], f"axis {name!r}") for name in names}
    text = json.dumps(axes, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:12]


@lru_cache(maxsize=1024)
def _in_collated_order(names: tuple[str, ...]) -> list[str]:
    return sorted(names, key=_collated)


def _collated(name: str) -> list[tuple[int, str]]:
    """The registry's order of names: underscore, other signs, digits, letters, whatever their case."""
    return [
        (0 if character == "_" else 2 if character.isdigit() else 3 if character.isalpha() else 1, character)
        for character in name.lower()
    ]


def _inputs(
    workload: Mapping[str, Any], bound: Mapping[str, int], inputs: list[_Argument]
) -> tuple[dict[str, str], dict[str, str]]:
    """Canonical texts of a case's tensors and scalars by name; names and dtypes are plain words by now."""
    descriptors = _optional_object(workload.get("inputs"), "a workload's inputs")
    tensors: dict[str, str] = {}
    scalars: dict[str, str] = {}
    for argument in inputs:
        given = descriptors.get(argument.source_name)
        descriptor = _optional_object(given, f"the descriptor of {argument.source_name!r}")
        kind, value = descriptor.get("type"), descriptor.get("value")
        if kind == "scalar" and isinstance(value, int | float) and not isinstance(value, bool):
            value = _number(value, f"the value of {argument.source_name!r}")
            scalars[argument.name] = _object({"dtype": f'"{argument.dtype}"', "value": canonical_json(value)})
        elif argument.shape is not None:
            shape = ",".join(map(str, _bound_shape(argument.shape, bound)))
            tensor = {"dtype": f'"{argument.dtype}"', "shape": f"[{shape}]"}
            if given is not None:
                generator = "safetensors" if kind == "safetensors" else "random"
                tensor["data"] = _object({"generator": f'"{generator}"'})
            tensors[argument.name] = _object(tensor)
    return tensors, scalars


def _bound_shape(shape: list[int | str], bound: Mapping[str, int]) -> list[int]:
    # Nearly every entry is an axis, and a name needs no parser.
    return [
        bound[entry] if isinstance(entry, str) and entry in bound else bind_shape([entry], bound)[0] for entry in shape
    ]


def _correctness(workload: Mapping[str, Any]) -> tuple[str, str]:
    """Canonical text of how a case is judged, and its digest."""
    tolerance = _optional_object(workload.get("tolerance"), "a workload's tolerance")
    limits = {
        name: float(_number(tolerance[field], f"tolerance {field}"))
        for field, name in (("max_atol", "maxAbsoluteError"), ("max_rtol", "maxRelativeError"))
        if tolerance.get(field) is not None
    }
    return _judged(**limits)


@lru_cache(maxsize=1024)
def _judged(**limits: float) -> tuple[str, str]:
    correctness = {"comparator": COMPARATOR, **limits}
    return canonical_json(correctness), correctness_key(correctness)


def _sol_bound(dummy: Any, cases: list[dict[str, Any]]) -> float | None:
    bounds = [case["sol_bound_ms"] for case in cases]
    if dummy not in (None, False) or not bounds or any(bound is None or bound <= 0 for bound in bounds):
        return None
    return float(min(bounds))
