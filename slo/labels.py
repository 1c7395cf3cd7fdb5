"""Labels that alerts have by themselves: an objective's own `labels` may be any others.

An alert's labels say what it is of and who is told. One of an objective by such a name would be overwritten, or would
send the alert elsewhere.
"""

from slo.promql import INSTANCE_LABEL, LONG_WINDOW_LABEL, SHORT_WINDOW_LABEL, TIER_LABEL, VERDICT_KEY
from slo.trouble import STEP_LABEL

RESERVED = frozenset(
    {
        *VERDICT_KEY,
        *("alertname", "alertstate", "severity", "notify", "owner"),
        *(TIER_LABEL, STEP_LABEL, INSTANCE_LABEL, LONG_WINDOW_LABEL, SHORT_WINDOW_LABEL),
    }
)
