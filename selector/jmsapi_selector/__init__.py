"""Message selectors of JMS: text to a test over a message's properties and header fields.

    >>> selector = compile_selector("color = 'blue' AND weight > 2500")
    >>> selector.matches({"color": "blue", "weight": 3000})
    True

A text goes through ``lexer``, ``parser``, ``check`` and ``compiler``; ``planner`` decides what a broker may be asked to
evaluate instead. The package imports nothing but the standard library.

Spec: 3.8.
"""

from jmsapi_selector.errors import InvalidSelector
from jmsapi_selector.explanation import Explanation
from jmsapi_selector.selector import Selector, compile_selector
from jmsapi_selector.truth import Truth
from jmsapi_selector.values import SelectorValues, Value

__all__ = ["Explanation", "InvalidSelector", "Selector", "SelectorValues", "Truth", "Value", "compile_selector"]
