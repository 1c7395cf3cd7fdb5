"""Inside an ASGI server: the same eye without a proxy."""
