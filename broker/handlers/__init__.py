"""A file for each family of requests: what it checks, what it answers, from top to bottom.

Which file serves which API stands in ``walrusmq.broker.dispatcher.HANDLER_MODULES``; one is imported when the first
such request comes, so that a start pays for none of them.
"""
