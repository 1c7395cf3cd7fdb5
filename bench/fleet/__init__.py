"""What a fleet of sidecars costs its collectors: measured on a few hundred of them, foretold for more, then tried.

recording ─▶ replica ─▶ driving (a real collector) ─▶ costs ─▶ plan
"""
