"""All it knows, to whoever asks: status, metrics, readiness and questions about the past."""
