"""Helpers for the address of the job's HTTP server: is it loopback, is it a wildcard, what is its URL."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches the address or name, as `127.0.0.1` or `localhost`."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def is_wildcard(host: str) -> bool:
    """Returns whether the address stands for all addresses of the machine, as `0.0.0.0` does."""
    address = _address(host)
    return address is not None and address.is_unspecified


def reached_at(host: str) -> str:
    """Returns the address at which this machine reaches a server that listens at `host`."""
    return "127.0.0.1" if is_wildcard(host) else host


def base_url(host: str, port: int) -> str:
    """Returns the URL of a server at this host and port. An IPv6 address stands in brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
