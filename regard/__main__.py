"""`python -m regard`, and the command `regard`."""

import signal
import sys


def main() -> int:
    """Run the command line; one that is stopped while it is imported ends in one line as well."""
    try:
        from regard.cli import main as run_command

        return run_command()
    except KeyboardInterrupt:
        print("regard: stopped", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
