"""What can go wrong here.

DashboardsError        the command cannot do what was asked: exit code 2
  UsageError           a flag or an argument that means nothing
  LibraryMissingError  a datasource whose queries need a library that is not installed
  UnwritableError      a file or folder that cannot be written
"""


class DashboardsError(Exception):
    """One line: what, which value, what would be right."""


class UsageError(DashboardsError):
    """A command line that cannot be understood."""


class LibraryMissingError(DashboardsError):
    """A library of another extra that the chosen datasource needs."""


class UnwritableError(DashboardsError):
    """A place that dashboards cannot be written to."""
