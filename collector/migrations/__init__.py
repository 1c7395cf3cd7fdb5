"""The revisions of the tables, run by alembic: `env` is how, `versions` are what. `revisions` starts them."""
