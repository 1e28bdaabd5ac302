"""Which files of a project are credentials: they never travel with a job, whatever .gitignore says."""

from __future__ import annotations

import re
from pathlib import Path

from phalanx.model.foreign import open_regular

_FOLDERS = frozenset({
    ".ssh", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".gnupg", ".oci", ".aliyun", ".huggingface", ".terraform.d",
    ".password-store", ".vault.d", ".config", ".databricks", ".kaggle", ".wandb",
})  # fmt: skip
_FILES = re.compile(
    r"\.env(?:\..+)?|.+\.env|\.envrc|[._]netrc|\.pgpass|rclone\.conf|\.my\.cnf|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|\.dockercfg|\.vault-token"
    r"|\.boto|\.s3cfg|\.terraformrc|\.databrickscfg|kaggle\.json|credentials(?:\.(?:json|ya?ml|toml|ini|csv|txt))?|client_secrets?.*\.json"
    r"|.*service[-_]?account.*\.json|application_default_credentials\.json|kubeconfig|.+\.kubeconfig|secrets?\.(?:ya?ml|json|toml|ini|env)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|ovpn|tfstate|tfvars)|.+\.tfstate\.backup",
    re.IGNORECASE,
)
# What people put beside the real one, to be filled in.
_TEMPLATE = re.compile(r"\.(?:example|sample|template|dist|tmpl|pub)$", re.IGNORECASE)
_CODE = frozenset({".py", ".md", ".rst", ".ipynb", ".c", ".cpp", ".cu", ".h"})
_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|PuTTY-User-Key-File-|AGE-SECRET-KEY-1")
_LOOKED_AT, _LARGEST_KEY = 4096, 64 << 10


def is_credential(path: Path) -> bool:
    """Whether a file is one by its folder or its name; the path is within the project."""
    if any(part in _FOLDERS for part in path.parts[:-1]):
        return True
    return _FILES.fullmatch(path.name) is not None and _TEMPLATE.search(path.name) is None


def holds_key(path: Path) -> bool:
    """Whether a small file that is no code begins with a private key."""
    if path.suffix.lower() in _CODE:
        return False
    try:
        if path.stat().st_size > _LARGEST_KEY:
            return False
        with open_regular(path) as file:
            return _KEY.search(file.read(_LOOKED_AT)) is not None
    except OSError:
        return False


def is_credential_folder(name: str) -> bool:
    """Whether nothing in a folder of this name travels."""
    return name in _FOLDERS
