"""The version of edgewise, read by the build and by ``edgewise.__version__``."""

__version__ = "0.2.0"
