"""The mail store: mailboxes with folders, and messages whose bodies lie apart."""
