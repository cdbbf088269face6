"""Whom admission asks: tier-cache."""
