"""Settlement: from the inference record to the usage charge, the ledger and the balance."""
