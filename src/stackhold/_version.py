"""The released version, read by the build and by `stackhold --version`."""

__version__ = "0.1.0"
