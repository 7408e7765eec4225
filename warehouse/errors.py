"""What an operator may be told: one line that says what is wrong, where, and what to do."""

# What DuckDB says where it runs out of memory; and what it says, too, where it is the disk that is full.
OUT_OF_MEMORY = "Out of Memory Error"
NO_ROOM_TO_SPILL = "max_temp_directory_size"


class KernelmartError(Exception):
    """An expected failure; its text is the line that the operator reads."""


class UnreadableError(KernelmartError):
    """A source's file or answer is not what its name says."""


class HomeError(KernelmartError):
    """The home cannot be used."""


class SnapshotError(KernelmartError):
    """A snapshot is not there, is damaged, or must not be published."""


class StoreError(KernelmartError):
    """A store elsewhere cannot be used, or holds what it should not."""


class UnreachableError(UnreadableError):
    """A source cannot be reached now; the same request may go well later."""


class BusyError(HomeError):
    """Another ingest holds the home."""
