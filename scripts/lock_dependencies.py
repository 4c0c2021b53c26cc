"""Write requirements.lock: the tested versions of all dependencies, with the hashes of their files.

Run it by `make lock`, in the environment that the tests ran in; it keeps the versions that are
installed there. The lock is for Linux on x86-64 with torch's CPU build, which the tests use. uv
reads where that build is from UV_FIND_LINKS or UV_EXTRA_INDEX_URL.
No address is written into the lock.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

HEADER = """\
# The tested set of dependencies, with hashes (Python 3.11, Linux x86-64, torch's CPU build).
# Written by `make lock`. To install it:
#   pip install --require-hashes -r requirements.lock && pip install --no-deps .
"""
OPTIONS = [
    "--extra",
    "dev",
    "--constraint",
    "constraints.txt",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--quiet",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--python-version",
    "3.11.5",
    "--python-platform",
    "x86_64-manylinux_2_28",
]


def main() -> int:
    """Compile the lock from pyproject.toml, constraints.txt and what is installed."""
    root = Path(__file__).parent.parent
    freeze = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    installed = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    with NamedTemporaryFile("w", suffix=".txt") as versions:
        versions.write("\n".join(line for line in installed.splitlines() if "==" in line))
        versions.flush()
        compile_lock = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", *OPTIONS]
        lock = subprocess.run(
            [*compile_lock, "--constraint", versions.name],
            cwd=root,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    (root / "requirements.lock").write_text(HEADER + lock)
    print(f"requirements.lock: {lock.count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
