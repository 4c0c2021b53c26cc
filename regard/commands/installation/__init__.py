"""Commands about the installation: what works on this machine, and shell completion."""
