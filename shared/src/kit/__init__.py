"""Plumbing without a domain: bus, asgi, settings, log, clock, money, metrics, stores."""
