"""What makes a release: not in the wheel."""
