"""One file a revision, each frozen: it names tables as they were then and imports nothing of ours."""
