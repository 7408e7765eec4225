"""What is measured, and the figures."""
