"""Builds the C kernels of additive attention and of decoding; the rest is in pyproject.toml.

They are plain C with the vector extensions of GCC and clang. Without such a compiler the
installation succeeds all the same, and PyTorch does their work. With REGARD_KERNEL=required (set
where wheels are built) a missing kernel is an error.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ATTENTION = "regard/attention/kernels"
DECODER = "regard/models/native/kernels"
LEVELS = ("baseline", "avx2", "avx512", "vnni")
WINDOWS = sys.platform == "win32"
GNU_OPTIONS = ["-O3", "-std=gnu11", "-ffp-contract=fast", "-fvisibility=hidden", "-Wno-psabi"]
CLANG_CL_OPTIONS = ["/clang:-O3", "/clang:-std=gnu11", "/clang:-ffp-contract=fast"]
EXACT = "/clang:-ffp-contract=off" if WINDOWS else "-ffp-contract=off"
"""The decoder writes out where it multiplies and adds at once, so that int8 is exact to the bit."""


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


def kernel(name: str, folder: str, sources: list[str], *options: str) -> Extension:
    return Extension(
        name,
        sources=[f"{folder}/{source}.c" for source in sources],
        depends=[str(header) for header in Path(folder).glob("*.h")],
        extra_compile_args=[*(CLANG_CL_OPTIONS if WINDOWS else GNU_OPTIONS), *options],
        libraries=[] if WINDOWS else ["m"],
        optional=os.environ.get("REGARD_KERNEL") != "required",
        py_limited_api=True,
    )


setup(
    cmdclass={"build_ext": BuildKernel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    ext_modules=[
        kernel("regard.attention._additive", ATTENTION, ["additive", "avx512", "avx2", "baseline"]),
        kernel(
            "regard.models.native._decoder",
            DECODER,
            ["decoder", "search", "decoder_module", *(f"decoder_{level}" for level in LEVELS)],
            EXACT,
        ),
    ],
)
