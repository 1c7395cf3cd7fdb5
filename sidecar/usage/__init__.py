"""Token counts asked for where the engine gives them, and hidden from a client that did not ask."""
