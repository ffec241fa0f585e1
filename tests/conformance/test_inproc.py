"""The conformance suite on the in-process provider: every test of it appears below ``inproc``."""

from jmsapi_conformance.plugin import Certify

inproc = Certify("inproc://certify")
