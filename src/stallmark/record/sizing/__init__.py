"""The folder of a sizing: what a profile asks for, and what one candidate, a server with its storage, carried of it."""
