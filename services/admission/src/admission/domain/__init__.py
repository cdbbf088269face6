"""What admission decides: pure functions of the policy, the time and the state, without I/O."""
