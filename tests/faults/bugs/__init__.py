"""Bugs sown on purpose into a copy of the code: the suite must catch each.

bug.py       what a bug is: edits, the faults that bring it to light, the rules it breaks
edge.py      bugs of the edge            stores.py   of admission, tier-cache, settlement, Lua
scratch.py   a copy of the code with the edits in it
hunt.py      runs the suite on the copy
"""

from collections.abc import Sequence

from faults.bugs.bug import Bug
from faults.bugs.edge import EDGE_BUGS
from faults.bugs.stores import STORE_BUGS

BUGS: Sequence[Bug] = (*EDGE_BUGS, *STORE_BUGS)
