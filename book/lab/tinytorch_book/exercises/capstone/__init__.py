"""The parts that readers have built, stored, and a GPT made of them."""
