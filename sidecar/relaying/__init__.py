"""A request's way through the proxy: byte for byte, and looked at beside."""
