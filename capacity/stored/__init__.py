"""A collector's database, as planners use it: what they found goes in (`results`), what it has recorded comes out.

SQLAlchemy and the tables are imported when a database is named, and not before: most runs of `firsttoken capacity` have
none. Tables are never made or changed here; that is the collector's doing.
"""
