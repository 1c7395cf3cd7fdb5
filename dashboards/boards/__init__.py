"""The dashboards: one room each, of small functions that make a panel. `plan` says what a dashboard is, `parts` holds
panels that several have, `catalogue` lists them all.
"""
