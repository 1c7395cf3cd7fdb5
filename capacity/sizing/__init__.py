"""How many replicas a demand needs: `firsttoken capacity size`.

    cli -> sized (the answer) -> replay <- replica <- measured (certify's result, or a number by hand)
           report                demand <- a trace, or what a collector has recorded

`demand`, `measured`, `replica`, `replay` and `sized` are pure but for reading the files that they are named.
"""
