"""`firsttoken dashboards check`: the rules that every dashboard keeps, and what breaks them.

They come from what breaks dashboards elsewhere: data sources that are not found after provisioning, units a thousand
times off, rates over too few samples, panels over panels, one uid twice. `reading` walks the JSON, `structure`,
`panels` and `variables` hold the rules, `rules` names them, `folder` reads the files.
"""
