"""The doors: HTTP and gRPC, with TLS, limits and tokens, and a body's way in."""
