"""The submissions' own sources: what they are, what they prove, and how they changed. Nothing here runs any of them."""
