"""Facts -> rules and constraints that hold in them."""
