"""Everything two services must agree on: subjects, messages, streams, error codes.

Start at :mod:`contracts.catalogue`, which lists every contract once.
"""
