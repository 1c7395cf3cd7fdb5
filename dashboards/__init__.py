"""Grafana dashboards from slo.yaml: importable JSON over Prometheus, PostgreSQL or SQLite.

`promise` reads the specs, a source (`prometheus`, `sql`) turns `questions` into queries, a dashboard (`boards`) lays
panels out, and `grafana` alone knows Grafana's JSON and the library that writes it. `check` holds the rules that every
dashboard keeps. Nothing here talks to Grafana.
"""
