"""The JMS objects over the seam: every acknowledgement and transaction rule lives here, once."""
