"""What is built: one room per source, and what they share."""
