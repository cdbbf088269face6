"""Wires between any two parts, which a fault can cut, delay, hold or let lose what they carry.

link.py     one wire: a TCP proxy in front of one server for one client program
wiring.py   all wires of a stack, on a thread of their own, and how programs are led to them
"""

from faults.wiring.link import Link, Trouble
from faults.wiring.wiring import Wiring

__all__ = ["Link", "Trouble", "Wiring"]
