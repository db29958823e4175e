"""The book in print and offline: made of the built pages."""
