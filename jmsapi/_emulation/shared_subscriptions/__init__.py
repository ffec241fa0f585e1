"""Shared subscriptions for brokers that have none, out of what they have: a durable subscription, a queue, local transactions.

Spec: 6.11-4 to 6.11-10, 6.11.2, 6.11.4 (final text: 8.3.2, 8.3.4).
"""
