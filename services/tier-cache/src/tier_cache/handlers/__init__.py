"""What wakes tier-cache: lookups, fills, and the control plane's change events."""
