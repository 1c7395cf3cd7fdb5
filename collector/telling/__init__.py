"""People told: notices, to Alertmanager or a webhook, until each has been heard."""
