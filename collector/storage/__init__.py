"""The database: its rows, revisions and pieces, what is written in a commit and read back, who may decide."""
