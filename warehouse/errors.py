"""What an operator may be told: one line that says what is wrong, where, and what to do."""


class KernelmartError(Exception):
    """An expected failure; its text is the line that the operator reads."""


class UnreadableError(KernelmartError):
    """A source's file or answer is not what its name says."""


class HomeError(KernelmartError):
    """The home cannot be used."""


class SnapshotError(KernelmartError):
    """A snapshot is not there, is damaged, or must not be published."""
