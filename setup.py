"""Builds the optional C kernel of additive attention; everything else is in pyproject.toml.

The kernel is plain C with the vector extensions of GCC and clang. Without a compiler the
installation succeeds all the same, and additive attention works in blocks of PyTorch operations.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = "regard/attention/kernels"
COMPILE = ["-O3", "-std=gnu11", "-ffp-contract=fast", "-fvisibility=hidden", "-Wno-psabi"]


class BuildKernel(build_ext):
    """Compiles with OpenMP where the compiler has it, and for one thread where it has not."""

    def build_extension(self, ext: Extension) -> None:
        if self.has_openmp():
            ext.extra_compile_args = [*ext.extra_compile_args, "-fopenmp"]
            ext.extra_link_args = [*ext.extra_link_args, "-fopenmp"]
        super().build_extension(ext)

    def has_openmp(self) -> bool:
        compiler = getattr(self.compiler, "compiler_so", None)
        if sys.platform == "win32" or not compiler:
            return False
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(
                "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }"
            )
            command = [compiler[0], "-fopenmp", str(source), "-o", str(Path(folder, "probe"))]
            try:
                return subprocess.run(command, capture_output=True, check=False).returncode == 0
            except OSError:
                return False


setup(
    cmdclass={"build_ext": BuildKernel},
    ext_modules=[
        Extension(
            "regard.attention._additive",
            sources=[f"{KERNELS}/{name}.c" for name in ("additive", "avx512", "avx2", "baseline")],
            depends=[f"{KERNELS}/{name}.h" for name in ("additive", "tile", "forward", "backward")],
            extra_compile_args=COMPILE,
            libraries=[] if sys.platform == "win32" else ["m"],
            optional=True,
        )
    ],
)
