"""One process that serves: begun, watched, told of a new spec, and ended in order."""
