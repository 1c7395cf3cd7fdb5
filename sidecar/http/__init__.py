"""HTTP/1.1 heads, bodies and encodings as bytes, and the trace context they carry."""
