"""Decides what travels to a cluster: one archive of panda_spark, the same bytes for the same files."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import zipfile
from pathlib import Path

PACKAGE = "panda_spark"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the oldest date that an archive can hold


def package_zip(cache: Path) -> Path:
    """The archive, named by what is in it; made once."""
    data = zip_of(package_folder())
    path = cache / f"{PACKAGE}-{hashlib.sha256(data).hexdigest()[:16]}.zip"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_suffix(".part")
        part.write_bytes(data)
        part.replace(path)
    return path


def package_folder(package: str = PACKAGE) -> Path:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.submodule_search_locations, f"{package} is no package"
    return Path(spec.submodule_search_locations[0])


def zip_of(folder: Path) -> bytes:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            name = (Path(folder.name) / path.relative_to(folder)).as_posix()
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return out.getvalue()
