"""What was seen, told: OTLP, /metrics, and the admin pages."""
