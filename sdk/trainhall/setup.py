"""The SDK as one zip file in the pod, from the zip this code was loaded from or from its folder."""

from __future__ import annotations

import os
import shutil
import zipfile


class SetupError(Exception):
    """The pod cannot be made ready; the message is for the person whose job it is."""


def install_sdk(folder: str) -> str:
    """Put trainhall.zip into the folder, whole or not at all; returns its path."""
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, "trainhall.zip")
    package = os.path.dirname(os.path.abspath(__file__))
    source = os.path.dirname(package)
    temporary = target + ".new"
    if os.path.isfile(source) and zipfile.is_zipfile(source):
        if os.path.exists(target) and os.path.samefile(source, target):
            return target
        shutil.copyfile(source, temporary)
    else:
        _zip_package(package, temporary)
    os.chmod(temporary, 0o644)  # the program may run as another account
    os.replace(temporary, target)
    return target


def _zip_package(package: str, target: str) -> None:
    # files of an image often have no date but the epoch, which a zip cannot write
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as out:
        for folder, folders, files in os.walk(package):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(files):
                if name.endswith((".py", ".typed")):
                    path = os.path.join(folder, name)
                    out.write(path, "trainhall/" + os.path.relpath(path, package).replace(os.sep, "/"))
