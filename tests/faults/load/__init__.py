"""Many teams with known usage, and the operator who changes them meanwhile.

orders.py    what a request orders from the provider, each of its own cost
http.py      one call, and what exactly came back
clients.py   applications: they send, believe what they are told, and remember it
teams.py     who there is: teams, keys, tiers, prices
office.py    credits, corrections, tiers, keys and prices, changed all the time
"""
