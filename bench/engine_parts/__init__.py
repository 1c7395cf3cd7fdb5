"""Parts of bench/engine.py."""
