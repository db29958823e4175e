"""Running the chapters, and keeping what they print."""
