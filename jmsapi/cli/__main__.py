"""``python -m jmsapi.cli``."""

from jmsapi.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
