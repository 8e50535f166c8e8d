"""Consumer groups: what decides about a group, and what stores and answers for it."""
