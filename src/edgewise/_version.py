"""The version of edgewise, read by the build and by ``edgewise.__version__``."""

__version__ = "0.3.0"
