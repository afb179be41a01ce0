"""The mail store: mailboxes with folders, and messages whose bodies are in a separate table.

Here: its size, its folders, and how full a mailbox may be. Apart from the tables and the texts, so that a process
starts without SQLAlchemy and Faker.
"""

MAILBOXES, MESSAGES = 200, 200  # unless the scale says otherwise; a mailbox then has 15 MB
MOST_MAILBOXES, FEWEST_MESSAGES, MOST_MESSAGES = 1_000_000, 10, 30_000

MEAN_BYTES = 75_000
LEAST_BYTES, MOST_BYTES = 100, 10_000_000
"""The bytes of a body."""

FOLDERS = (
    "Inbox",
    "Sent Items",
    "Deleted Items",
    "Drafts",
    "Archive",
    "Customers",
    "Suppliers",
    "Projects",
    "Team",
    "Private",
)
"""The folders of every mailbox, numbered from 1."""
INBOX, SENT = 1, 2


def leeway(messages: int) -> int:
    """Return the number of messages by which a mailbox may grow or shrink after the load: a tenth."""
    return messages // 10
