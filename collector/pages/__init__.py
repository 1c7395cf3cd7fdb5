"""The page for people: what it shows as values, its charts and its templates."""
