"""Which addresses the pipeline speaks to: HTTPS ones and, for tests and the demo, this machine's own."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from warehouse.errors import KernelmartError


def require_safe(url: str, whose: str) -> None:
    """See that an address is an HTTPS one, or one on loopback.

    Args:
        url: the address; no error shows more than its host.
        whose: what it is the address of, for errors.

    Raises:
        KernelmartError: where it is not.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        raise KernelmartError(f"the address of {whose} is no URL; correct it") from error
    if not host:
        raise KernelmartError(f"the address of {whose} is no URL; correct it")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise KernelmartError(f"{whose} at {host} must be asked over https; correct its address")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
