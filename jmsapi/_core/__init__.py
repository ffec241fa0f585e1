"""The JMS objects over the SPI: every acknowledgement and transaction rule lives here, once."""
