"""Sources of SCRAM users' passwords: for `lockstep.credential.provider.class`; see docs/access.md."""

from __future__ import annotations

from app.credentials.credential_providers import (
    DirectoryCredentialProvider,
    EnvironmentCredentialProvider,
    FileCredentialProvider,
)
from sinks.plugins.credential_provider import Credential, CredentialProvider

__all__ = [
    "Credential",
    "CredentialProvider",
    "DirectoryCredentialProvider",
    "EnvironmentCredentialProvider",
    "FileCredentialProvider",
]
