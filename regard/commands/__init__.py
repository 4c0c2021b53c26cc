"""The commands, one file a group: each adds its parsers and runs what was asked for."""
