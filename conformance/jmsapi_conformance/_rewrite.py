"""Has pytest rewrite the asserts of the kit and the suite, so that they explain themselves.

Imported for that alone, and before any of the modules it names.
"""

import pytest

__all__ = ["REWRITTEN"]

REWRITTEN = ("jmsapi_conformance.kit", "jmsapi_conformance.suite")
pytest.register_assert_rewrite(*REWRITTEN)
