"""What dcgm-exporter says, by a real Prometheus."""

from decimal import Decimal

from dashboards.prometheus.dcgm import HOST_LABEL, POWER, PrometheusDcgm
from dashboards.prometheus.selection import Selection


def test_only_the_host_chooses_among_its_series() -> None:
    query = PrometheusDcgm(Selection(("service_name", HOST_LABEL))).figure(POWER, worth=Decimal(2))
    assert query.text == 'max by (Hostname, gpu, UUID) (DCGM_FI_DEV_POWER_USAGE{Hostname=~"$Hostname"}) * 2'
