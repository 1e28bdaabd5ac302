"""What runs on a host that is examined: Python 3.8 or later and its standard library, nothing of the rest of phalanx.

It is sent as source and runs from memory as the package `phalanx_agent`, so imports in here are relative. A module with
`VERBS` answers requests; a module with `FACTS` adds sections to the verb `facts`. Both are found by scanning.
"""
