"""An engine's own metrics: which engine it is, and what its page says in our signals."""
