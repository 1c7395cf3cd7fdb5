"""What can go wrong here.

AlertsError          the command cannot do what was asked: exit code 2
  TargetError        a flag that no rule file can be made for
  SpecLabelError     labels of an objective that no alert can carry
  ToolMissingError   a program that `check` needs is not on PATH
"""


class AlertsError(Exception):
    """One line: what, which value, what would be right."""


class TargetError(AlertsError):
    """A flag with a value that no rule file can be made for."""


class SpecLabelError(AlertsError):
    """A label of an objective that an alert cannot carry."""


class ToolMissingError(AlertsError):
    """A program of Prometheus or Alertmanager that is not on PATH."""
