"""Sockets in and out: listeners, TLS, certificates that rotate, whom to trust, the server behind."""
