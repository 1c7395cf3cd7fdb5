"""Grafana dashboards from slo.yaml: importable JSON over Prometheus, PostgreSQL or SQLite.

`promise` reads the specs, a source (`prometheus`, `sql`) turns questions into queries, a dashboard (`slo_overview`)
lays panels out, and `panels` alone knows Grafana's JSON and the library that writes it. Nothing here talks to Grafana.
"""
