"""The distributed store: what many collectors counted, in one ClickHouse, merged and windowed in the engine."""
