"""Admission: decides whether a team may call now, and afterwards charges what the call used."""
