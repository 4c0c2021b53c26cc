"""The native decoder under sanitizers of addresses and of undefined behaviour."""

import shutil
import subprocess
from pathlib import Path

from regard.models.native import native_library

HERE = Path(__file__).parent
KERNELS = Path(native_library.__file__).parent / "kernels"
OPTIONS = (
    "-std=gnu11",
    "-O1",
    "-g",
    "-ffp-contract=off",
    "-Wall",
    "-Wno-psabi",
    "-Wno-unknown-pragmas",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)


def test_no_operation_leaves_its_buffers(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:  # then there is no native decoder either
        return
    kernels = [path for path in KERNELS.glob("*.c") if path.name != "decoder_module.c"]
    sources = [HERE / "decoder_harness.c", *kernels]
    program = tmp_path / "harness"
    command = [compiler, *OPTIONS, f"-I{KERNELS}", *map(str, sources), "-lm", "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    # what a thread keeps for its next call is no leak
    environment = {"ASAN_OPTIONS": "detect_leaks=0"}
    ran = subprocess.run(
        [program], capture_output=True, text=True, check=False, env=environment, timeout=60
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
