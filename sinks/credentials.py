"""The former place of `lockstep.credentials.Credential`. It goes with the next version."""

from __future__ import annotations

import warnings

from sinks.plugins.credential_provider import Credential, CredentialProvider

__all__ = ["Credential", "CredentialProvider"]

warnings.warn("sinks.credentials has moved: import from lockstep.credentials", FutureWarning, stacklevel=2)
