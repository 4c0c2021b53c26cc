"""Builds the C kernel of additive attention; everything else is in pyproject.toml.

The kernel is plain C with the vector extensions of GCC and clang. Without such a compiler the
installation succeeds all the same, and additive attention works in blocks of PyTorch operations.
With REGARD_KERNEL=required (set where wheels are built) a missing kernel is an error.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = "regard/attention/kernels"
WINDOWS = sys.platform == "win32"
GNU_OPTIONS = ["-O3", "-std=gnu11", "-ffp-contract=fast", "-fvisibility=hidden", "-Wno-psabi"]
CLANG_CL_OPTIONS = ["/clang:-O3", "/clang:-std=gnu11", "/clang:-ffp-contract=fast"]


class BuildKernel(build_ext):
    """Compiles with OpenMP where the compiler has it, otherwise for one thread."""

    def build_extension(self, ext: Extension) -> None:
        if WINDOWS:
            self.use_clang()
        elif self.has_openmp():
            ext.extra_compile_args = [*ext.extra_compile_args, "-fopenmp"]
            ext.extra_link_args = [*ext.extra_link_args, "-fopenmp"]
        super().build_extension(ext)

    def use_clang(self) -> None:
        """Replace MSVC's compiler, which has no vector extensions, by clang with its interface."""
        clang = shutil.which("clang-cl")
        if clang and self.compiler.compiler_type == "msvc":
            self.compiler.initialize()
            self.compiler.cc = clang

    def has_openmp(self) -> bool:
        compiler = getattr(self.compiler, "compiler_so", None)
        if not compiler:
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
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    ext_modules=[
        Extension(
            "regard.attention._additive",
            sources=[f"{KERNELS}/{name}.c" for name in ("additive", "avx512", "avx2", "baseline")],
            depends=[f"{KERNELS}/{name}.h" for name in ("additive", "tile", "forward", "backward")],
            extra_compile_args=CLANG_CL_OPTIONS if WINDOWS else GNU_OPTIONS,
            libraries=[] if WINDOWS else ["m"],
            optional=os.environ.get("REGARD_KERNEL") != "required",
            py_limited_api=True,
        )
    ],
)
