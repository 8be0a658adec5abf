"""The certificates of a cluster: one authority, and one certificate with which every host of it shows that it belongs.

Dask checks that the other side has a certificate of the authority, not which host it is. So whoever holds the key can
act as any host of the cluster, and can run code on its agents.
"""

import datetime
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from velodrome.model.errors import ClusterKeysError, ClusterMissingError, KeysThereError

VARIABLE = "VELODROME_CLUSTER_KEYS"
"""Names another folder than the usual one."""
DAYS = 365
NAME = "velodrome cluster"


@dataclass(frozen=True)
class Keys:
    """The files of a folder. `ca.key` makes further certificates, and is not needed on any host."""

    folder: Path

    @property
    def authority(self) -> Path:
        """Its certificate."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """That of the hosts."""
        return self.folder / "host.pem"

    @property
    def key(self) -> Path:
        """Of that."""
        return self.folder / "host.key"


def usual_folder() -> Path:
    """Return the folder that is taken where none is named."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "velodrome" / "cluster"


def contents(keys: Keys) -> dict[str, str]:
    """Return what a host needs, by the names of the files. Raises ClusterKeysError."""
    try:
        return {file.name: file.read_text() for file in (keys.authority, keys.certificate, keys.key)}
    except (OSError, ValueError) as error:
        raise ClusterKeysError(str(keys.folder), str(error)) from error


def write_keys(folder: Path, files: Mapping[str, bytes | str]) -> Keys:
    """Write files of keys that are not there yet into a folder, for its owner alone.

    Raises ClusterKeysError, KeysThereError.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in files.items():
            number = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(number, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
    except FileExistsError as error:
        raise KeysThereError(str(error.filename)) from error
    except OSError as error:
        raise ClusterKeysError(str(folder), error.strerror or str(error)) from error
    return Keys(folder)


def find_keys(folder: Path | None = None) -> Keys:
    """Return the keys of a folder. Raises ClusterKeysError for those that are missing, expired or unreadable."""
    keys = Keys(folder or usual_folder())
    for file in (keys.authority, keys.certificate, keys.key):
        if not os.access(file, os.R_OK):
            raise ClusterKeysError(str(file), "it is missing, or not yours to read")
    _check(keys)
    return keys


def _check(keys: Keys) -> None:
    """Raise ClusterKeysError for certificates that no other side would accept."""
    try:
        from cryptography import x509  # noqa: PLC0415 - comes with velodrome[cluster]
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    except ImportError as error:
        raise ClusterMissingError(str(error)) from error
    now = datetime.datetime.now(datetime.UTC)
    read = []
    for file in (keys.authority, keys.certificate):
        try:
            found = x509.load_pem_x509_certificate(file.read_bytes())
        except (ValueError, OSError) as error:
            raise ClusterKeysError(str(file), f"it is no certificate ({error})") from error
        if found.not_valid_after_utc < now:
            raise ClusterKeysError(str(file), f"it expired on {found.not_valid_after_utc:%Y-%m-%d}")
        if found.not_valid_before_utc > now:
            begin = f"{found.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
            raise ClusterKeysError(
                str(file), f"it is valid from {begin} on, and the clock here says {now:%Y-%m-%d %H:%M}"
            )
        read.append(found)
    authority, certificate = read
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise ClusterKeysError(
            str(keys.certificate), f"it is not of the authority {keys.authority}"
        ) from error
    try:
        key = serialization.load_pem_private_key(keys.key.read_bytes(), None)
    except (ValueError, TypeError, OSError) as error:
        raise ClusterKeysError(str(keys.key), f"it is no private key ({error})") from error
    if key.public_key() != certificate.public_key():
        raise ClusterKeysError(str(keys.key), f"it is not the key of {keys.certificate}")


def make(folder: Path | None = None, days: int = DAYS) -> Keys:
    """Make an authority and a certificate for hosts in a new folder, which only its owner may read.

    Raises ClusterKeysError where there are keys already, or none can be written.
    """
    try:
        from cryptography import x509  # noqa: PLC0415 - comes with velodrome[cluster]
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    except ImportError as error:
        raise ClusterMissingError(str(error)) from error

    keys = Keys(folder or usual_folder())
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)  # clocks differ

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

    def begun(name: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(NAME))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + datetime.timedelta(days=days))
        )

    of_authority, of_hosts = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    authority = (
        begun(NAME, of_authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(of_authority.public_key()), critical=False)
        .sign(of_authority, hashes.SHA256())
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(of_authority.public_key())
    host = (
        begun("velodrome host", of_hosts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("velodrome")]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(of_authority, hashes.SHA256())
    )

    def plain(key: ec.EllipticCurvePrivateKey) -> bytes:
        form = serialization.PrivateFormat.PKCS8
        return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())

    pem = serialization.Encoding.PEM
    return write_keys(
        keys.folder,
        {
            "ca.key": plain(of_authority),
            keys.authority.name: authority.public_bytes(pem),
            keys.key.name: plain(of_hosts),
            keys.certificate.name: host.public_bytes(pem),
        },
    )
