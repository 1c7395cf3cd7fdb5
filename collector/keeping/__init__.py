"""Counted once: batches committed in groups, and the ledger in memory that is always what is committed."""
