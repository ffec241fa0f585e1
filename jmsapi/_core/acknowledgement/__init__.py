"""What becomes of received messages: ledger, settlement at the provider, transaction, lending to other sessions."""
