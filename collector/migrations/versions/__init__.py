"""One file a revision, each frozen: its scripts name tables as they were then, and nothing of ours but their runner is
imported."""
