"""The plug-in's own fixtures, as an application's tests get them."""

from jmsapi.testing.pytest_plugin import jms_broker, jms_clock, jms_context

__all__ = ["jms_broker", "jms_clock", "jms_context"]
