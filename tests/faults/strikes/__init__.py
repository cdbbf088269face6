"""Faults: what can strike, when, and how it is done and undone.

fault.py      every kind of fault, and what each means to a witness
plan.py       which faults strike in which order: drawn from a seed, or named
striker.py    has them strike, several at once where they don't disturb each other
processes.py  kill, freeze, stop        wires.py   cut, delay, hold, lose
stores.py     flush, restart, fill up   messages.py   repeat and reorder
"""
