"""The metadata log: a durable log of commands with snapshots, and the group that agrees on it. It knows no command."""
