"""GPU MODE KernelBot: the dataset of its competition platform."""
