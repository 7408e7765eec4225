"""Kernels in groups: nearly every kernel is one of its own, those whose answers speak of each other are together.

What a group's answers make depends on nothing outside the group, so it is made once and then only read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from assets.sol_execbench.kernels import Listed, Mentions
from assets.sol_execbench.read import Answer, about, content
from warehouse.contracts import SCHEMA_VERSION
from warehouse.parts import part_key


@dataclass(frozen=True, eq=False)
class Group:
    """Kernels that are read together: their answers by name, what the listing says of them, and whether there is a
    listing with any kernel (`whole`)."""

    answers: tuple[Answer, ...]
    listed: Listed
    whole: bool

    def key(self, version: str, revision: str | None) -> str:
        """Name of what a reader of some version makes of it."""
        answers = [(answer.locator, answer.content_digest) for answer in self.answers]
        listed = [
            (number, locator, content({name: row.get(name) for name in ("name", "submission_count")}))
            for number, (locator, row) in sorted(self.listed.items())
        ]
        return part_key(answers, listed, self.whole, revision, version, SCHEMA_VERSION)


def single(answers: Iterable[Answer], listed: Listed) -> list[Group]:
    """A group for each kernel, and one for answers about none.

    Args:
        answers: all but listings, each once, in order of names.
        listed: all listed kernels.
    """
    by_kernel: dict[int, list[Answer]] = defaultdict(list, {number: [] for number in listed})
    others: list[Answer] = []
    for answer in answers:
        number = about(answer.locator)
        (others if number is None else by_kernel[number]).append(answer)
    groups = [
        Group(tuple(by_kernel[number]), {number: listed[number]} if number in listed else {}, bool(listed))
        for number in sorted(by_kernel)
    ]
    return [*groups, Group(tuple(others), {}, bool(listed))] if others else groups


def united(groups: Mapping[Group, Mentions]) -> list[Group]:
    """The groups that must be, from single ones and what their answers name."""
    owner: dict[Hashable, Group] = {}
    parent = {group: group for group in groups}

    def root(group: Group) -> Group:
        while parent[group] is not group:
            parent[group] = group = parent[parent[group]]
        return group

    for group, mentions in groups.items():
        named = [
            *(("kernel", number) for number in {*mentions.kernels, *group.listed}),
            *(("name", name) for name in mentions.names),
            *mentions.submissions,
        ]
        for one in named:
            parent[root(group)] = root(owner.setdefault(one, group))
    together: dict[Group, list[Group]] = defaultdict(list)
    for group in groups:
        together[root(group)].append(group)
    return [_union(members) for members in together.values()]


def _union(members: list[Group]) -> Group:
    if len(members) == 1:
        return members[0]
    answers = sorted(
        (answer for group in members for answer in group.answers), key=lambda one: (one.locator, one.content_digest)
    )
    listed = {number: row for group in members for number, row in group.listed.items()}
    return Group(tuple(answers), listed, members[0].whole)
