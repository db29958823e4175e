"""What readers have built, kept, and a GPT made of it."""
