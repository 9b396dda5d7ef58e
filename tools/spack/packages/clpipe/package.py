"""The recipe of clpipe for Spack; docs/hpc.md says how it is used.

The sources are those that contain the recipe: the last commit, or with `spack dev-build` the files."""
import os

from spack.package import *

try:  # Spack 1.0
    from spack_repo.builtin.build_systems.scons import SConsPackage
except ImportError:
    pass


class Clpipe(SConsPackage):
    """Features and clusters of large image collections, by OpenCL."""

    homepage = git = os.path.realpath(os.path.join(os.path.dirname(__file__), *[".."] * 4))

    version("main", branch="main")

    # What SConstruct calls them, and the packages. (Spack has no dav1d, which heif needs.)
    formats = {
        "webp": "libwebp",
        "tiff": "libtiff",
        "gif": "giflib@5.1:",
        "jxl": "libjxl",
        "archives": "libarchive@3.3:",
        "icc": "lcms",
    }
    for part, library in formats.items():
        variant(part, default=part != "jxl", description="Build with " + library.split("@")[0])
        depends_on(library, when="+" + part)
    variant("mpi", default=False, description="Cluster with the processes of an MPI job")

    depends_on("c", type="build")
    depends_on("scons@4:", type="build")
    depends_on("python@3.7:", type=("build", "run"))
    depends_on("pkgconfig", type="build")
    depends_on("opencl-icd-loader")
    depends_on("opencl-c-headers")
    depends_on("libpng@1.6:")
    depends_on("libjpeg-turbo@2:")
    depends_on("hdf5@1.10: +hl ~mpi")
    depends_on("zlib-api")
    depends_on("openssl")
    depends_on("libdeflate")
    depends_on("jansson")
    depends_on("mpi", when="+mpi")

    def build_args(self, spec, prefix):
        without = ["heif"] + [part for part in self.formats if "~" + part in spec]
        if "~mpi" in spec:
            without += ["openmpi", "mpich"]
        return [
            "PREFIX=" + prefix,
            "WITHOUT=" + ",".join(without),
            "CC=" + spack_cc,
            "TESTS=no",
            "WERROR=no",
        ]

    # Builds what is installed.
    install_args = build_args

    def build(self, spec, prefix):
        scons("-j%d" % make_jobs, "clpipe", "documents", *self.build_args(spec, prefix))
