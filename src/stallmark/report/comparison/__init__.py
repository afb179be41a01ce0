"""The comparison of variants as a page, in Markdown and in the terminal."""
