"""The notebooks that Colab and Binder open, made of the pages."""
