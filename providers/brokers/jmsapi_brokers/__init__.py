"""What is true of a broker whichever wire leads to it: a module each for Artemis, ActiveMQ Classic, RabbitMQ and Broker-J.

A provider asks here how things are named, what may be named, what the broker can do, how it evaluates selectors and what its
error texts mean; it keeps to itself how that is written to its wire. Two wires of one broker thereby meet in the same queues.

    artemis, classic, rabbitmq, broker_j   the brokers
    names                                  the rules for texts that leave for a wire, and escaping
    error_words                            from a broker's words to a kind of error
    users                                  what a message says of its sender
    typed_texts                            values as texts that keep their Java types
    subscriptions                          the named subscriptions and client ids open in this process, over both wires

Nothing here does I/O.
"""
