"""The mail store: mailboxes with folders, and messages whose bodies are in a separate table."""
