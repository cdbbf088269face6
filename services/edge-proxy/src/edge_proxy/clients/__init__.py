"""Whom the edge asks: admission, tier-cache, the providers, the stream of records."""
