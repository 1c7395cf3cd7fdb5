"""What services are certified for, as `firsttoken capacity certify --database` has kept it."""

import json

from sqlalchemy import and_, func, select
from sqlalchemy.engine import Connection

from collector import schema
from collector.judging.certified_trouble import Certified, CertifiedRps
from slo.promised import Promised, promised

CERTIFY = "certify"


def certified_rps(connection: Connection) -> CertifiedRps:
    """What each service is certified for, by the last run of each that certified a rate."""
    table = schema.capacity_result
    of_rate = and_(table.c.kind == CERTIFY, table.c.certified_rps > 0)
    newest = (
        select(table.c.environment, table.c.service, func.max(table.c.at_s).label("at_s"))
        .where(of_rate)
        .group_by(table.c.environment, table.c.service)
        .subquery()
    )
    same = and_(*(table.c[name] == newest.c[name] for name in ("environment", "service", "at_s")))
    rows = connection.execute(select(table).join(newest, same).where(of_rate).order_by(table.c.certified_rps.desc()))
    return {(row.environment, row.service): Certified(row.certified_rps, _promised(row.result)) for row in rows}


def _promised(result: str) -> Promised | None:
    try:
        return promised(json.loads(result))
    except ValueError:
        return None
